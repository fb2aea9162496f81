"""Aims without a constraint: the least cost, the greatest F-beta."""

from dataclasses import dataclass

import numpy as np

from rareclass.decide.rules.constraint import Found
from rareclass.decide.rules.held_out import HeldOut
from rareclass.decide.rules.rates import HELD_OUT
from rareclass.errors import InputError
from rareclass.metrics.scored_classes import FloatArray
from rareclass.parameters import check_number, is_number

_EQUAL = 1e-12
# A number for every row, or the name of a column of `costs`.
Cost = float | str


@dataclass(frozen=True)
class LeastCost:
    r"""The least expected cost a row.

    ``mean of fn_i (rare, no alert) + fp_i (majority, alert) + review_i (alert)``: a missed rare row
    costs `fn` (the amount at stake), a false alert `fp`, looking at any alert `review`. Each is a
    number, or the name of a column with a cost for every row.
    """

    fp: Cost = 0.0
    fn: Cost = 0.0
    review: Cost = 0.0

    def __post_init__(self) -> None:
        for name in ("fp", "fn", "review"):
            value = getattr(self, name)
            if not isinstance(value, str):
                check_number(
                    name, value, "a number of at least 0, or the name of a cost", ends="[)"
                )
        for name, others, always in (
            ("fn", (self.fn,), "no alert"),
            ("fp and review", (self.fp, self.review), "an alert for every row"),
        ):
            if all(is_number(value, ends="[]") and value == 0 for value in others):
                raise ValueError(f"{name} of 0: {always} costs least, whatever the scores.")

    @property
    def words(self) -> str:
        """What is wanted, as a formula."""
        return f"least cost with fp={self.fp}, fn={self.fn}, review={self.review}"

    def find(self, held: HeldOut, confidence: float | None, prevalence: float | None) -> Found:
        """The cut of least cost on the held-out rows."""
        cost = self.costs(held, prevalence)
        equal = np.flatnonzero(cost <= cost.min() + _EQUAL * max(float(cost.max()), 1e-300))
        cut = held.widest(equal)
        return Found(cut, True, float(cost[cut]), None, HELD_OUT)

    def costs(self, held: HeldOut, prevalence: float | None) -> FloatArray:
        """Mean cost a row of each cut, at the prevalence meant."""
        fp, fn, review = (self._column(held, name) for name in (self.fp, self.fn, self.review))
        if prevalence is None:
            prevalence = held.n_rare / (held.n_rare + held.n_majority)
        share = np.where(
            held.is_rare, prevalence / held.n_rare, (1.0 - prevalence) / held.n_majority
        )
        share = share * held.weight
        change = share * np.where(held.is_rare, review - fn, fp + review)
        none = float(share @ np.where(held.is_rare, fn, 0.0))
        return none + np.concatenate([[0.0], np.cumsum(change)])[held.ends]

    def _column(self, held: HeldOut, cost: Cost) -> FloatArray:
        if not isinstance(cost, str):
            return np.full(len(held.score), float(cost))
        if cost not in held.costs:
            raise InputError(
                f"the cost {cost!r} is not among costs: {sorted(held.costs)}.",
                f"Pass costs={{{cost!r}: a number for each row}}.",
            )
        return held.costs[cost]


@dataclass(frozen=True)
class GreatestFBeta:
    r"""The greatest F-beta: ``(1 + beta**2) tp / ((1 + beta**2) tp + beta**2 fn + fp)``."""

    beta: float = 1.0

    def __post_init__(self) -> None:
        check_number("beta", self.beta)

    @property
    def words(self) -> str:
        """What is wanted, as a formula."""
        return f"greatest F{self.beta:g}"

    def find(self, held: HeldOut, confidence: float | None, prevalence: float | None) -> Found:
        """The cut of greatest F-beta on the held-out rows."""
        rare, majority = held.shares(prevalence)
        square = self.beta**2
        value = (1.0 + square) * rare / (rare + majority + square * rare[-1])
        cut = held.widest(np.flatnonzero(value >= value.max() - _EQUAL))
        return Found(cut, True, float(value[cut]), None, HELD_OUT)
