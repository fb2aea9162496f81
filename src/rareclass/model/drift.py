"""Drift of a file from training: cells unlike those of training, and the rate of alerts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from rareclass.errors import ErrorKind, InputError
from rareclass.metrics import Interval
from rareclass.metrics.interval import exact_interval
from rareclass.model.facts import ScoredRows

# Of the cells of any column; `refuse_drift` lets no more be unlike training.
MOST_UNLIKE = 0.10
# Alerts so many times as frequent as held out, or as rare, and beyond what chance explains.
MOST_TIMES = 2.0
_LEVEL = 0.95


@dataclass
class InputSummary:
    """Counts of rows that were scored, and of cells that are unlike training."""

    n_rows: int = 0
    n_columns: int = 0  # that the model looks at
    counts_cells: bool = True  # whether cells are looked at: a fourth of the time of scoring a row
    unseen_values: Counter[str] = field(default_factory=Counter)  # cells by column
    outside: Counter[str] = field(default_factory=Counter)  # cells outside the range of training
    emptied: Counter[str] = field(default_factory=Counter)  # empty, where training had no such cell
    expected: dict[str, float] = field(default_factory=dict)  # expected share of unseen words
    extra_columns: list[str] = field(default_factory=list)  # that the model does not use

    def as_plain_data(self) -> dict[str, Any]:
        """Return counts of cells that are unlike training, by column."""
        return {
            "unseen_values": dict(self.unseen_values),
            "outside_the_range": dict(self.outside),
            "empty_where_none_was": dict(self.emptied),
        }

    def joined(self, others: Sequence["InputSummary"]) -> "InputSummary":
        """Return the sum of this summary and of others of the same columns."""
        each = [self, *others]
        return replace(
            self,
            n_rows=sum(one.n_rows for one in each),
            unseen_values=sum((one.unseen_values for one in each), Counter()),
            outside=sum((one.outside for one in each), Counter()),
            emptied=sum((one.emptied for one in each), Counter()),
        )


class UnlikeColumn(NamedTuple):
    """A column with cells that are unlike all of training."""

    name: str
    n_cells: int  # unseen words, or numbers beyond the least and greatest; or empty ones
    share: float  # of the rows
    expected: float = 0.0  # of unseen words, as training had words that a single row has

    @property
    def excess(self) -> float:
        """Share beyond what training leads one to expect."""
        return self.share - self.expected


class AlertRate(NamedTuple):
    """Alerts of a file beside those of rows that were held out of training.

    `expected` is the share of the held-out rows above the threshold, `found` that of the new rows,
    each with its exact (Clopper-Pearson) 95 % interval. Weighted held-out rows, which stand for
    many, count as Kish's effective number ``(sum w)^2 / sum w^2``.
    """

    found: Interval
    expected: Interval

    @property
    def differs(self) -> bool:
        """Say whether the intervals do not meet: one in some hundreds by chance."""
        return self.found.low > self.expected.high or self.found.high < self.expected.low

    @property
    def is_far(self) -> bool:
        """Say whether the rates differ, and by a factor of MOST_TIMES at least."""
        low, high = self.expected.value / MOST_TIMES, self.expected.value * MOST_TIMES
        return self.differs and not low <= self.found.value <= high


@dataclass(frozen=True)
class Drift:
    """Drift of the rows of a file from training."""

    columns: list[UnlikeColumn]  # the worst first
    share: float  # of all cells
    alerts: AlertRate | None  # None where no row was held out, or the threshold is not a score
    emptied: tuple[UnlikeColumn, ...] = ()  # with empty cells, where training had none

    def as_plain_data(self) -> dict[str, Any]:
        """Return the drift as dictionaries and numbers."""
        alerts = None
        if self.alerts is not None:
            alerts = {
                "found": self.alerts.found._asdict(),
                "held_out": self.alerts.expected._asdict(),
                "differs": self.alerts.differs,
                "is_far": self.alerts.is_far,
            }
        return {
            "cells_unlike_training": self.share,
            "columns": {
                each.name: {"cells": each.n_cells, "share": each.share} for each in self.columns
            },
            "alert_rate": alerts,
        }


def alert_rate(
    held_out: ScoredRows | None, threshold: float, n_alerts: int, n_rows: int
) -> AlertRate | None:
    """Compare alerts of new rows with those of the rows held out, at the same threshold."""
    if held_out is None or not n_rows:
        return None
    weight = np.ones(len(held_out.scores)) if held_out.weight is None else held_out.weight
    effective = float(weight.sum() ** 2 / (weight @ weight))
    share = float(weight[held_out.scores > threshold].sum() / weight.sum())
    return AlertRate(
        exact_interval(n_alerts, n_rows, _LEVEL),
        exact_interval(share * effective, effective, _LEVEL),
    )


def drift_of(seen: InputSummary, alerts: AlertRate | None) -> Drift:
    """Sum up what was met in a file."""
    counts: Counter[str] = Counter()
    for cells in (seen.unseen_values, seen.outside):
        for name, count in cells.items():
            counts[name] = max(counts[name], count)
    n_rows = max(seen.n_rows, 1)
    columns = [
        UnlikeColumn(name, count, count / n_rows, seen.expected.get(name, 0.0))
        for name, count in counts.most_common()
    ]
    n_cells = n_rows * max(seen.n_columns, 1)
    emptied = tuple(
        UnlikeColumn(name, count, count / n_rows) for name, count in seen.emptied.most_common()
    )
    return Drift(columns, sum(each.n_cells for each in columns) / n_cells, alerts, emptied)


def refuse_drift(drift: Drift, file: str) -> None:
    """Raise `InputError` where more than MOST_UNLIKE of a column's cells are unlike training.

    That is beyond what is to be expected: a column of names has new ones in every file. Or where
    the rate of alerts is far from that of the rows held out.
    """
    every = (*drift.columns, *drift.emptied)
    beyond = [each for each in every if each.excess > MOST_UNLIKE]
    if beyond:
        worst = max(beyond, key=lambda each: each.excess)
        n_more = len(beyond) - 1
        more = f" (and {n_more} more such columns)" if n_more else ""
        usual = f", where {worst.expected:.1%} were to be expected" if worst.expected else ""
        raise InputError(
            f"{file}: {worst.share:.1%} of the cells of column {worst.name!r} are unlike any of "
            f"training{usual}: more than {MOST_UNLIKE:.0%} of them{more}.",
            "Look whether the column still means the same; fit again with rows like these, or "
            "leave out --strict.",
            ErrorKind.REFUSED,
        )
    if drift.alerts is not None and drift.alerts.is_far:
        found, expected = drift.alerts
        raise InputError(
            f"{file}: {found.value:.3%} of the rows are above the threshold, where "
            f"{expected.value:.3%} of the rows held out were.",
            "Look at what changed; set another threshold, fit again, or leave out --strict.",
            ErrorKind.REFUSED,
        )
