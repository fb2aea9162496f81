"""A table to review: typed columns, keys of the rows, labels where there are some."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.target import (
    absent_label,
    label_counts,
    one_spelling,
    positives,
    rare_class_among,
)
from rareclass.encoding.training_table import plan_reading
from rareclass.errors import ErrorKind, InputError, name_hint
from rareclass.hunt.table import read_typed
from rareclass.labels.states import UNKNOWN
from rareclass.model.model import Model
from rareclass.review.journal import ReviewJournal
from rareclass.review.records import Header, fingerprint_of
from rareclass.tables.columns import Column
from rareclass.tables.table_file import TableFile, named_columns, open_rows


@dataclass(frozen=True)
class ReviewTable:
    """A table in memory, of which a person checks rows."""

    file: TableFile  # to read the cells of listed rows as they are written
    frame: pl.DataFrame  # columns that are learned from
    columns: list[Column]  # likewise
    target: str
    key: str | None
    keys: list[str]
    labels: pl.Series  # as text, null where unknown
    fingerprint: str

    def codes(self, header: Header) -> NDArray[np.int16]:
        """Return the codes of the recorded labels: -1 for unknown ones.

        Raises `InputError` at a label that the journal does not have.
        """
        code = {label: k for k, label in enumerate(header.rare, start=1)}
        code |= dict.fromkeys(header.rest, 0)
        for label in label_counts(self.labels.drop_nulls()):
            if label not in code:
                raise InputError(
                    f"Column {self.target!r} holds {label!r}, which the journal does not have.",
                    name_hint(label, code, "Its labels are"),
                    ErrorKind.LABELS,
                    column=self.target,
                    value=label,
                )
        codes = self.labels.replace_strict(code, default=UNKNOWN, return_dtype=pl.Int16)
        return codes.fill_null(UNKNOWN).to_numpy()


def read_review_table(
    table: Any,
    target: str,
    key: str | None = None,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    keep: Sequence[str] = (),
    separator: str | None = None,
) -> ReviewTable:
    """Read a table or a file for a review; a table without the target has no labels yet.

    Raises `InputError` for whatever is wrong with the file, its columns or its keys.
    """
    file = named_columns(open_rows(table, separator))
    if target not in file.columns:
        unknown = pl.lit(None, pl.String).alias(target)
        file = named_columns(open_rows(pl.concat(list(file.batches())).with_columns(unknown)))
    if key == target:
        raise InputError(
            f"--id: column {key!r} holds the labels.",
            "Name a column whose values differ in all rows, or none.",
            ErrorKind.COMBINATION,
            column=key,
        )
    if key is not None:
        named_columns(file, [key], "--id")
    left_out = [*drop, *({key} - {*drop} if key else ())]
    plan = plan_reading(file, target, left_out, categories, keep)
    frame, columns, labels = read_typed(plan)
    keys, parts = _keys(file, key, [name for name in file.columns if name != target])
    return ReviewTable(
        file,
        frame,
        [each for each in columns if each.is_used],
        target,
        key,
        keys,
        labels.replace(one_spelling(label_counts(labels.drop_nulls()))),
        fingerprint_of(parts),
    )


def _keys(file: TableFile, key: str | None, names: list[str]) -> tuple[list[str], list[str]]:
    """Return the keys of the rows, and the texts of which their fingerprint is."""
    if key is None:
        text = "".join(batch.write_csv(include_header=False) for batch in file.batches(names))
        n_rows = sum(batch.height for batch in file.batches(names[:1]))
        lines = [f"{number}:{line}" for number, line in enumerate(text.split("\n"))]
        return [str(number) for number in range(1, n_rows + 1)], lines
    cells = pl.concat([batch[key].cast(pl.String) for batch in file.batches([key])])
    wrong = (cells.is_null() | cells.is_duplicated()).arg_true()
    if len(wrong):
        raise InputError(
            f"Column {key!r} does not name row {wrong[0] + 1}: {cells[wrong[0]]!r} is empty or not "
            "the only one.",
            "Name a column whose values differ in all rows, or none.",
            ErrorKind.ROWS,
            column=key,
            row=wrong[0] + 1,
            value=cells[wrong[0]],
        )
    return cells.to_list(), cells.to_list()


def open_journal(
    path: str | Path,
    table: ReviewTable,
    model: Model | None = None,
    rare: str | Sequence[str] | None = None,
    rest: Sequence[str] = (),
) -> ReviewJournal:
    """Open the journal of a table, or start one; further labels are added to one that is there.

    Rare are the labels named by `rare`, else those of the model, else those of `rare_class_among`
    in the table. All others of the table and of the model, and those named by `rest`, are not rare.

    Raises `InputError` where the journal is about another table or other labels, or it is not known
    which label is rare.
    """
    if Path(path).exists():
        journal = ReviewJournal(path)
        journal.check_table(table.target, table.key, table.fingerprint)
        for label in positives(rare):
            journal.add_label(label, is_rare=True)
        for label in rest:
            journal.add_label(label, is_rare=False)
    else:
        is_rare, others = _labels(table, model, positives(rare), rest)
        header = Header(
            table.target, is_rare, others, len(table.keys), table.fingerprint, table.key
        )
        journal = ReviewJournal.create(path, header)
    if model is not None and not {*model.rare_class.labels} <= {*journal.header.rare}:
        raise InputError(
            f"The rare class of the model is {', '.join(model.rare_class.labels)}, that of "
            f"{journal.path} is {', '.join(journal.header.rare)}.",
            "Give the model of the journal's target, or start another journal.",
            ErrorKind.COMBINATION,
        )
    return journal


def _labels(
    table: ReviewTable, model: Model | None, named: tuple[str, ...], rest: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rare labels of a new journal, and the others."""
    counts = label_counts(table.labels.drop_nulls())
    of_model = () if model is None else model.rare_class.labels
    rare = named or of_model
    if not rare and len(counts) > 1:
        rare = rare_class_among(counts, None).labels
    if not rare:
        raise InputError(
            f"Column {table.target!r} does not say which label is rare: it has "
            f"{len(counts)} labels.",
            "Name the rare one: --positive LABEL.",
            ErrorKind.LABELS,
            column=table.target,
        )
    absent = [label for label in named if counts and label not in counts and label not in of_model]
    if absent:
        raise absent_label("--positive", absent[0], counts, table.target)
    others = [label for label in (*rest, *counts) if label not in rare or label in rest]
    if model is not None and model.rare_class.rest_label not in rare:
        others.append(model.rare_class.rest_label)
    return rare, tuple(dict.fromkeys(others)) or ("0" if rare[0] == "1" else "rest",)
