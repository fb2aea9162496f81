"""The race: members learned in turn under a time budget, the most useful first.

1. the first member that is likely to keep to its share of the time left, on as many of the majority
   rows as fit into it; time that others are not likely to need is there for those before them
2. where none is, the first that is likely to end at all

The time of a member is predicted from a small piece of the table (`pilot`), then from what the
member took.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rareclass.ensemble.members.member import CrossFitted, EncodedFolds, Member, Size, Stopped
from rareclass.ensemble.score_functions import ScoreFunction, mean_function
from rareclass.ensemble.training_rows import FoldedRows, HeldOutRows, TrainingViews
from rareclass.folds.majority_part import draw_majority

# A member that takes longer than predicted is stopped at this multiple of the budget.
_HARD_LIMIT = 1.15
# Fewer majority rows than this, or than so many a rare row, are not thinned further.
LEAST_ROWS, LEAST_PER_RARE = 20_000, 5
# Tables of fewer rows are learned without a look at a piece of them first.
SMALL_ROWS = 10_000
_PILOT_MEMBERS = 3
# The part of the time that the first member may be likely to take on all rows: the table is
# thinned to as many. Each of the others then takes as many of these as it has time for.
_FIRST_PART = 0.25

# Seconds of one core for a unit of each member's `cost`, on a machine that others are measured by:
# tables of 1,500 x 12 to 20,000 x 20, three folds (`python -m benchmarks.member_costs`); less for
# forests, which are quicker on indicators, as real tables have them.
_REFERENCE_SECONDS = {
    "histogram boosting": 1e-6,
    "slow histogram boosting": 1e-6,
    "deep histogram boosting": 1e-6,
    "kernel on quantiles": 6.0,
    "kernel on logarithms": 6.0,
    "smooth kernel on logarithms": 8.0,
    "smooth kernel on numbers": 8.0,
    "extra trees": 8e-7,
    "random forest": 4e-7,
    "balanced forest": 4e-7,
    "lightgbm": 1e-6,
    "xgboost": 1.1e-6,
    "catboost": 1e-6,
    "logistic regression": 5e-8,
    "mibc": 2e-9,
}
_FOLD_SECONDS = 0.05  # for a fold of a few rows
# Members that are slower than the reference by as much as another one is, not as all are.
_LIKE = dict.fromkeys(("slow histogram boosting", "deep histogram boosting"), "histogram boosting")


@dataclass(frozen=True)
class TimeBudget:
    """Seconds for a fit, counted from when the budget is made."""

    seconds: float
    started: float = field(default_factory=lambda: time.perf_counter())

    @property
    def left(self) -> float:
        """Seconds until the end; negative after it."""
        return self.seconds - (time.perf_counter() - self.started)

    def check(self) -> None:
        """Raise `Stopped` when the end is well past."""
        if self.left < (1.0 - _HARD_LIMIT) * self.seconds:
            raise Stopped


@dataclass
class CostModel:
    """Seconds that members take, from what each took on fewer rows, or others took.

    A member is likely to be slower than the reference by as much as others were: a machine that is
    slow, or busy, is so for all.
    """

    ratios: dict[str, float] = field(default_factory=dict)

    def learn(self, member: Member, size: Size, n_folds: int, seconds: float) -> None:
        """Remember the seconds that a member took."""
        reference = _reference_seconds(member, size, n_folds)
        if reference is None:  # not in the table: its own unit
            reference = n_folds * member.cost(size)
        self.ratios[member.name] = seconds / reference

    def predict(self, member: Member, size: Size, n_folds: int) -> float | None:
        """Return the seconds that a member is likely to take; None where nothing is known."""
        own = self.ratios.get(member.name, self.ratios.get(_LIKE.get(member.name, "")))
        reference = _reference_seconds(member, size, n_folds)
        if reference is None:
            return None if own is None else own * n_folds * member.cost(size)
        known = [ratio for name, ratio in self.ratios.items() if name in _REFERENCE_SECONDS]
        ratio = own if own is not None else float(np.median(known)) if known else 1.0
        return ratio * reference

    def affordable(self, member: Member, size: Size, n_folds: int, seconds: float) -> Size:
        """Return `size` with as many majority rows as a member is likely to manage in so long.

        All that the member learns from where there is time for them, and never fewer than 20,000,
        or 5 a rare row.
        """
        n_majority = size.n_rows - size.n_rare
        high = _most_majority(member, n_majority)
        low = min(high, max(LEAST_ROWS, LEAST_PER_RARE * size.n_rare))

        def of(n: int) -> Size:
            return replace(size, n_rows=size.n_rare + n)

        def fits(n: int) -> bool:
            return (self.predict(member, of(n), n_folds) or 0.0) <= seconds

        if fits(high):
            return of(high)
        while high - low > 0.02 * low:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return of(low)


def _reference_seconds(member: Member, size: Size, n_folds: int) -> float | None:
    unit = _REFERENCE_SECONDS.get(member.name)
    return None if unit is None else n_folds * (unit * member.cost(size) + _FOLD_SECONDS)


def _most_majority(member: Member, n_majority: int) -> int:
    """Return the majority rows that a member learns from where time is no matter."""
    return n_majority if member.most_majority is None else min(n_majority, member.most_majority)


@dataclass(frozen=True)
class Candidate:
    """A setting of a member, learned on the folds.

    `held_out` of shape (n_rows,) are scores by functions that did not see the row, NaN for rows
    that nothing is measured on; `by_fold` the functions of the folds, `function` their mean.
    """

    member: Member
    setting: str
    held_out: np.ndarray
    by_fold: list[ScoreFunction]
    function: ScoreFunction
    seconds: float


@dataclass
class Race:
    """Members learned so far; `run` may be interrupted at any time and leaves all that is whole.

    `without_time` has predicted seconds of members that were not begun, None where none were
    predicted, or a member was begun and stopped; `failed` holds the errors of members.
    """

    views: TrainingViews
    held_out: HeldOutRows
    budget: TimeBudget
    costs: CostModel
    seed: int
    n_jobs: int
    report: Callable[[str], None] = lambda name: None  # called before a member is learned
    candidates: list[Candidate] = field(default_factory=list)
    without_time: dict[str, float | None] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)

    @property
    def learned(self) -> list[str]:
        """Names of the members that were learned, in order."""
        return list(dict.fromkeys(each.member.name for each in self.candidates))

    def run(self, members: Sequence[Member]) -> None:
        """Learn members; those that are not likely to end in time are not.

        One is learned whatever it takes: the first that is likely to end in time, or else the
        quickest.
        """
        pending = list(members)
        seconds = np.array([self._predicted(member, 0.0) or 0.0 for member in pending])
        within = np.flatnonzero(seconds <= self.budget.left)
        first = int(within[0] if len(within) else np.argmin(seconds))
        self._try(pending.pop(first), self._allowed(first, members))
        while pending:
            chosen = self._next(pending)
            if chosen is None:
                break
            k, allowed = chosen
            self._try(pending.pop(k), allowed)
        for member in pending:
            in_time = self.budget.left > 0.0
            self.without_time[member.name] = self._predicted(member, 0.0) if in_time else None
        if not self.candidates:
            raise next(iter(self.failed.values()))

    def _next(self, pending: Sequence[Member]) -> tuple[int, float] | None:
        """Return the place of the next member and its seconds; None where no member fits.

        The first that is likely to keep to its part of the time, with what others do not need of
        theirs; or else to all the time that is left.
        """
        left = self.budget.left
        if left <= 0.0:
            return None
        for may_take in (lambda k: self._allowed(k, pending), lambda k: left):
            for k, member in enumerate(pending):
                seconds = may_take(k)
                if (self._predicted(member, seconds) or 0.0) <= seconds:
                    return k, seconds
        return None

    def _allowed(self, k: int, members: Sequence[Member]) -> float:
        """Return the seconds for one of several members.

        The others keep their shares of the time left, or what they are likely to take of it.
        """
        left = max(self.budget.left, 0.0)
        a_share = left / sum(member.share for member in members)
        kept = (
            min(self._predicted(member, np.inf) or 0.0, member.share * a_share)
            for member in (*members[:k], *members[k + 1 :])
        )
        return left - sum(kept)

    def _predicted(self, member: Member, seconds: float) -> float | None:
        """Return the time of a member on the rows that it would learn from within seconds."""
        rows = self._rows(member)
        size = self.costs.affordable(member, rows.size, rows.n_folds, seconds)
        return self.costs.predict(member, size, rows.n_folds)

    def _try(self, member: Member, seconds: float) -> None:
        """Learn a member on the rows that it can learn from within so many seconds."""
        self.report(member.name)
        try:
            self._learn(member, seconds, may_stop=bool(self.candidates))
        except Stopped:
            self.without_time[member.name] = None
        except Exception as error:  # of whatever learned it: the others are none the worse
            self.failed[member.name] = error

    def _learn(self, member: Member, seconds: float, may_stop: bool) -> None:
        start = time.perf_counter()
        every = rows = self._rows(member, may_stop)
        size = self.costs.affordable(member, rows.size, rows.n_folds, seconds)
        if size.n_rows < len(every.fold):
            learned, weight = draw_majority(
                rows.is_rare, rows.weight, size.n_rows - size.n_rare, rows.seed
            )
            rows = rows.take(learned, weight)
        fitted = quietly(member, rows)
        if rows is not every:
            others = np.setdiff1d(self.held_out.tested, learned, assume_unique=True)
            fitted = [_with_others(each, every, learned, others) for each in fitted]
        took = time.perf_counter() - start
        self.costs.learn(member, rows.size, rows.n_folds, took)
        for each in fitted:
            self.candidates.append(
                Candidate(
                    member,
                    each.setting,
                    each.held_out,
                    each.functions,
                    mean_function(each.functions),
                    took / len(fitted),
                )
            )

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


def _with_others(
    fitted: CrossFitted, rows: EncodedFolds, learned: np.ndarray, others: np.ndarray
) -> CrossFitted:
    """Add scores of rows that no function saw, each by the function of its fold."""
    held_out = np.full(len(rows.fold), np.nan)
    held_out[learned] = fitted.held_out
    for number, function in enumerate(fitted.functions):
        rows.check()
        of_fold = others[rows.fold[others] == number]
        held_out[of_fold] = function.scores(rows.X[of_fold], rows.n_jobs)
    return fitted._replace(held_out=held_out)


def quietly(member: Member, rows: EncodedFolds) -> list[CrossFitted]:
    """Learn without the warnings of a member: held-out rows say whether it is any good."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return member.cross_fit(rows)


def rows_in_time(
    rows: FoldedRows,
    members: Sequence[Member],
    costs: CostModel,
    budget: TimeBudget,
    n_jobs: int,
    seed: int,
    absolute_time: bool,
) -> FoldedRows:
    """Return all rows where there is time for all members; else fewer folds, and fewer rows.

    So many rows are kept that the first member manages them in a quarter of the time, or in its
    share. Learns the first members on a piece of a long table, to know what they take.
    """
    n_rows, n_rare = rows.table.n_rows, int(rows.is_rare.sum())
    if n_rows < SMALL_ROWS:
        return rows
    views = TrainingViews(rows.piece(seed), absolute_time)
    pilot(members[:_PILOT_MEMBERS], views, costs, seed, n_jobs)

    def size_of(member: Member) -> Size:
        n_learned = n_rare + _most_majority(member, n_rows - n_rare)
        return Size(n_learned, n_rare, views.encoded(member.view).shape[1])

    predicted = (costs.predict(each, size_of(each), rows.n_folds) or 0.0 for each in members)
    if sum(predicted) <= budget.left:
        return rows
    rows, first = rows.in_fewer_folds(), members[0]
    share = max(_FIRST_PART, first.share / sum(member.share for member in members))
    size = costs.affordable(first, size_of(first), rows.n_folds, share * budget.left)
    if size == size_of(first):
        return rows
    return rows.thinned(size.n_rows - n_rare, seed)


def pilot(
    members: Sequence[Member], views: TrainingViews, costs: CostModel, seed: int, n_jobs: int
) -> None:
    """Learn members on two folds of a small piece of the table, for the time that they take."""
    fold = np.where(views.fold < 0, views.fold, views.fold % 2)
    for member in members:
        rows = EncodedFolds(
            views.encoded(member.view), views.is_rare, views.weight, fold, seed, n_jobs
        )
        start = time.perf_counter()
        quietly(member, rows)
        costs.learn(member, rows.size, rows.n_folds, time.perf_counter() - start)
