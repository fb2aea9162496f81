"""A rule for the threshold of a model, with the columns of the table that it needs."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.decide.constraints import AtMostAlertsADay
from rareclass.decide.threshold_rule import ChosenThreshold, ThresholdRule
from rareclass.model.beside import check_days, costs_of, times_of


class ScoredRows(NamedTuple):
    """Rows with scores by functions that did not learn from them."""

    y: NDArray[np.int16]  # codes
    scores: NDArray[np.float64]
    weight: NDArray[np.float64] | None  # how many rows each stands for
    places: NDArray[np.int64] | None = None  # where they stand in the table


@dataclass(frozen=True)
class DecisionRule:
    """A `ThresholdRule` whose costs are names of columns."""

    rule: ThresholdRule

    @property
    def columns(self) -> list[str]:
        """Columns with a cost for every row."""
        constraint = self.rule.constraint
        values = [getattr(constraint, each.name) for each in fields(constraint)]  # type: ignore[arg-type]
        return list(dict.fromkeys(value for value in values if isinstance(value, str)))

    @property
    def needs_time(self) -> bool:
        """Whether it speaks of days."""
        return isinstance(self.rule.constraint, AtMostAlertsADay)

    def choose(
        self,
        scored: ScoredRows,
        beside: pl.DataFrame | None = None,
        time: str | None = None,
        numbers: NDArray[np.int64] | None = None,
    ) -> ChosenThreshold:
        """The threshold for these rows.

        `beside` has the columns named, a row for each, and `numbers` which row of the file each is,
        from 1 on. Raises `InputError` where the rule cannot be judged on them.
        """
        costs, moments = None, None
        if beside is not None:
            if numbers is None:
                numbers = np.arange(1, beside.height + 1)
            costs = {
                name: costs_of(beside[name], numbers, f"--cost {name}") for name in self.columns
            }
            if time is not None and self.needs_time:
                moments = times_of(beside[time], numbers, "--time")
                check_days(moments, f"--time {time}")
        return self.rule.choose(
            scored.y == 1, scored.scores, scored.weight, costs=costs, time=moments
        )
