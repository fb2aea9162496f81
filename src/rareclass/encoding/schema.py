"""Kinds of the columns of a stream, and the rows that do not keep to them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.target import Positive, label_cells, positives, read_rare_or_rest
from rareclass.errors import ErrorKind, InputError, first_names, missing_column, setting
from rareclass.findings import warnings_as
from rareclass.labels.spelling import one_spelling
from rareclass.tables.cells import (
    are_all_missing,
    are_empty,
    is_text_type,
    shown,
    type_name,
    writable,
)
from rareclass.tables.columns import (
    ID_LEAST_ROWS,
    STORED_INDEX,
    describe_column,
    facts_of,
    has_name_of_index,
    reading_of_type,
)
from rareclass.tables.reading import CellReading, parse_numbers, read_cells, read_strings
from rareclass.tables.text_columns import CellProfile, note_of_text, reading_of_text
from rareclass.tables.text_reader import TEXT_LIMIT, Batch, Rejected

LearnedKind = Literal["number", "category"]
Kind = LearnedKind | Literal["time", "id", "unusable"]
# First rows by which numbers that never fall are a clock, and values that are all different an
# identifier: with fewer, chance may do that.
_CLOCK_ROWS, _SURE_ROWS = 100, 1000


@dataclass(frozen=True)
class Schema:
    """The kind of every column of a stream; never changes once found.

    The kinds are of every column that is not target, id or dropped, in the order of the source. A
    column of "time" holds dates, or numbers that only rise or only fall: it is not learned from, as
    the clock of a stream only ever shows new values. Nor is an "id", as ``rareclass fit`` knows
    them: running numbers, and columns of which every row has another value. Cells of an "unusable"
    type, such as lists, are not learned from either. `readings`: how the
    cells of columns are read that are not read plainly. Dropped columns may be absent and may hold
    anything. The id column names a row, by which a label that comes later finds it. Without
    `positive` the rare label is 1, true or yes (and 0, -1, false or no are the rest). `notes` tell
    how the columns were taken.

    >>> cells = pl.DataFrame({"amount": ["3", "abc"], "y": ["0", "1"]})
    >>> batch = Batch(cells, np.array([2, 3]), "a.csv", [], 2, {})
    >>> schema = Schema("y", {"amount": "number"})
    >>> good, rejected = schema.check(batch)
    >>> good.frame.rows()
    [(3.0, 0.0)]
    >>> rejected[0].line, rejected[0].reason
    (3, "column 'amount': 'abc' is not a number")
    """

    target: str
    kinds: Mapping[str, Kind]
    dropped: tuple[str, ...] = ()
    id_column: str | None = None
    positive: Positive = ()
    notes: tuple[str, ...] = field(default=(), compare=False)
    readings: Mapping[str, CellReading] = field(default_factory=dict)

    @property
    def features(self) -> dict[str, LearnedKind]:
        """The columns to learn from with their kinds, in order."""
        return {name: kind for name, kind in self.kinds.items() if kind in ("number", "category")}

    def check(self, batch: Batch) -> tuple[Batch, list[Rejected]]:
        """Parse the cells and take out the rows that do not keep to the schema.

        Returned are the good rows in their order, and the others with the first fault of each: an
        unknown column that is not empty, a column that the batch does not have, text or an
        infinite number in a number column, a label that is neither rare nor rest, a type that holds
        nothing of the kind. In the good ones number columns are float64, category columns and the
        id words, the target float64: 1 rare, 0 rest, NaN no label yet; columns not learned from are
        left as they came.

        Notes
        -----
        A row is judged by its own cells alone, so the verdict does not depend on how the stream is
        cut into batches. A batch without the target column has rows that wait for their label.
        """
        faults: dict[int, str] = {}
        self._find_unknown(batch, faults)
        parsed: list[pl.Series] = []
        for name in self.features:
            if name not in batch.frame.columns:
                _add(faults, range(batch.n_rows), f"no column {name!r}")
            parsed.append(_parsed(_cells_of(batch, name), self.reading_of(name), faults))
        parsed.append(self._labels(batch, faults))
        if self.id_column is not None:
            ids = _cells_of(batch, self.id_column)
            parsed.append(_parsed(ids, _PLAIN["category"], faults))
        frame = batch.frame.with_columns(parsed)
        if not faults:
            return batch._replace(frame=frame), []
        keep = np.ones(batch.n_rows, dtype=np.bool_)
        keep[list(faults)] = False
        rejected = [rejected_row(batch, row, faults[row]) for row in sorted(faults)]
        return batch._replace(frame=frame.filter(keep), lines=batch.lines[keep]), rejected

    def reading_of(self, name: str) -> CellReading:
        """How the cells of a feature are read."""
        return self.readings.get(name, _PLAIN[self.kinds[name]])

    def _find_unknown(self, batch: Batch, faults: dict[int, str]) -> None:
        known = {*self.kinds, *self.dropped, self.target, self.id_column}
        # In alphabetical order: the order in which JSON rows bring new names is the batch's.
        for name in sorted(set(batch.frame.columns) - known):
            rows = (~are_empty(batch.frame[name])).arg_true()
            _add(faults, rows, f"unknown column {name!r}")

    def _labels(self, batch: Batch, faults: dict[int, str]) -> pl.Series:
        cells = _cells_of(batch, self.target)
        labels = read_rare_or_rest(cells, self.positive)
        for row in labels.is_null().arg_true():
            cell = shown(cells[row])
            reason = (
                f"column {self.target!r}: {cell} is neither 1, true or yes nor 0, -1, false or "
                f"no; name the rare label with {setting('positive')}"
            )
            faults.setdefault(row, reason)
        return labels.fill_null(math.nan).alias(self.target)


def find_schema(
    batch: Batch,
    target: str,
    *,
    id_column: str | None = None,
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    categories: Collection[str] = (),
    positive: Positive = None,
    time_column: str | None = None,
) -> Schema:
    """Find what each column holds from the first rows of a stream.

    The kinds are those that ``rareclass fit`` finds in a file (`reading_of_text`), with truth
    values as the numbers 0 and 1. A few cells of text (5 percent) among many different numbers are
    mistakes: such a column is a number, with a note, and rows with text in it are rejected. A
    column that is empty in all of these rows is taken for a number, with a note. Clocks (such as
    `time_column`) and identifiers are not learned from, with a note, unless they are to be kept or
    are categories.

    A stream that is started again must take its schema from the checkpoint, not from the rows after
    it. The first rows need not show the label `positive`. Raises `InputError` when there are no
    rows, a named column is not there, nothing is left to learn from, or `positive` is needed to
    tell the labels apart.

    >>> cells = pl.DataFrame({"amount": ["3", ""], "y": ["0", "1"]})
    >>> find_schema(Batch(cells, np.array([2, 3]), "a.csv", [], 2, {}), "y").features
    {'amount': 'number'}
    """
    if not batch.n_rows:
        raise ErrorKind.TOO_FEW_ROWS.error(
            f"{batch.file}: no row could be read to find the columns from.",
            batch.rejected[0].reason if batch.rejected else "",
        )
    by_id = () if id_column is None else (id_column,)
    for name in (target, *by_id, *drop, *keep, *categories):
        if name not in batch.frame.columns:
            raise missing_column(batch.file, name, batch.frame.columns)
    notes = _check_labels(batch, target, positive)
    left_out = {target, id_column, *drop}
    kinds: dict[str, Kind] = {}
    readings: dict[str, CellReading] = {}
    for cells in batch.frame:
        name = cells.name
        if name not in left_out:
            found = _found(cells, batch.lines, forced=name in categories)
            if name not in (*categories, *keep):
                found = _not_learned(cells, found, name == time_column)
            kinds[name] = found.kind
            notes += [found.note] if found.note else []
            if found.reading not in (None, _PLAIN[found.kind]):
                readings[name] = found.reading
    schema = Schema(
        target, kinds, tuple(drop), id_column, positives(positive), tuple(notes), readings
    )
    if not schema.features:
        raise ErrorKind.MISSING_COLUMN.error(
            f"{batch.file} has no column to learn from.", " ".join(notes)
        )
    return schema


def rejected_row(batch: Batch, row: int, reason: str) -> Rejected:
    """Return the record of a row that is turned away; its cells stand in `text` as JSON.

    >>> rows = Batch(pl.DataFrame({"a": [1.0, None]}), np.array([2, 3]), "a.csv", [], 2, {})
    >>> rejected_row(rows, 1, "a is empty")
    Rejected(file='a.csv', line=3, reason='a is empty', text='{"a": null}')
    """
    cells = batch.frame.row(row, named=True)
    # NaN is not JSON; it stands for an empty cell.
    plain = {name: None if cell != cell else cell for name, cell in cells.items()}
    text = writable(json.dumps(plain, ensure_ascii=False, default=str))
    return Rejected(batch.file, int(batch.lines[row]), reason, text[:TEXT_LIMIT])


def _check_labels(batch: Batch, target: str, positive: Positive) -> list[str]:
    """Return notes on the labels; refuses those of which none says whether it is rare."""
    cells = label_cells(batch.frame[target])
    labels = read_rare_or_rest(cells, positive)
    wrong = cells.filter(labels.is_null())
    known = cells.filter(labels.fill_null(math.nan).is_not_nan())
    if wrong.is_empty() or len(known):
        notes: list[str] = []
        with warnings_as(notes):
            one_spelling(Counter(known))
        return notes
    names = sorted(set(map(shown, wrong)))
    listed = first_names(names, 6)
    raise ErrorKind.LABELS.error(
        f"{batch.file}: column {target!r} holds {listed}, and which of them is rare is not known.",
        f"Name the rare label with {setting('positive', 'LABEL')}.",
        column=target,
    )


class _ColumnOfStream(NamedTuple):
    kind: Kind
    reading: CellReading | None = None
    note: str = ""


def _found(cells: pl.Series, lines: NDArray[np.int64], *, forced: bool) -> _ColumnOfStream:
    """Find the kind of a column, as that of a file."""
    name, by_type = cells.name, reading_of_type(cells.dtype)
    if by_type is None:
        words = type_name(cells.dtype)
        note = f"column {name!r} holds cells of type {words}: not learned from."
        return _ColumnOfStream("unusable", note=note)
    if by_type.reads_as == "number" and not forced and not are_all_missing(cells):
        return _ColumnOfStream("number", by_type)
    profile = CellProfile()
    profile.add(cells.cast(pl.String) if is_text_type(cells.dtype) else read_strings(cells), 0)
    if not forced and not profile.n_present:
        note = f"column {name!r} is empty in the first {len(cells):,} rows: read as a number."
        note += f" Text in it will be rejected; {setting('categories', name)} takes words."
        return _ColumnOfStream("number", note=note)
    found = reading_of_text(profile, is_category=forced)
    if forced:
        return _ColumnOfStream("category", found.reading)
    if found.reading.reads_as == "date" or by_type.reads_as == "date":
        return _ColumnOfStream("time", note=f"column {name!r} holds dates: not learned from.")
    note_of_column = note_of_text(name, profile, found)
    told = "" if note_of_column is None else note_of_column.words
    if found.reading.reads_as == "number":
        return _ColumnOfStream("number", found.reading, told)
    n_numbers = profile.n_present - profile.n_text
    if n_numbers > profile.n_text > 0:
        note = f"column {name!r} holds {n_numbers:,} numbers but, in line "
        note += f"{lines[profile.first_text_row]}, {shown(profile.first_text)}: read as a"
        if found.doubt != "stray words":
            return _ColumnOfStream("category", found.reading, f"{note} category.")
        note += f" number. Rows with text in it are rejected; {setting('categories', name)}"
        return _ColumnOfStream("number", note=f"{note} takes words.")
    return _ColumnOfStream("category", found.reading, told)


def _not_learned(cells: pl.Series, found: _ColumnOfStream, is_clock: bool) -> _ColumnOfStream:
    """Return a clock or an identifier as what it is, other columns as they are."""
    name = cells.name
    if has_name_of_index(name):
        note = f"column {name!r}: {STORED_INDEX}; not learned from."
        return _ColumnOfStream("id", found.reading, note)
    if is_clock and found.kind != "time":
        note = f"column {name!r} holds the times of rows: not learned from."
        return _ColumnOfStream("time", note=note)
    if found.kind == "category":
        return _words_of_rows(cells, found)
    if found.kind != "number":
        return found
    column = parse_numbers(cells, found.reading or _PLAIN["number"]).values
    is_whole = column.null_count() == 0 and bool((column == column.floor()).all())
    facts = facts_of(column)
    in_order = facts.is_in_order and not facts.n_missing and facts.low < facts.high
    of_file = describe_column(facts, found.reading, integers=is_whole)
    is_sure = in_order or facts.n_rows >= _SURE_ROWS
    kind: Kind
    if of_file.kind == "id-like" and is_sure:
        kind, said = "id", of_file.why_dropped
    elif in_order and facts.n_rows >= _CLOCK_ROWS and 2 * facts.n_distinct >= facts.n_rows:
        kind, said = "time", "numbers in row order, as of a clock"
    else:
        return found
    note = f"column {name!r}: {said}; not learned from ({setting('keep', name)} learns from it)."
    return _ColumnOfStream(kind, found.reading, note)


def _words_of_rows(cells: pl.Series, found: _ColumnOfStream) -> _ColumnOfStream:
    name, present = cells.name, read_strings(cells).drop_nulls()
    if len(present) < ID_LEAST_ROWS or present.n_unique() < len(present):
        return found
    note = f"column {name!r} has another word in each of the first {len(present):,} rows"
    if len(present) < _SURE_ROWS:
        note += f": it looks like an id; {setting('drop', name)} leaves it out."
        return found._replace(note=found.note or note)
    note += f"; not learned from ({setting('keep', name)} learns from it)."
    return _ColumnOfStream("id", found.reading, note)


_PLAIN = {
    "number": CellReading("number"),
    "category": CellReading("string"),
    "time": CellReading("date"),
    "id": CellReading("string"),
    "unusable": CellReading("string"),
}


def _cells_of(batch: Batch, name: str) -> pl.Series:
    """Return the cells of a column, all empty where the batch has none of that name."""
    if name in batch.frame.columns:
        return batch.frame[name]
    return pl.repeat(None, batch.n_rows, dtype=pl.String, eager=True).alias(name)


def _parsed(cells: pl.Series, reading: CellReading, faults: dict[int, str]) -> pl.Series:
    """Read the cells of a column; note the first fault of each row."""
    name = cells.name
    if are_all_missing(cells):
        return read_cells(cells, reading, 0)
    try:
        if reading.reads_as == "string":
            return read_strings(cells, reading)
        values, is_text, is_too_large = parse_numbers(cells, reading)
    except InputError as error:  # a type of other cells
        _add(faults, (~are_empty(cells)).arg_true(), error.message.removesuffix("."))
        return read_cells(cells.clear(len(cells)), reading, 0)
    for row in is_text.arg_true():
        faults.setdefault(row, f"column {name!r}: {shown(cells[row])} is not a number")
    for row in is_too_large.arg_true():
        reason = f"column {name!r}: {shown(cells[row])} is too large to compute with"
        if math.isinf(values[row]):
            reason = f"column {name!r} is infinite"
        faults.setdefault(row, reason)
    return values


def _add(faults: dict[int, str], rows: Iterable[int], reason: str) -> None:
    for row in rows:
        faults.setdefault(row, reason)
