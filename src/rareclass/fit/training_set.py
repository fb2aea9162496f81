"""The rows to learn from: read, labels understood, copies collapsed; in memory or on disk.

A copy of a training row that is held out would flatter the model. In a table of few codes, though,
rows recur because customers, items or shops do: new rows will too, and to hold all of them out
together would belittle the model. Rows that recur have labels of their own, copies have one label.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from rareclass.encoding.encoders import SparseEncoder, TableEncoder, TypedColumns, encoded_width
from rareclass.encoding.target import Positive, label_counts, labels_as_text
from rareclass.encoding.training_table import (
    ReadingPlan,
    plan_reading,
    read_training_table,
    stream_training_table,
)
from rareclass.encoding.typed_table import distinct_rows, groups_of_equal
from rareclass.errors import ErrorKind, name_hint, named_twice, no_rows, setting
from rareclass.fit import EstimateSettings
from rareclass.fit.auto_method import AutoMethod
from rareclass.fit.method import Method, TableSize
from rareclass.fit.rows_on_disk import MOST_SAMPLED, RowsOnDisk, equal_rows_on_disk, sample_of
from rareclass.model.targets import FoundLabels, RareClassFacts, TargetFacts
from rareclass.model.threshold import DecisionRule
from rareclass.rows.source import equal_rows
from rareclass.tables import ColumnSettings
from rareclass.tables.columns import Column
from rareclass.tables.reading import group_words, times_of
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, fetch, named_columns

Rows: TypeAlias = pl.DataFrame | sparse.csr_matrix | RowsOnDisk


@dataclass(frozen=True)
class FitSettings(EstimateSettings, ColumnSettings):
    """How to train."""

    target: str | None = None  # not needed for svmlight
    positive: Positive = None  # label of the rare class, or several; by default the rarer of two
    method: Method = field(default_factory=AutoMethod)
    weigh_copies: bool = True  # a row that stands for copies counts as many, or once
    seed: int = 0  # of the split, the folds and the encoders
    refit: bool = True  # the saved model learns from the rows held out for the estimate as well
    kernel_memory: int = 2 << 30  # bytes beside the encoded rows
    on_disk: bool = False  # the rows stay there and are read in pieces
    most_sampled: int = MOST_SAMPLED  # rows that the encoder is then fitted on
    scratch: Path | None = None  # folder for them; None: $TMPDIR, else /var/tmp
    baseline: bool = False  # whether plain methods are tried on the held-out rows
    rule: DecisionRule | None = None  # what the threshold keeps; None: see `default_thresholds`
    prevalence: float | None = None  # share of rare rows where the model will be used
    report: bool = False  # whether a page on the held-out rows will be written

    @property
    def of_held_out(self) -> str:
        """Setting that needs held-out rows of a rare class, in words; empty for none."""
        if self.rule is None:
            return setting("report") if self.report else ""
        return self.rule.rule.words

    @property
    def columns_named(self) -> list[tuple[str, str]]:
        """Settings that name a column beside the features, and the name of each."""
        costs = [] if self.rule is None else self.rule.columns
        given = [("id_column", self.id_column), *(("costs", name) for name in costs)]
        given += [("time", self.time), ("groups", self.groups)]
        return [(option, name) for option, name in given if name is not None]

    @property
    def beside(self) -> dict[str, str | None]:
        """Columns that are needed besides what is learned from, and why one is not learned from."""
        why = {"groups": "dropped: column of groups", "id_column": "dropped: column of identifiers"}
        found = {name: why.get(option) for option, name in self.columns_named}
        found |= {name: f"dropped: {setting('drop')}" for name in self.drop if name in found}
        return {name: None if name in self.keep else words for name, words in found.items()}


@dataclass(frozen=True)
class TrainingSet:
    """Rows ready for training."""

    rows: Rows
    y: NDArray[np.int16]
    weight: NDArray[np.float64] | None  # copies of each row, where there were and they count
    target: TargetFacts
    columns: list[Column]  # empty for svmlight
    n_unlabelled: int = 0  # left out for want of a target
    n_copies: int = 0  # of other rows: in ``weight``, or dropped
    zero_based: bool = True  # whether an svmlight file numbers its first feature 0
    beside: pl.DataFrame | None = None  # columns that rows are held out by, or judged with
    groups: NDArray[Any] | None = None  # of each row by its column, as words
    time: NDArray[Any] | None = None  # of each row by its column, as `times_of` reads it
    number: NDArray[np.int64] | None = None  # of each row in the file, from 1 on
    which: NDArray[np.int16] | None = None  # position of the class of rare rows, of several

    @property
    def rare(self) -> NDArray[np.bool_]:
        """Mask of the rows that are not of the majority."""
        return self.y != self.target.majority

    @property
    def n_rows(self) -> int:
        """Number of rows with a target, copies included."""
        return sum(self.target.label_counts.values())

    @property
    def size(self) -> TableSize:
        """The numbers that say how long a method will take."""
        n_rows, is_sparse = len(self.y), sparse.issparse(self.rows)
        n_columns: float = sum(map(encoded_width, self.columns))
        if is_sparse:
            n_columns = self.rows.nnz / max(1, n_rows)  # type: ignore[union-attr]
        return TableSize(n_rows, int(self.rare.sum()), n_columns, is_sparse)

    def new_encoder(
        self, seed: int, reads_types: bool = False, numbers: str = "quantiles"
    ) -> TableEncoder | SparseEncoder | TypedColumns:
        """Return an encoder for these rows, not fitted yet; one that hands types on if asked.

        `numbers` is how it brings numbers to one scale, as `TableEncoder` has it.
        """
        if sparse.issparse(self.rows):
            return SparseEncoder(self.zero_based)
        used = [column for column in self.columns if column.is_used]
        if reads_types:
            return TypedColumns(used)
        return TableEncoder(used, seed, numbers)

    def merged(self, group: NDArray[np.integer], weigh: bool) -> "TrainingSet":
        """Return rows of which those of a group with one label are one (`distinct_rows`)."""
        code = self.y if self.which is None else (self.which + 1).astype(np.int16)
        rows, copies, _ = distinct_rows(group, code, weigh)
        if copies is None:
            return self
        return replace(
            self.take(rows),
            weight=copies if weigh else None,
            n_unlabelled=self.n_unlabelled,
            n_copies=len(self.y) - len(rows),
        )

    def take(self, chosen: NDArray[np.int64]) -> "TrainingSet":
        """Return the chosen rows."""
        names = ("rows", "y", "weight", "beside", "groups", "time", "number", "which")
        whole = {name: vars(self)[name] for name in names}
        part: dict[str, Any] = {k: v if v is None else v[chosen] for k, v in whole.items()}
        return replace(self, **part, n_unlabelled=0, n_copies=0)


def in_memory(data: TrainingSet, seed: int) -> TrainingSet:
    """Return rows on disk as a table in memory: a sample, weighted to stand for all of them."""
    assert isinstance(data.rows, RowsOnDisk)
    sample, weight = sample_of(data.rows.most_sampled, data.rare, data.weight, seed)
    chosen = data.take(sample)
    return replace(chosen, rows=data.rows[sample].frame(), weight=weight)


def read_training_set(file: TableFile | SvmlightFile, settings: FitSettings) -> TrainingSet:
    """Read a file for training, understand its labels, and collapse copies.

    Raises `InputError` for whatever is wrong with the file or the settings.
    """
    if isinstance(file, SvmlightFile):
        return _read_sparse_set(file, settings)
    if settings.target is None:
        raise ErrorKind.SETTING.error(
            f"{setting('target')} is missing: which column holds the classes?",
            name_hint("", file.columns),
        )
    check_beside(file, settings)
    named = settings.groups  # words, as they are
    by = () if named is None or named in settings.keep else (named,)
    categories = (*settings.categories, *by)
    dropped = [name for name in settings.drop if name not in settings.beside]
    plan = plan_reading(file, settings.target, dropped, categories, settings.keep)
    if settings.on_disk:
        return _read_on_disk(plan, settings)
    table = read_training_table(plan, settings.beside)
    target = _target(file, settings.target, label_counts(table.labels), settings)
    number = table.number.cast(pl.Int64).to_numpy()
    groups, time = _groups_and_time(file, settings, number)
    data = TrainingSet(
        table.frame,
        target.codes(table.labels),
        None,
        target,
        table.columns,
        table.n_unlabelled,
        beside=pl.DataFrame(table.beside) if table.beside else None,
        groups=groups,
        time=time,
        number=number,
        which=target.which(table.labels),
    )
    compared = [each for each in table.beside if each.name != settings.id_column]
    compared += [] if groups is None else [pl.Series("\0groups", groups)]
    return data.merged(groups_of_equal(table.frame.with_columns(compared)), settings.weigh_copies)


def _groups_and_time(
    file: TableFile, settings: FitSettings, number: NDArray[np.int64]
) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Read the columns of groups and of times as they are in the file; None where none is named."""
    by, when = settings.groups, settings.time
    names = dict.fromkeys(name for name in (by, when) if name is not None)
    cells = fetch(file, list(names))[number - 1] if names else pl.DataFrame()
    groups = None if by is None else group_words(cells[by], number, setting("groups", by))
    time = None if when is None else times_of(cells[when], number, setting("time"))
    return None if groups is None else groups.to_numpy(), time


def check_beside(file: TableFile, settings: FitSettings) -> None:
    """Raise `InputError` where a column beside the features is none of the file, or not usable."""
    options = settings.columns_named
    for option, name in options:
        named_columns(file, [name], option)
        if name == settings.target:
            raise named_twice(name, option, "target")
        if name in settings.keep and name in settings.drop:
            raise named_twice(name, "keep", "drop")
    if options and settings.on_disk:
        raise ErrorKind.MEMORY.error(
            f"{setting(options[0][0])} needs the table in memory, and it is larger than a quarter "
            "of what may be used.",
            f"Give a part of the rows, or more with {setting('kernel_memory')}.",
        )


def _target(
    file: TableFile | SvmlightFile, column: str, counts: dict[str, int], settings: FitSettings
) -> TargetFacts:
    """Return what the labels mean to the method."""
    found = FoundLabels(column, counts, lambda label: _first_row(file, column, label))
    target = settings.method.read_target(found, settings.positive)
    of_rare = "" if settings.prevalence is None else setting("prevalence", settings.prevalence)
    of_rare = settings.of_held_out or of_rare
    if of_rare and not isinstance(target, RareClassFacts):
        raise ErrorKind.COMBINATION.error(
            f"{of_rare} needs a rare class, and {setting('method', settings.method.name)} learns "
            "levels.",
            f"Leave it out, or give {setting('method', 'auto')} and "
            f"{setting('positive', 'LEVEL')}.",
        )
    return target


def _first_row(file: TableFile | SvmlightFile, column: str, label: str) -> int:
    """Return the first row of a file that has a label, counted from 1."""
    first = 1
    if isinstance(file, SvmlightFile):
        parts = (pl.Series("label", batch.labels) for batch in file.batches(zero_based=True))
    else:
        parts = (batch[column] for batch in file.batches([column]))
    for cells in parts:
        found = (labels_as_text(cells) == label).arg_max()
        if found is not None and labels_as_text(cells)[found] == label:
            return first + found
        first += len(cells)
    raise ValueError(f"no row has the label {label!r}")


def _read_on_disk(plan: ReadingPlan, settings: FitSettings) -> TrainingSet:
    """Read a table of which one batch at a time is in memory."""
    table = stream_training_table(plan, settings.scratch)
    meaning = _target(plan.file, plan.target, table.counts, settings)
    labelled = np.flatnonzero(table.codes >= 0)
    different, of_row = pl.Series(table.labels), table.codes[labelled]
    which = meaning.which(different)
    used = [column.name for column in table.columns if column.is_used]
    rows = RowsOnDisk(table.cells, used, labelled, settings.most_sampled, settings.scratch)
    data = TrainingSet(
        rows,
        meaning.codes(different)[of_row],
        None,
        meaning,
        table.columns,
        len(table.codes) - len(labelled),
        number=labelled + 1,
        which=None if which is None else which[of_row],
    )
    return data.merged(equal_rows_on_disk(rows), settings.weigh_copies)


def _read_sparse_set(file: SvmlightFile, settings: FitSettings) -> TrainingSet:
    named = [
        (each, name) for each in ("drop", "keep", "categories") for name in vars(settings)[each]
    ]
    for option, name in [*named, *settings.columns_named]:
        named_columns(file, [name], option)
    batch, zero_based = file.read()
    if not len(batch.labels):
        raise no_rows(file.path)
    labels = labels_as_text(pl.Series("label", batch.labels))
    target = _target(file, "label", label_counts(labels), settings)
    batch.X.sum_duplicates()
    batch.X.eliminate_zeros()
    data = TrainingSet(batch.X, target.codes(labels), None, target, [], zero_based=zero_based)
    return data.merged(equal_rows(batch.X)[1], settings.weigh_copies)
