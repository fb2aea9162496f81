"""From a model file and a file of any size to scored rows and measures, a batch at a time."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rareclass.atomic_file import check_not_input, check_writable, replacing
from rareclass.encoding.target import labels_as_text
from rareclass.encoding.training_table import read_as_trained
from rareclass.errors import InputError, name_hint, nearest_name
from rareclass.progress import track
from rareclass.tables.columns import Column
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, batch_rows_for, open_table
from rareclass.verbs.model_file import ModelFile
from rareclass.verbs.targets.decision import Confusion
from rareclass.verbs.targets.decisions import decision_of
from rareclass.verbs.targets.held_out import Estimate

SCORE_SUFFIXES = (".csv", ".parquet", ".pq")
_NOT_IN_CSV = (pl.Binary, pl.Duration, pl.Object)


class ScoredBatch(NamedTuple):
    """Scores of consecutive rows of a file.

    Attributes
    ----------
    scores : ndarray
        Higher is rarer.
    kept : Series or None
        The cells of the column asked for (identifier or labels), as they are in the file.
    """

    scores: NDArray[np.float64]
    kept: pl.Series | None


@dataclass
class Seen:
    """What was met in the file that the model did not know from training.

    Attributes
    ----------
    n_rows : int
        Rows read.
    unseen_values : Counter
        For each category column, cells whose value is new.
    extra_columns : list of str
        Columns that the model does not use.
    """

    n_rows: int = 0
    unseen_values: Counter[str] = field(default_factory=Counter)
    extra_columns: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Scoring:
    """The outcome of scoring a file.

    Attributes
    ----------
    n_rows : int
        Rows scored.
    sentence : str
        How many of them were called what.
    seen : Seen
        What was new in the file.
    """

    n_rows: int
    sentence: str
    seen: Seen


@dataclass(frozen=True)
class Evaluation:
    """Measures of a model on a file with labels, and its decisions.

    Attributes
    ----------
    estimate : Estimate
        Measures of the ranking with intervals.
    confusion : Confusion
        Rows by what they are and what they are called.
    n_unlabelled : int
        Rows left out because their target is empty.
    seen : Seen
        What was new in the file.
    """

    estimate: Estimate
    confusion: Confusion
    n_unlabelled: int
    seen: Seen

    def as_plain_data(self) -> dict[str, Any]:
        """Return the evaluation as dictionaries and numbers."""
        return {
            **self.estimate.as_plain_data(),
            **self.confusion.numbers,
            "n_rows_without_target": self.n_unlabelled,
            "unseen_values": dict(self.seen.unseen_values),
        }


def score_file(
    content: ModelFile,
    data: Path,
    out: Path,
    id_column: str | None,
    separator: str | None = None,
) -> Scoring:
    """Score every row of a file of any size into a new file, row order kept.

    Parameters
    ----------
    content : ModelFile
        The model.
    data : Path
        The rows.
    out : Path
        Parquet or CSV by its suffix. Columns: the identifier (or ``row``, counted from 1),
        ``score`` (higher is rarer, or a higher level), what each row is called (``called_rare``,
        or ``level``) and ``percentile`` (the share of the training majority, or of all training
        rows where the target has levels, with a lower score, in percent).
    id_column : str or None
        A column of `data` to carry over.
    separator : str, optional
        What separates the cells of a CSV file; by default found out.

    Raises
    ------
    InputError
        For anything wrong with the file, naming column, row and value; `out` is not touched then.
    """
    check_score_path(out, data)
    file, seen = _open(data, separator), Seen()
    decision = decision_of(content.model, content.metadata)
    if id_column is not None:
        _check_id(file, id_column, out, decision.column)
    quantiles = np.asarray(content.metadata[decision.quantiles])
    percents = np.linspace(0.0, 100.0, len(quantiles))
    n_called = np.zeros(decision.n_codes, dtype=np.intp)
    with replacing(out) as temporary, _writer(temporary) as writer:
        first_row = 1
        for batch in _scored(content, file, id_column, seen):
            called = decision.decide(batch.scores)
            rows = pl.Series("row", np.arange(first_row, first_row + len(called)))
            writer.write(
                pl.DataFrame(
                    [
                        rows if batch.kept is None else batch.kept,
                        pl.Series("score", batch.scores),
                        decision.cells(called),
                        pl.Series("percentile", np.interp(batch.scores, quantiles, percents)),
                    ]
                )
            )
            n_called += np.bincount(called, minlength=decision.n_codes)
            first_row += len(called)
        if first_row == 1:
            raise InputError(f"{data} has no rows.", "Give a file with rows.")
    return Scoring(first_row - 1, decision.sentence(n_called), seen)


def check_score_path(out: Path, data: Path) -> None:
    """Raise `InputError` when scores of `data` cannot be written to `out`."""
    if out.suffix.lower() not in SCORE_SUFFIXES:
        raise InputError(
            f"--out {out}: the name must end in .csv or .parquet, which decides the format."
        )
    check_not_input(out, "--out", {"the file to be scored": data})
    check_writable(out)


def evaluate_file(content: ModelFile, data: Path, separator: str | None = None) -> Evaluation:
    """Compare the scores of a file's rows with their labels.

    Parameters
    ----------
    content : ModelFile
        The model.
    data : Path
        Rows with the target column.
    separator : str, optional
        What separates the cells of a CSV file; by default found out.

    Raises
    ------
    InputError
        For anything wrong with the file; when it holds one class only.
    """
    file, seen = _open(data, separator), Seen()
    target = content.metadata["target"]
    batches = list(_scored(content, file, target, seen))
    if not batches:
        raise InputError(f"{data} has no rows.", "Give a file with rows.")
    labels = pl.concat([labels_as_text(batch.kept) for batch in batches if batch.kept is not None])
    scores = np.concatenate([batch.scores for batch in batches])
    decision = decision_of(content.model, content.metadata)
    y = decision.codes(labels, str(data))
    labelled = y >= 0
    y, scores = y[labelled], scores[labelled]
    return Evaluation(
        decision.estimate(y, scores),
        decision.confusion(y, scores),
        int((~labelled).sum()),
        seen,
    )


def _open(data: Path, separator: str | None) -> TableFile | SvmlightFile:
    return open_table(data, separator)


def _scored(
    content: ModelFile, file: TableFile | SvmlightFile, keep: str | None, seen: Seen
) -> Iterator[ScoredBatch]:
    """Score a file batch by batch; `seen` is filled on the way."""
    expected = content.metadata["format"]
    if isinstance(file, SvmlightFile) != (expected == "svmlight"):
        raise InputError(
            f"{file.path} is a {file.format_name} file, but the model was trained on a "
            f"{'svmlight file' if expected == 'svmlight' else 'table with named columns'}."
        )
    if isinstance(file, SvmlightFile):
        yield from _scored_sparse(content, file, keep is not None, seen)
        return
    columns: list[Column] = list(content.encoder.columns)
    _check_columns(file, columns, content.metadata, keep, seen)
    names = list(dict.fromkeys([column.name for column in columns] + ([keep] if keep else [])))
    with track("Scoring", total=file.estimate_rows()) as advance:
        for batch in file.batches(names, batch_rows_for(len(names))):
            typed = read_as_trained(batch, columns, seen.n_rows + 1)
            seen.unseen_values.update(content.encoder.count_unseen(typed))
            seen.n_rows += batch.height
            scores = content.model.score_samples(content.encoder.transform(typed))
            yield ScoredBatch(scores, batch[keep] if keep else None)
            advance(batch.height)


def _scored_sparse(
    content: ModelFile, file: SvmlightFile, keep_labels: bool, seen: Seen
) -> Iterator[ScoredBatch]:
    width = content.encoder.scaler_.n_features_in_
    with track("Scoring") as advance:
        for batch in file.batches(content.encoder.zero_based, width):
            seen.n_rows += len(batch.labels)
            scores = content.model.score_samples(content.encoder.transform(batch.X))
            yield ScoredBatch(scores, pl.Series("label", batch.labels) if keep_labels else None)
            advance(len(batch.labels))


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


def _check_id(file: TableFile | SvmlightFile, id_column: str, out: Path, decided: str) -> None:
    if isinstance(file, SvmlightFile):
        raise InputError("--id: an svmlight file has no named columns.")
    if id_column not in file.columns:
        raise InputError(
            f"--id: there is no column {id_column!r}.", name_hint(id_column, file.columns)
        )
    if id_column in ("score", decided, "percentile"):
        raise InputError(f"--id {id_column}: a column of the scores has that name.")
    if out.suffix.lower() == ".csv":
        for first in islice(file.batches([id_column], batch_rows=1), 1):
            dtype = first[id_column].dtype
            if dtype.is_nested() or dtype in _NOT_IN_CSV:
                raise InputError(
                    f"--id {id_column}: cells of type {dtype} cannot be written to a CSV file.",
                    "Write .parquet instead, or choose another column.",
                )


class _ScoreWriter(Protocol):
    def write(self, frame: pl.DataFrame) -> None: ...

    def __enter__(self) -> "_ScoreWriter": ...

    def __exit__(self, *error: object) -> None: ...


class _CsvWriter:
    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._is_first = True

    def write(self, frame: pl.DataFrame) -> None:
        # The first column is the user's own; truth values of ours are 1 and 0.
        ours = frame.columns[1:]
        flags = [pl.col(name).cast(pl.Int8) for name in ours if frame[name].dtype == pl.Boolean]
        frame.with_columns(flags).write_csv(self._file, include_header=self._is_first)
        self._is_first = False

    def __enter__(self) -> "_CsvWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


class _ParquetWriter:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None

    def write(self, frame: pl.DataFrame) -> None:
        table: pa.Table = frame.to_arrow()
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table.cast(self._writer.schema))

    def __enter__(self) -> "_ParquetWriter":
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()


def _writer(path: Path) -> _ScoreWriter:
    return _CsvWriter(path) if path.suffix.lower() == ".csv" else _ParquetWriter(path)
