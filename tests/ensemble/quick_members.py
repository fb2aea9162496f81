"""Members that learn in no time, or in as much of a clock's time as they are told to."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import pytest

from rareclass.ensemble.members.member import CrossFitted, FoldByFold
from rareclass.ensemble.plan import MEMBERS
from rareclass.ensemble.score_functions import LinearFunction


def small_members(rounds, **kernel):
    boosting = "histogram boosting", "slow histogram boosting", "deep histogram boosting"
    linear = "logistic regression", "logistic regression on indicators"
    small = {name: {"rounds": rounds} for name in (*boosting, "catboost")}
    small |= {name: {"strengths": (0.1,)} for name in linear}
    small |= {"extra trees": {"trees": rounds}, "kernel on quantiles": kernel}
    return [kind(**small.get(name, {})) for name, kind in MEMBERS.items()]


def named(members, wrap=lambda member: member):
    """Parameters of a test: members by name, skipped where their package is not installed."""
    return [
        pytest.param(
            wrap(member),
            id=member.name,
            marks=pytest.mark.skipif(
                member.package is not None and find_spec(member.package) is None,
                reason=f"{member.package} is not installed",
            ),
        )
        for member in members
    ]


@dataclass(frozen=True)
class MeanDifference(FoldByFold):
    name: str = "mean difference"
    view: ClassVar[str] = "quantiles"
    package: ClassVar[str | None] = None

    def cost(self, size):
        return float(size.n_rows * size.n_features)

    def learn(self, X, is_rare, weight, seed, n_jobs):
        weight = np.ones(len(is_rare)) if weight is None else weight
        rare, rest = (
            np.average(np.asarray(X[mask]), axis=0, weights=weight[mask])
            for mask in (is_rare, ~is_rare)
        )
        return LinearFunction(rare - rest, -float((rare + rest) @ (rare - rest)) / 2)


class Clock:
    def __init__(self):
        self.now = 1000.0
        self.rows = []  # of each call of a slow member: rows, rare rows and folds

    def perf_counter(self):
        return self.now


@dataclass(frozen=True)
class Slow(MeanDifference):
    """Takes so many seconds of a clock for a fold and a row, and may be interrupted in one."""

    clock: Clock | None = None
    takes: float = 0.0
    interrupted_in: int | None = None
    units: float = 1.0
    seconds_a_row: float = 0.0

    def cost(self, size):
        return self.units * (size.n_rows if self.seconds_a_row else 1)

    def cross_fit(self, rows):
        scores, functions = np.full(len(rows.fold), np.nan), []
        self.clock.now += self.seconds_a_row * len(rows.fold) * rows.n_folds
        self.clock.rows.append((len(rows.fold), int(rows.is_rare.sum()), rows.n_folds))
        for number, tested in rows.each_fold():
            if number == self.interrupted_in:
                raise KeyboardInterrupt
            self.clock.now += self.takes
            function = self.learn(*rows.learned_by(number), 0, 1)
            scores[tested] = function.scores(rows.part(number, np.flatnonzero(tested)))
            functions.append(function)
        return [CrossFitted("", scores, functions)]
