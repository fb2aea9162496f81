"""Members learned in turn while there is time, the most useful first.

1. the first that is likely to keep to its share of the time left, on as many of the majority rows
   as fit into it; what others are not likely to need of theirs is there for those before them
2. where none is, the first that is likely to end at all

What a member is likely to take is known from a small piece of the table (`pilot`), then from what
it took.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rareclass.ensemble.budget import Budget, CostModel
from rareclass.ensemble.held_out import HeldOut
from rareclass.ensemble.members.member import CrossFitted, EncodedFolds, Member, Size, Stopped
from rareclass.ensemble.score_functions import ScoreFunction, mean_function
from rareclass.ensemble.thinning import affordable_rows
from rareclass.ensemble.training_views import TrainingViews
from rareclass.folds.majority_part import draw_majority

Report = Callable[[str], None]
"""Told what is learned next."""


@dataclass(frozen=True)
class Candidate:
    """A setting of a member, learned on the folds.

    `held_out` of shape (n_rows,) are scores by functions that did not see the row, NaN for rows
    that are not judged on; `by_fold` the functions of the folds, `function` their mean.
    """

    member: Member
    setting: str
    held_out: np.ndarray
    by_fold: list[ScoreFunction]
    function: ScoreFunction
    seconds: float

    @property
    def key(self) -> tuple[str, str]:
        """Which it is."""
        return self.member.name, self.setting


@dataclass
class Race:
    """What was learned so far; `run` may be interrupted at any time and leaves all that is whole.

    `without_time` has seconds foretold for members that were not begun, None where none were
    foretold, or a member was begun and stopped; `failed` what members raised.
    """

    views: TrainingViews
    held_out: HeldOut
    budget: Budget
    costs: CostModel
    seed: int
    n_jobs: int
    report: Report = lambda name: None
    candidates: dict[tuple[str, str], Candidate] = field(default_factory=dict)
    without_time: dict[str, float | None] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)

    def run(self, members: Sequence[Member]) -> None:
        """Learn members; those that are not likely to end in time are not.

        One is learned whatever it takes: the first that is likely to end in time, or else the
        quickest.
        """
        pending = list(members)
        first = self._most_likely_in_time(pending)
        self._try(pending.pop(first), self._allowed(first, members))
        while pending:
            chosen = self._next(pending)
            if chosen is None:
                break
            k, seconds = chosen
            self._try(pending.pop(k), seconds)
        for member in pending:
            in_time = self.budget.left > 0.0
            self.without_time[member.name] = self._foretold(member, 0.0) if in_time else None
        if not self.candidates:
            raise next(iter(self.failed.values()))

    def _most_likely_in_time(self, members: Sequence[Member]) -> int:
        """The first that is likely to end in time, or else the quickest."""
        seconds = np.array([self._foretold(member, 0.0) or 0.0 for member in members])
        in_time = np.flatnonzero(seconds <= self.budget.left)
        return int(in_time[0] if len(in_time) else np.argmin(seconds))

    def _next(self, pending: Sequence[Member]) -> tuple[int, float] | None:
        """Who of those that wait is next, and the seconds that it is given; None: there are none.

        The first that is likely to keep to its part of the time, with what others do not need of
        theirs; or else to all the time that is left.
        """
        left = self.budget.left
        if left <= 0.0:
            return None
        for may_take in (lambda k: self._allowed(k, pending), lambda k: left):
            for k, member in enumerate(pending):
                seconds = may_take(k)
                if (self._foretold(member, seconds) or 0.0) <= seconds:
                    return k, seconds
        return None

    def _allowed(self, k: int, members: Sequence[Member]) -> float:
        """Seconds for one of those that are left.

        The others keep their shares of the time left, or what they are likely to take of it.
        """
        left = max(self.budget.left, 0.0)
        a_share = left / sum(member.share for member in members)
        kept = (
            min(self._foretold(member, np.inf) or 0.0, member.share * a_share)
            for member in (*members[:k], *members[k + 1 :])
        )
        return left - sum(kept)

    def _n_majority(self, member: Member, seconds: float) -> int:
        """Majority rows that a member learns from within so many seconds."""
        rows = self._rows(member)
        size, n_folds = rows.size, rows.n_folds
        n_majority = size.n_rows - size.n_rare
        return affordable_rows(
            self.costs, member, size.n_features, size.n_rare, n_majority, n_folds, seconds
        )

    def _foretold(self, member: Member, seconds: float) -> float | None:
        """What a member is likely to take on the rows that it would learn from within seconds."""
        rows = self._rows(member)
        n_rows = rows.size.n_rare + self._n_majority(member, seconds)
        size = Size(n_rows, rows.size.n_rare, rows.size.n_features)
        return self.costs.foretell(member, size, rows.n_folds)

    def _try(self, member: Member, seconds: float) -> None:
        """Learn a member on what it can learn from within so many seconds."""
        self.report(member.name)
        try:
            self._learn(member, seconds, may_stop=bool(self.candidates))
        except Stopped:
            self.without_time[member.name] = None
        except Exception as error:  # of whatever learned it: the others are none the worse
            self.failed[member.name] = error

    def _learn(self, member: Member, seconds: float, may_stop: bool) -> None:
        start = time.perf_counter()
        every = self._rows(member, may_stop)
        learned, rows = self._part(every, self._n_majority(member, seconds))
        found = quietly(member, rows)
        if len(learned) < len(every.fold):
            others = np.setdiff1d(self.held_out.tested, learned, assume_unique=True)
            found = [_scored_too(each, every, learned, others) for each in found]
        took = time.perf_counter() - start
        self.costs.learn(member, rows.size, rows.n_folds, took)
        for each in found:
            candidate = Candidate(
                member,
                each.setting,
                each.held_out,
                each.functions,
                mean_function(each.functions),
                took / len(found),
            )
            self.candidates[candidate.key] = candidate

    def _part(self, rows: EncodedFolds, n_majority: int) -> tuple[np.ndarray, EncodedFolds]:
        """Row numbers of a part with so many majority rows, which weigh what all do, and it."""
        if n_majority == rows.size.n_rows - rows.size.n_rare:
            return np.arange(len(rows.fold)), rows
        learned, weight = draw_majority(rows.is_rare, rows.weight, n_majority, rows.seed)
        return learned, rows.take(learned, weight)

    def _rows(self, member: Member, may_stop: bool = False) -> EncodedFolds:
        views = self.views
        return EncodedFolds(
            views.encoded(member.view),
            views.is_rare,
            views.weight,
            views.fold,
            self.seed,
            self.n_jobs,
            self.budget.check if may_stop else lambda: None,
        )


def _scored_too(
    found: CrossFitted, rows: EncodedFolds, learned: np.ndarray, others: np.ndarray
) -> CrossFitted:
    """With scores of rows that no function saw, each by that of its fold."""
    held_out = np.full(len(rows.fold), np.nan)
    held_out[learned] = found.held_out
    for number, function in enumerate(found.functions):
        rows.check()
        of_fold = others[rows.fold[others] == number]
        held_out[of_fold] = function.scores(rows.X[of_fold], rows.n_jobs)
    return found._replace(held_out=held_out)


def quietly(member: Member, rows: EncodedFolds) -> list[CrossFitted]:
    """Learn without the warnings of a member: whether it is any good, held-out rows say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return member.cross_fit(rows)


def pilot(
    members: Sequence[Member], views: TrainingViews, costs: CostModel, seed: int, n_jobs: int
) -> None:
    """Learn members on two folds of a small piece of the table: what do they take on all of it?"""
    fold = np.where(views.fold < 0, views.fold, views.fold % 2)
    for member in members:
        rows = EncodedFolds(
            views.encoded(member.view),
            views.is_rare,
            views.weight,
            fold,
            seed,
            n_jobs,
        )
        start = time.perf_counter()
        quietly(member, rows)
        costs.learn(member, rows.size, rows.n_folds, time.perf_counter() - start)
