"""The scores of a table of any size, a batch at a time, and what in it is new to the model."""

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.training_table import read_as_trained
from rareclass.errors import InputError, name_hint, nearest_name
from rareclass.model.model_file import ModelFile
from rareclass.progress import track
from rareclass.tables.columns import Column
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, batch_rows_for


class ScoredBatch(NamedTuple):
    """Scores of consecutive rows of a file."""

    scores: NDArray[np.float64]  # higher is rarer
    kept: pl.Series | None  # the column asked for, as it is in the file
    rows: Any = None  # typed columns or a sparse matrix, where they were asked for


@dataclass
class Seen:
    """What was met in the file that the model did not know from training."""

    n_rows: int = 0
    n_columns: int = 0  # those that the model looks at
    counts_cells: bool = True  # whether cells are looked at: it takes a fourth of the time of a row
    unseen_values: Counter[str] = field(default_factory=Counter)  # cells by column
    outside: Counter[str] = field(default_factory=Counter)  # cells beyond those of training
    emptied: Counter[str] = field(default_factory=Counter)  # empty ones, where training had none
    expected: dict[str, float] = field(default_factory=dict)  # share of unseen words, by column
    extra_columns: list[str] = field(default_factory=list)  # those the model does not use

    def joined(self, others: Sequence["Seen"]) -> "Seen":
        """What was met in this file and in others of the same columns."""
        each = [self, *others]
        return replace(
            self,
            n_rows=sum(seen.n_rows for seen in each),
            unseen_values=sum((seen.unseen_values for seen in each), Counter()),
            outside=sum((seen.outside for seen in each), Counter()),
            emptied=sum((seen.emptied for seen in each), Counter()),
        )


def scored(
    content: ModelFile,
    file: TableFile | SvmlightFile,
    keep: str | None,
    seen: Seen,
    with_rows: bool = False,
) -> Iterator[ScoredBatch]:
    """Score a file batch by batch; `seen` is filled on the way.

    Batches hold the rows themselves only where asked to: then they are not to be collected.
    """
    expected = content.metadata["format"]
    if isinstance(file, SvmlightFile) != (expected == "svmlight"):
        raise InputError(
            f"{file.path} is a {file.format_name} file, but the model was trained on a "
            f"{'svmlight file' if expected == 'svmlight' else 'table with named columns'}."
        )
    if isinstance(file, SvmlightFile):
        yield from _scored_sparse(content, file, keep is not None, seen, with_rows)
        return
    encoder = copy(content.encoder)  # that of a stream counts the rows it has seen
    columns: list[Column] = list(encoder.columns)
    _check_columns(file, columns, content.metadata, keep, seen)
    seen.n_columns = len(columns)
    if seen.counts_cells and hasattr(content.model, "outside"):  # it knows its words
        with content.trusted_by_halves():
            seen.expected = content.model.statistics_.expected_unseen()
    names = list(dict.fromkeys([column.name for column in columns] + ([keep] if keep else [])))
    with track("Scoring", total=file.estimate_rows() or None) as advance:
        for batch in file.batches(names, batch_rows_for(len(names))):
            typed = read_as_trained(batch, columns, seen.n_rows + 1)
            seen.n_rows += batch.height
            with content.trusted_by_halves():
                rows = encoder.transform(typed)
                if seen.counts_cells:
                    note_unlike(content, typed, rows, seen)
                scores = content.model.score_samples(rows)
            check_scores(content, scores, batch.height, seen.n_rows)
            yield ScoredBatch(scores, batch[keep] if keep else None, typed if with_rows else None)
            advance(batch.height)


def note_unlike(content: ModelFile, typed: pl.DataFrame, rows: Any, seen: Seen) -> None:
    """Count cells that are unlike training, whether the encoder knows them or the model."""
    seen.unseen_values.update(content.encoder.count_unseen(typed))
    if hasattr(content.encoder, "count_outside"):
        seen.outside.update(content.encoder.count_outside(typed))
    for column in content.encoder.columns:
        # A stream does not count the values of its columns, nor their empty cells.
        if column.n_distinct and not column.n_missing and typed[column.name].null_count():
            seen.emptied[column.name] += typed[column.name].null_count()
    if hasattr(content.model, "outside"):
        words = {each.name for each in content.encoder.columns if each.reads_as == "string"}
        for name, count in content.model.outside(rows).items():
            counts = seen.unseen_values if name in words else seen.outside
            counts[name] += count


def _scored_sparse(
    content: ModelFile, file: SvmlightFile, keep_labels: bool, seen: Seen, with_rows: bool
) -> Iterator[ScoredBatch]:
    width = content.encoder.scaler_.n_features_in_
    with track("Scoring") as advance:
        for batch in file.batches(content.encoder.zero_based, width):
            seen.n_rows += len(batch.labels)
            with content.trusted_by_halves():
                scores = content.model.score_samples(content.encoder.transform(batch.X))
            check_scores(content, scores, len(batch.labels), seen.n_rows)
            labels = pl.Series("label", batch.labels) if keep_labels else None
            yield ScoredBatch(scores, labels, batch.X if with_rows else None)
            advance(len(batch.labels))


def check_scores(content: ModelFile, scores: Any, n_rows: int, n_seen: int) -> None:
    """Raise `InputError` where a model gives no score, or one that is no number."""
    name = "The model" if content.file is None else f"The model file {content.file}"
    if np.shape(scores) != (n_rows,) or scores.dtype.kind != "f":
        raise InputError(f"{name} does not score each row: it is damaged.", "Fit again.")
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        row = n_seen - n_rows + int(wrong[0]) + 1
        raise InputError(
            f"{name} gives row {row} the score {scores[wrong[0]]}.",
            "Numbers of that row are too large for it, or the model is damaged: fit again.",
        )


def _check_columns(
    file: TableFile,
    columns: list[Column],
    metadata: dict[str, Any],
    keep: str | None,
    seen: Seen,
) -> None:
    absent = [column.name for column in columns if column.name not in file.columns]
    if absent:
        used = {column.name for column in columns}
        others = [name for name in file.columns if name not in used]
        named = ", ".join(repr(name) for name in absent[:10])
        more = f" and {len(absent) - 10} more" if len(absent) > 10 else ""
        near = nearest_name(absent[0], others) if len(absent) == 1 else None
        raise InputError(
            f"{file.path} lacks {'columns' if len(absent) > 1 else 'column'} {named}{more}, "
            "which the model was trained on.",
            f"Did you mean {near!r}?" if near else "Add it, or fit again with --drop.",
        )
    if keep is not None and keep not in file.columns:
        raise InputError(
            f"{file.path} lacks the target column {keep!r}.", name_hint(keep, file.columns)
        )
    trained = {column["name"] for column in metadata["columns"]} | {metadata["target"], keep}
    seen.extra_columns = [name for name in file.columns if name not in trained]
