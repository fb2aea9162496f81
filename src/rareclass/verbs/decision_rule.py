"""A rule for the threshold of a model, with the columns of the table that it needs."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.decide.chosen_threshold import ChosenThreshold
from rareclass.decide.rules.alerts import AtMostAlertsADay
from rareclass.decide.threshold_rule import ThresholdRule


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
        self, scored: ScoredRows, beside: pl.DataFrame | None, time: str | None
    ) -> ChosenThreshold:
        """The threshold for these rows; `beside` has the columns named, a row for each.

        Raises `InputError` where the rule cannot be judged on them.
        """
        costs = None
        if beside is not None:
            costs = {name: beside[name].to_numpy() for name in self.columns}
        moment = beside[time].to_numpy() if beside is not None and time is not None else None
        return self.rule.choose(
            scored.y == 1,
            scored.scores,
            scored.weight,
            costs=costs,
            time=moment if self.needs_time else None,
        )
