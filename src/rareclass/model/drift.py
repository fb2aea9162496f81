"""Drift of a file from training: cells unlike those of training, and the rate of alerts."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.table_statistics import UnlikeCells
from rareclass.errors import ErrorKind, InputError, setting
from rareclass.findings import Finding, FindingKind, TableWarning, warn
from rareclass.metrics import Interval
from rareclass.metrics.weighted_rate import WeightedRate
from rareclass.model.columns import ColumnDrift, ColumnTracker, worst_first
from rareclass.model.facts import ModelFacts
from rareclass.model.targets import RareClassFacts
from rareclass.stored import plain_data

# Alerts so many times as frequent as held out, or as rare, and beyond what chance explains.
MOST_TIMES = 2.0
_LEVEL = 0.95
# Columns of the rows of training move by less than this part of what chance explains: bins of
# copies and of long tables are not exact.
_SAME_ROWS = 0.02
# Rows unlike training that are named in JSON, at most.
MOST_ROWS = 100
# The rate of alerts of so few rows tells little, unless it differs.
FEW_ROWS = 10


@dataclass
class InputSummary:
    """Counts of rows that were scored, and of cells that are unlike training."""

    n_rows: int = 0
    n_columns: int = 0  # that the model looks at
    counts_cells: bool = True  # whether cells are looked at: a fourth of the time of scoring a row
    unseen_values: Counter[str] = field(default_factory=Counter)  # cells by column
    outside: Counter[str] = field(default_factory=Counter)  # cells outside the range of training
    unlike: Counter[str] = field(default_factory=Counter)  # cells that are either, by column
    n_unlike: int = 0  # rows with such a cell
    first_unlike: list[dict[str, Any]] = field(default_factory=list)  # their numbers and columns
    extra_columns: list[str] = field(default_factory=list)  # that the model does not use
    columns: ColumnTracker | None = None  # counts of cells in the bins of training

    def add_unlike(self, cells: UnlikeCells, n_before: int) -> None:
        """Count cells that are unlike training, of rows after the first `n_before` ones."""
        counters = (self.unseen_values, self.outside, self.unlike)
        for counter, marked in zip(counters, (*cells, cells.by_column), strict=True):
            counter.update({name: int(each.sum()) for name, each in marked.items()})
        if rows := cells.rows():
            self.n_unlike += len(rows)
            more = list(rows.items())[: MOST_ROWS - len(self.first_unlike)]
            self.first_unlike += [{"row": n_before + k + 1, "columns": each} for k, each in more]

    @property
    def emptied(self) -> Counter[str]:
        """Empty cells of columns that had none in training."""
        return Counter({} if self.columns is None else self.columns.emptied())

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
            "empty_where_none_was": dict(self.emptied),
            "n_rows_unlike_training": self.n_unlike,
            "rows_unlike_training": self.first_unlike,
        }


@dataclass(frozen=True)
class AlertRate:
    """Alerts among new rows (`found`) and among held-out rows (`expected`), with 95 % intervals."""

    n_alerts: int
    n_rows: int
    held_out: WeightedRate

    @cached_property
    def found(self) -> Interval:
        """Share of alerts among the new rows."""
        return WeightedRate.counted(self.n_alerts, self.n_rows).interval(_LEVEL)

    @cached_property
    def expected(self) -> Interval:
        """Share of alerts among the rows held out."""
        return self.held_out.interval(_LEVEL)

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
    scores: ColumnDrift | None = None  # the scores with those of rows held out

    @property
    def columns(self) -> list[ColumnDrift]:
        """The columns, and the scores as one more."""
        return [*self.compared, *([] if self.scores is None else [self.scores])]

    @property
    def moved(self) -> list[ColumnDrift]:
        """Columns that are absent or have moved, and the scores where they have."""
        return [each for each in self.columns if each.verdict not in ("", "steady")]

    @property
    def is_far(self) -> bool:
        """Say whether a column or the scores have moved far, or the rate of alerts is far off."""
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
            "alert_rate": alerts,
            "drift": [each.as_plain_data() for each in self.compared],
            "score_drift": None if self.scores is None else self.scores.as_plain_data(),
        }


def drift_of(seen: InputSummary, alerts: AlertRate | None) -> Drift:
    """Sum up what was met in a file."""
    if seen.columns is None:
        return Drift(alerts)
    unlike = {name: n / max(seen.n_rows, 1) for name, n in seen.unlike.items()}
    compared = worst_first(seen.columns.drifts(unlike))
    return Drift(alerts, tuple(compared), seen.columns.score_drift())


def warn_of_training_rows(
    seen: InputSummary, codes: NDArray[np.integer], facts: ModelFacts, file: str
) -> None:
    """Warn where labelled rows of a file seem to be those that the model was trained on.

    They are as many, and so are the rare ones; and the columns together are so much more like those
    of training than chance leaves other rows. `codes` are 1 for rare rows, -1 without a label.
    """
    target, n_rows = facts.target, int((codes >= 0).sum())
    of_training = isinstance(target, RareClassFacts) and (facts.n_rows, target.n_rare)
    if (n_rows, int((codes == 1).sum())) != of_training:
        return
    drift = drift_of(seen, None)
    known = [each for each in drift.compared if each.is_used and each.chance is not None]
    moved = sum(each.stability_index or 0.0 for each in known)
    if known and moved <= _SAME_ROWS * sum(each.chance.index for each in known if each.chance):
        warn(
            f"{file} seems to hold the rows that the model was trained on: as many, and alike in "
            "every column. Measures on them are too good; rareclass show prints the estimate for "
            "new rows.",
            TableWarning,
            Finding(FindingKind.TRAINING_ROWS, {"rows": n_rows}),
        )


def refuse_drift(drift: Drift, file: str) -> None:
    """Raise `InputError` where a column, the scores or the rate of alerts are far from training.

    What is far, `ColumnDrift` and `AlertRate` say: chance does not explain it. Columns that the
    model did not learn from do not count.
    """
    far = [each for each in drift.moved if each.is_far and each.is_used]
    if far:
        more = f" (and {len(far) - 1} more)" if len(far) > 1 else ""
        what = "the scores have" if far[0] is drift.scores else f"column {far[0].name!r} has"
        raise InputError(
            f"{file}: {what} moved far from training{more}: {far[0].words}.",
            "Look whether the column still means the same; fit again with rows like these, or "
            f"leave out {setting('strict')}.",
            ErrorKind.REFUSED,
            column=None if far[0] is drift.scores else far[0].name,
        )
    if drift.alerts is not None and drift.alerts.is_far:
        found, expected = drift.alerts.found, drift.alerts.expected
        raise InputError(
            f"{file}: {found.value:.3%} of the rows are above the threshold, where "
            f"{expected.value:.3%} of the rows held out were.",
            "Check what changed; set another threshold, fit again, or leave out "
            f"{setting('strict')}.",
            ErrorKind.REFUSED,
        )
