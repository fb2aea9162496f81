"""A table read for training: typed columns, what each holds, and the labels as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import polars as pl

from rareclass.encoding.target import labels_as_text
from rareclass.errors import InputError, column_hint
from rareclass.findings import Finding, FindingKind, warn
from rareclass.tables import TableWarning
from rareclass.tables.cells import (
    CellProfile,
    are_plain,
    is_text_type,
    read_dates,
    read_numbers,
    read_strings,
)
from rareclass.tables.columns import (
    Column,
    ColumnFacts,
    Reading,
    describe_column,
    facts_of,
    not_learned_from,
    note_of_codes,
    note_of_numbers,
    type_of_text_column,
)
from rareclass.tables.table_file import BATCH_ROWS, TableFile

# Of fewer rows than these a look at each column takes longer than one at all of the cells.
_FEW_ROWS = 1000


@dataclass(frozen=True)
class TrainingTable:
    """A training file in memory.

    `frame` has the used columns as float64, datetime or string; `columns` every column that was
    looked at; `beside` those asked for whether they are used or not; `number` that of each row in
    the file, from 1 on. Rows with an empty target are left out everywhere.
    """

    frame: pl.DataFrame
    columns: list[Column]
    labels: pl.Series
    n_unlabelled: int
    beside: list[pl.Series]
    number: pl.Series


@dataclass(frozen=True)
class ReadingPlan:
    """How the columns of a training file are read, after a first look at their text.

    `names` are the columns to look at, without the target; `integers` those whose numbers are whole
    as written in the file.
    """

    file: TableFile
    names: list[str]
    target: str
    readings: dict[str, Reading]
    formats: dict[str, str | None]
    integers: set[str]
    categories: Sequence[str]
    keep: Sequence[str]

    def typed_batches(
        self, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[pl.DataFrame, pl.Series]]:
        """Yield typed columns and labels as text, in file order."""
        first_row = 1
        for batch in self.file.batches([*self.names, self.target], batch_rows):
            cells = [
                _read_cells(batch[name], self.readings.get(name), self.formats[name], first_row)
                for name in self.names
            ]
            yield pl.DataFrame(cells), labels_as_text(batch[self.target])
            first_row += batch.height

    def describe(self, facts: Iterable[ColumnFacts]) -> list[Column]:
        """Say what each column holds.

        Raises `InputError` when none can be learned from.
        """
        columns = [
            describe_column(
                known,
                known.name in self.integers,
                self.formats[known.name],
                known.name in self.categories,
                known.name in self.keep,
            )
            for known in facts
        ]
        if not any(column.is_used for column in columns):
            raise InputError(
                f"No column of {self.file.path} can be learned from: all are constant or id-like."
            )
        return columns


def read_training_table(
    file: TableFile,
    target: str,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    keep: Sequence[str] = (),
    beside: Mapping[str, str | None] = MappingProxyType({}),
) -> TrainingTable:
    """Read a file for training.

    The file is read twice: once to find what the columns of text hold, once to keep their cells
    as that, so that a number never takes the room of a word. `beside` names columns that say
    something of the rows, with the words for it where they are not to be learned from.

    Raises `InputError` for unknown column names, cells that cannot be used, no rows or no usable
    column.
    """
    plan = plan_reading(file, target, drop, categories, keep)
    batches = list(plan.typed_batches())
    frame = pl.concat([typed for typed, _ in batches], rechunk=True)
    labels = pl.concat([named for _, named in batches], rechunk=True)
    del batches
    columns = [
        not_learned_from(column, words) if (words := beside.get(column.name)) else column
        for column in plan.describe(facts_of(cells) for cells in frame)
    ]
    used = [column.name for column in columns if column.is_used]
    labelled = labels.is_not_null()
    return TrainingTable(
        frame.select(used).filter(labelled),
        columns,
        labels.filter(labelled),
        int((~labelled).sum()),
        [frame[name].filter(labelled) for name in beside],
        labelled.arg_true() + 1,
    )


def plan_reading(
    file: TableFile,
    target: str,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> ReadingPlan:
    """Check the names and look once at every cell of text, to know what to read it as.

    `categories` are taken as such whatever they hold, `keep` is learned from even if it looks like
    identifiers. Raises `InputError` for unknown column names, text that cannot be used, or no rows.
    """
    _check_names(file.columns, [target], "--target")
    _check_names(file.columns, drop, "--drop")
    _check_names(file.columns, categories, "--category")
    _check_names(file.columns, keep, "--keep")
    if target in drop:
        raise InputError(f"Column {target!r} is both --target and --drop.")
    for name in keep:
        if name in drop or name == target:
            other = "--drop" if name in drop else "--target"
            raise InputError(f"Column {name!r} is both --keep and {other}.")
    names = [name for name in file.columns if name != target and name not in drop]
    if not names:
        raise InputError(f"{file.path} has no column besides the target.")
    profiles, integers = _profile(file, names)
    readings: dict[str, Reading] = {}
    formats: dict[str, str | None] = dict.fromkeys(names)
    for name, profile in profiles.items():
        readings[name], formats[name] = type_of_text_column(name, profile, categories)
        if name not in categories:
            _tell_of(name, profile, readings[name])
        if profile.n_integers == profile.n_present:
            integers.add(name)
    readings |= dict.fromkeys(categories, "string")
    return ReadingPlan(file, names, target, readings, formats, integers, categories, keep)


def _tell_of(name: str, profile: CellProfile, reads_as: Reading) -> None:
    """Warn of a column that may be meant otherwise than it is read."""
    tellers = {
        "string": (note_of_numbers, FindingKind.MOSTLY_NUMBERS),
        "number": (note_of_codes, FindingKind.CODES),
    }
    if reads_as not in tellers:
        return
    told, kind = tellers[reads_as]
    note = told(name, profile)
    if note is not None:
        warn(note, TableWarning, Finding(kind, {"column": name}))


def read_as_trained(batch: pl.DataFrame, columns: Iterable[Column], first_row: int) -> pl.DataFrame:
    """Return the trained-on columns of a batch, typed as they were in training.

    `first_row` is the row in the file of the first one, counted from 1, for messages. Raises
    `InputError` at a cell that does not fit, naming column, row and value.
    """
    columns = list(columns)
    if batch.height <= _FEW_ROWS and _are_as_trained(batch, columns):
        return batch
    return pl.DataFrame(
        [
            _read_cells(batch[column.name], column.reads_as, column.date_format, first_row)
            for column in columns
        ]
    )


def _are_as_trained(batch: pl.DataFrame, columns: list[Column]) -> bool:
    """Whether a batch is known at one look to be what `read_as_trained` would make of it."""
    return (
        batch.columns == [column.name for column in columns]
        and all(column.reads_as == "number" for column in columns)
        and all(dtype == pl.Float64 for dtype in batch.dtypes)
        and are_plain(batch)
    )


def _check_names(known: Sequence[str], wanted: Sequence[str], option: str) -> None:
    for name in wanted:
        if name not in known:
            raise InputError(
                f"{option}: there is no column {name!r}.", column_hint(name, known, option)
            )


def _profile(file: TableFile, names: list[str]) -> tuple[dict[str, CellProfile], set[str]]:
    """Look once at every text cell; also return the columns stored as whole numbers."""
    profiles: dict[str, CellProfile] = {}
    integers: set[str] = set()
    first_row = 1
    for batch in file.batches(names):
        for cells in batch:
            if cells.dtype.is_integer():
                integers.add(cells.name)
            if is_text_type(cells.dtype):
                profile = profiles.setdefault(cells.name, CellProfile())
                profile.add(cells.cast(pl.String), first_row)
        first_row += batch.height
    if first_row == 1:
        raise InputError(f"{file.path} has columns but no rows.", "Give a file with rows.")
    return profiles, integers


def _read_cells(
    cells: pl.Series, reads_as: Reading | None, date_format: str | None, first_row: int
) -> pl.Series:
    """Read cells as the given type; None keeps what the type in the file says."""
    if reads_as is None:
        if cells.dtype.is_nested() or cells.dtype == pl.Binary:
            return cells
        temporal = cells.dtype.is_temporal() and cells.dtype not in (pl.Duration, pl.Time)
        reads_as = "date" if temporal else "number"
        if cells.dtype == pl.Boolean:
            # A text file would say true and false: read both alike.
            reads_as = "string"
    if cells.dtype == pl.Time:
        cells = cells.cast(pl.Duration)
    if reads_as == "string":
        return read_strings(cells)
    if reads_as == "date":
        return read_dates(cells, date_format, first_row)
    return read_numbers(cells, first_row)
