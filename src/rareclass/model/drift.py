"""Drift of new rows from training: their columns, cells unlike training, and the rate of alerts.

The cells of a column are counted in the bins of training (`rareclass.model.columns`). The
population stability index of the counts says how far the column has moved (docs/decisions/0058).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.table_statistics import UnlikeCells
from rareclass.errors import ErrorKind, InputError, setting
from rareclass.metrics import Interval
from rareclass.metrics.column_drift import (
    MOVED,
    MOVED_FAR,
    IndexByChance,
    population_stability_index,
)
from rareclass.model.columns import TrainedColumn
from rareclass.stored import plain_data
from rareclass.table_block import TableBlock
from rareclass.tables.reading import read_cells

Floats = NDArray[np.float64]

# Of the cells of any column: no more may be unlike training, or empty beyond those of training.
MOST_UNLIKE = 0.10
# Chance that a file of rows like those of training has a column that is called moved, at most.
ERROR = 0.01
# Shares of the error of a column: its index; cells unlike training and empty ones, each.
_OF_INDEX, _OF_SHARES = 0.8, 0.1
# Alerts so many times as frequent as held out, or as rare, and beyond what chance explains.
MOST_TIMES = 2.0
# Rows unlike training that are named in JSON, at most.
MOST_ROWS = 100
# The rate of alerts of so few rows tells little, unless it differs.
FEW_ROWS = 10


@dataclass(frozen=True)
class ColumnDrift:
    """A column of new rows compared with the same column of training.

    Attributes
    ----------
    name, kind : str
    missing_before, missing_now : float or None
        Share of empty cells.
    outside : float
        Share of the new cells beyond the range of training, or with words that training lacks.
    stability_index : float or None
        `population_stability_index` of the new rows against training; None where the model does not
        know how its cells were distributed.
    chance : IndexByChance or None
        Index that rows like those of training seldom exceed: see `ERROR`.
    is_unlike : bool
        Whether a tenth more of the cells than in training, and more than chance explains, are empty
        or unlike all of training.
    is_absent : bool
        Whether the new rows lack the column.
    is_used : bool
        Whether the model learned from the column; of constant ones it knows the value alone.
    """

    name: str
    kind: str
    missing_before: float | None = None
    missing_now: float | None = None
    outside: float = 0.0
    stability_index: float | None = None
    chance: IndexByChance | None = None
    is_unlike: bool = False
    is_absent: bool = False
    is_used: bool = True

    @property
    def verdict(self) -> str:
        """Say in a word how far the column has moved; empty where that is not known."""
        if self.is_absent:
            return "absent"
        if self.is_unlike:
            return "moved far"
        if self.stability_index is None:
            return ""
        if self.stability_index < MOVED or (
            self.chance is not None and not self.chance.is_exceeded_by(self.stability_index)
        ):
            return "steady"
        return "moved far" if self.stability_index >= MOVED_FAR else "moved"

    @property
    def is_far(self) -> bool:
        """Say whether the column is absent or has moved far."""
        return self.verdict in ("absent", "moved far")

    @property
    def words(self) -> str:
        """Say what has changed: the index, and cells that are empty or unlike training."""
        if self.is_absent:
            return "absent"
        parts = [] if self.stability_index is None else [f"PSI {self.stability_index:.2f}"]
        now, before = self.missing_now or 0.0, self.missing_before or 0.0
        if abs(now - before) >= 0.01:
            parts.append(f"{now:.0%} empty, {before:.0%} in training")
        if self.outside >= 0.01:
            parts.append(f"{self.outside:.0%} unlike training")
        return ", ".join(parts)

    def as_plain_data(self) -> dict[str, Any]:
        """Return the comparison as numbers and words."""
        return {
            "column": self.name,
            "verdict": self.verdict or None,
            "stability_index": self.stability_index,
            "index_by_chance": 0.0 if self.chance is None else self.chance.index,
            "empty": self.missing_now,
            "empty_in_training": self.missing_before,
            "unlike_training": self.outside,
        }


class ColumnTracker:
    """Counts of the cells of new rows in the bins of training, batch by batch.

    Without columns of training (None) none is wanted: `is_wanted`. Counting takes a fourth of the
    time of scoring a row.
    """

    def __init__(self, trained: Sequence[TrainedColumn] | None = None) -> None:
        self.is_wanted = trained is not None
        self._trained = {each.name: each for each in trained or ()}
        self._counts: dict[str, Floats] = {}

    @property
    def unused(self) -> set[str]:
        """Columns that are not learned from, and are read to be compared alone."""
        return {each.name for each in self._trained.values() if each.reading is not None}

    def add(self, rows: pl.DataFrame) -> None:
        """Count typed rows."""
        for cells in rows:
            if (trained := self._trained.get(cells.name)) is not None:
                self._add(trained, trained.bins.counts(cells))

    def add_unused(self, rows: pl.DataFrame) -> None:
        """Count raw cells of the columns that are not learned from, as they had one value."""
        for cells in rows:
            trained = self._trained.get(cells.name)
            if trained is None or trained.reading is None:
                continue
            try:
                found = trained.bins.counts(read_cells(cells, trained.reading, 1))
            except InputError:  # cells that cannot be read are unlike those of training
                found = trained.bins.counts(cells.clear())
                found[-2:] = len(cells) - cells.null_count(), cells.null_count()
            self._add(trained, found)

    def _add(self, trained: TrainedColumn, found: Floats) -> None:
        self._counts[trained.name] = self._counts.get(trained.name, 0.0) + found

    def emptied(self) -> Counter[str]:
        """Return the empty cells of columns that had none in training."""
        full = [each.name for each in self._trained.values() if each.missing == 0.0]
        return +Counter({name: int(self._counts.get(name, [0])[-1]) for name in full})

    def drifts(self, outside: Mapping[str, float]) -> list[ColumnDrift]:
        """Compare every column that was learned from, and others of one value that are there.

        `outside` are shares of cells that an encoder says are unlike training.
        """
        error = ERROR / max(len(self._trained), 1)
        return [
            _compared(each, self._counts.get(each.name), outside.get(each.name, 0.0), error)
            for each in self._trained.values()
            if each.reading is None or each.name in self._counts
        ]


def _compared(
    trained: TrainedColumn, found: Floats | None, outside: float, error: float
) -> ColumnDrift:
    """Compare a column that chance alone calls moved with a probability of at most `error`."""
    about = (trained.name, trained.kind, trained.missing)
    if found is None:
        return ColumnDrift(*about, is_absent=True)
    n, before = max(found.sum(), 1.0), trained.counts
    share, empty = max(outside, float(found[-2] / n)), float(found[-1] / n)
    if before is None or not before.sum():
        is_unlike = share > MOST_UNLIKE or (trained.missing == 0.0 and empty > MOST_UNLIKE)
        return ColumnDrift(*about, empty, share, is_unlike=is_unlike)
    is_there = found + before > 0
    grouped, unlike = trained.grouped, max(float(before[-2]), trained.n_alone)
    is_unlike = any(
        _exceeds(now / alike, n / alike, then / alike, before.sum() / alike, _OF_SHARES * error)
        for now, then, alike in (
            (share * n, unlike, grouped.alike_unlike),
            (float(found[-1]), float(before[-1]), grouped.alike_empty),
        )
    )
    found, before = found / grouped.alike, before / grouped.alike
    return ColumnDrift(
        *about,
        empty,
        share,
        population_stability_index(found[is_there], before[is_there]),
        IndexByChance.of(found, before, _OF_INDEX * error),
        is_unlike,
        is_used=trained.reading is None,
    )


def _exceeds(now: float, n_now: float, then: float, n_then: float, level: float) -> bool:
    """Say whether a share is a tenth larger than before, and more than chance (Fisher's test)."""
    if now / n_now - then / n_then <= MOST_UNLIKE:
        return False
    k, n = round(now), round(n_now)
    marked, every = round(then) + k, round(n_then) + n
    from scipy.stats import hypergeom  # takes as long to import as all else that scores a row

    return bool(hypergeom.sf(k - 1, every, marked, n) <= level)


def drift_block(shown: Sequence[ColumnDrift]) -> TableBlock:
    """Return a table of how far columns have moved."""

    def shares(values: Iterable[float | None]) -> list[str]:
        known = zip(shown, values, strict=True)
        return ["" if each.is_absent or share is None else f"{share:.1%}" for each, share in known]

    columns = {
        "Column": [each.name for each in shown],
        "Verdict": [each.verdict or "not known" for each in shown],
        "PSI": ["" if (psi := each.stability_index) is None else f"{psi:.2f}" for each in shown],
        "Empty": shares(each.missing_now for each in shown),
        "Empty before": shares(each.missing_before for each in shown),
        "New values": shares(each.outside for each in shown),
    }
    return TableBlock.of("", columns)


def worst_first(columns: Sequence[ColumnDrift]) -> list[ColumnDrift]:
    """Sort by verdict, then index, then the share outside of training; unknown ones come last."""
    order = ("absent", "moved far", "moved", "steady", "")
    return sorted(
        columns,
        key=lambda each: (order.index(each.verdict), -(each.stability_index or 0.0), -each.outside),
    )


@dataclass
class InputSummary:
    """Counts of rows that were scored, and of cells that are unlike training."""

    n_rows: int = 0
    n_columns: int = 0  # that the model looks at
    unseen_values: Counter[str] = field(default_factory=Counter)  # cells by column
    outside: Counter[str] = field(default_factory=Counter)  # cells outside the range of training
    unlike: Counter[str] = field(default_factory=Counter)  # cells that are either, by column
    n_unlike: int = 0  # rows with such a cell
    first_unlike: list[dict[str, Any]] = field(default_factory=list)  # their numbers and columns
    extra_columns: list[str] = field(default_factory=list)  # that the model does not use
    columns: ColumnTracker = field(default_factory=ColumnTracker)

    def add_unlike(self, cells: UnlikeCells, n_before: int) -> None:
        """Count cells that are unlike training, of rows after the first `n_before` ones."""
        counters = (self.unseen_values, self.outside, self.unlike)
        for counter, marked in zip(counters, (*cells, cells.by_column), strict=True):
            counter.update({name: int(each.sum()) for name, each in marked.items()})
        if rows := cells.rows():
            self.n_unlike += len(rows)
            more = list(rows.items())[: MOST_ROWS - len(self.first_unlike)]
            self.first_unlike += [{"row": n_before + k + 1, "columns": each} for k, each in more]

    def as_plain_data(self) -> dict[str, Any]:
        """Return counts of cells that are unlike training, by column."""
        n_rows = max(self.n_rows, 1)
        return {
            "cells_unlike_training": self.unlike.total() / (n_rows * max(self.n_columns, 1)),
            "columns": {
                name: {"cells": n, "share": n / n_rows} for name, n in self.unlike.most_common()
            },
            "unseen_values": dict(self.unseen_values),
            "outside_the_range": dict(self.outside),
            "empty_where_none_was": dict(self.columns.emptied()),
            "n_rows_unlike_training": self.n_unlike,
            "rows_unlike_training": self.first_unlike,
        }


@dataclass(frozen=True)
class AlertRate:
    """Share of alerts among new rows and among those held out, with 95 % intervals."""

    found: Interval
    expected: Interval

    @property
    def differs(self) -> bool:
        """Say whether the intervals do not meet.

        By chance that is 1 comparison in 180 where both rest on as many rows, and at most 1 in 12.
        """
        return self.found.low > self.expected.high or self.found.high < self.expected.low

    @property
    def is_far(self) -> bool:
        """Say whether the rates differ, and by a factor of MOST_TIMES at least."""
        low, high = self.expected.value / MOST_TIMES, self.expected.value * MOST_TIMES
        return self.differs and not low <= self.found.value <= high


@dataclass(frozen=True)
class Drift:
    """Drift of the rows of a file from training."""

    alerts: AlertRate | None  # None where no row was held out, or the threshold is not a score
    compared: tuple[ColumnDrift, ...] = ()  # each column with training, those that moved most first
    seen: InputSummary = field(default_factory=InputSummary)  # the rows, and their odd cells

    @property
    def moved(self) -> list[ColumnDrift]:
        """Columns that are absent or have moved."""
        return [each for each in self.compared if each.verdict not in ("", "steady")]

    @property
    def is_far(self) -> bool:
        """Say whether a column has moved far, or the rate of alerts is far off."""
        alerts = self.alerts is not None and self.alerts.is_far
        return alerts or any(each.is_far for each in self.moved)

    def as_plain_data(self) -> dict[str, Any]:
        """Return the drift as dictionaries and numbers."""
        alerts = None
        if self.alerts is not None:
            alerts = {
                "found": plain_data(self.alerts.found),
                "held_out": plain_data(self.alerts.expected),
                "differs": self.alerts.differs,
                "is_far": self.alerts.is_far,
            }
        return {
            **self.seen.as_plain_data(),
            "alert_rate": alerts,
            "drift": [each.as_plain_data() for each in self.compared],
        }


def drift_of(seen: InputSummary, alerts: AlertRate | None) -> Drift:
    """Sum up what was met in a file."""
    unlike = {name: n / max(seen.n_rows, 1) for name, n in seen.unlike.items()}
    compared = worst_first(seen.columns.drifts(unlike))
    return Drift(alerts, tuple(compared), seen)


def refuse_drift(drift: Drift, file: str) -> None:
    """Raise `InputError` where a column or the rate of alerts is far from training.

    What is far, `ColumnDrift` and `AlertRate` say: chance does not explain it. Columns that the
    model did not learn from do not count.
    """
    far = [each for each in drift.moved if each.is_far and each.is_used]
    if far:
        more = f" (and {len(far) - 1} more)" if len(far) > 1 else ""
        raise ErrorKind.REFUSED.error(
            f"{file}: column {far[0].name!r} has moved far from training{more}: {far[0].words}.",
            "Look whether the column still means the same; fit again with rows like these, or "
            f"leave out {setting('strict')}.",
            column=far[0].name,
        )
    if drift.alerts is not None and drift.alerts.is_far:
        found, expected = drift.alerts.found, drift.alerts.expected
        raise ErrorKind.REFUSED.error(
            f"{file}: {found.value:.3%} of the rows are above the threshold, where "
            f"{expected.value:.3%} of the rows held out were.",
            "Check what changed; set another threshold, fit again, or leave out "
            f"{setting('strict')}.",
        )
