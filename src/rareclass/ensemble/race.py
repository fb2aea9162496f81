"""The race: members learned in turn under a time budget, the most useful first.

1. the first member that is likely to keep to its share of the time left, on as many of the majority
   rows as fit into it; time that others are not likely to need is there for those before them
2. where none is, the first that is likely to end at all
3. a member that is clearly behind the best one on its first fold is learned no further

Members are learned one after the other; the folds of one run through joblib (`learn_folds`).

The time of a member is predicted from a small piece of the table (`rows_in_time`), then from what
the member took. What only the first run on a machine takes, compiling, is no part of it.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from rareclass.compiling import compiled_seconds
from rareclass.ensemble.cost_model import CostModel, reference_seconds
from rareclass.ensemble.members.member import CrossFitted, EncodedFolds, Member, Size, Stopped
from rareclass.ensemble.near_best import Behind, Leader
from rareclass.ensemble.score_functions import ScoreFunction
from rareclass.ensemble.training_rows import (
    FoldedRows,
    HeldOutRows,
    TrainingViews,
    draw_piece,
)
from rareclass.estimators.search import Scoring
from rareclass.folds.majority_part import draw_majority
from rareclass.metrics import average_precision

# A member that takes longer than predicted is stopped at this multiple of the budget.
_HARD_LIMIT = 1.15
# Tables of fewer rows are learned without a look at a piece of them first.
SMALL_ROWS = 10_000
_PILOT_MEMBERS = 3
# Folds of a small piece, and the part of the time left that a look at it may be likely to take.
_PIECE_FOLDS, _MEASURING_PART = 2, 0.1
# What the first call of a member in a process may take besides learning.
_FIRST_CALL_SECONDS = 5.0
# The part of the time that the first member may be likely to take on all rows: the table is
# thinned to as many. Each of the others then takes as many of these as it has time for.
_FIRST_PART = 0.25
# The part of all the time that the first member has, also where no time is left.
_FIRST_LEAST_PART = 0.1

# Seconds of a fit by default: as many up to so many rows, then as their square root, up to a most.
_SHORT_SECONDS, _SHORT_ROWS, _MOST_SECONDS = 10.0, 3_000, 60.0


def default_seconds(n_rows: int) -> float:
    """Return the whole seconds that a fit may take where the user names none.

    More time gains next to nothing on short tables, and more rows and members on long ones
    (`python -m benchmarks.anytime`).

    >>> [default_seconds(n_rows) for n_rows in (500, 3_000, 50_000, 1_000_000)]
    [10.0, 10.0, 41.0, 60.0]
    """
    seconds = _SHORT_SECONDS * max(1.0, np.sqrt(n_rows / _SHORT_ROWS))
    return min(float(round(seconds)), _MOST_SECONDS)


def learning_clock() -> float:
    """Return seconds since some moment, compiling left out: only the first run has to compile."""
    return time.perf_counter() - compiled_seconds()


@dataclass(frozen=True)
class TimeBudget:
    """Seconds for a fit, counted from when the budget is made; compiling takes none of them.

    Sent to another process, whose clock is another one, it goes on with what is left.
    """

    seconds: float
    started: float = field(default_factory=lambda: learning_clock())

    @property
    def left(self) -> float:
        """Seconds until the end; negative after it."""
        return self.seconds - (learning_clock() - self.started)

    def check(self) -> None:
        """Raise `Stopped` when the end is well past."""
        if self.left < (1.0 - _HARD_LIMIT) * self.seconds:
            raise Stopped

    def __reduce__(self) -> tuple[Callable[[float, float], "TimeBudget"], tuple[float, float]]:
        return _budget_with_left, (self.seconds, self.left)


def _budget_with_left(seconds: float, left: float) -> TimeBudget:
    return TimeBudget(seconds, learning_clock() - (seconds - left))


class FirstFold(NamedTuple):
    """The best member, which the held-out scores of a member's first fold are compared with.

    `numbers` are those of the rows that the member learns from among all; `is_rare` and `weight`
    are theirs.
    """

    leader: Leader
    numbers: np.ndarray
    is_rare: np.ndarray
    weight: np.ndarray | None
    objective: Scoring

    def judge(self, scores: np.ndarray) -> None:
        """Raise `Behind` for a member that will not come near the best one."""
        first = np.flatnonzero(~np.isnan(scores))
        weight = None if self.weight is None else self.weight[first]
        rows = (self.numbers[first], self.is_rare[first], weight)
        if self.leader.is_ahead_of(scores[first], *rows, self.objective):
            raise Behind


@dataclass(frozen=True)
class Candidate:
    """A setting of a member, learned on the folds.

    `held_out` of shape (n_rows,) are scores by functions that did not see the row, NaN for rows
    that nothing is measured on; `by_fold` the functions of the folds, of the features that each
    sees, `function` their mean, of all features.
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
    predicted, or a member was begun and stopped; `behind` the members that their first fold showed
    to be; `failed` holds the errors of members.
    """

    views: TrainingViews
    held_out: HeldOutRows
    budget: TimeBudget
    costs: CostModel
    seed: int
    n_jobs: int
    report: Callable[[str], None] = lambda name: None  # called before a member is learned
    objective: Scoring = average_precision
    candidates: list[Candidate] = field(default_factory=list)
    learned: list[str] = field(default_factory=list)  # names of members, in order
    without_time: dict[str, float | None] = field(default_factory=dict)
    behind: list[str] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)
    unmeasurable: set[str] = field(default_factory=set)  # members that a piece says nothing of
    leader: Leader | None = None  # the best candidate so far

    def run(self, members: Sequence[Member]) -> None:
        """Learn members; those that are not likely to end in time are not.

        One is learned whatever it takes: the first that is likely to end in time, or else the
        quickest. It has a tenth of the whole time even where reading the table took more: a few
        seconds late is better than a model of the quickest member alone.
        """
        pending = list(members)
        seconds = np.array([self._predicted(member, 0.0) or 0.0 for member in pending])
        least = _FIRST_LEAST_PART * self.budget.seconds
        within = np.flatnonzero(seconds <= max(self.budget.left, least))
        first = int(within[0] if len(within) else np.argmin(seconds))
        chosen: tuple[int, float] | None = first, max(self._allowed(first, members), least)
        while chosen is not None:
            self._learn(pending.pop(chosen[0]), chosen[1])
            chosen = self._next(pending)
        for member in pending:
            if member.name in self.failed:
                continue
            in_time = self.budget.left > 0.0
            self.without_time[member.name] = self._predicted(member, 0.0) if in_time else None
        if not self.candidates:
            raise next(iter(self.failed.values()))

    def _next(self, pending: Sequence[Member]) -> tuple[int, float] | None:
        """Return the place of the next member and its seconds; None where none fits.

        The first that is likely to keep to its part of the time, with what others do not need of
        theirs; or else to all the time that is left. Before none is, those whose time is guessed
        from what others took are measured on a small piece of the table, one at a time.
        """
        while (left := self.budget.left) > 0.0:
            for may_take in (lambda k: self._allowed(k, pending), lambda k: left):
                for k, member in enumerate(pending):
                    seconds = may_take(k)
                    if (self._predicted(member, seconds) or 0.0) <= seconds:
                        return k, seconds
            if not any(self._measure(member) for member in pending):
                break
        return None

    def _measure(self, member: Member) -> bool:
        """Measure the time of a member on a piece of the table, where that is short elsewhere.

        False where its time is known already, a piece would take long, or the member fails there.
        """
        if member.name in self.costs.ratios or member.name in self.unmeasurable:
            return False
        rows = self.views.folds(member.view, self.seed, self.n_jobs)
        chosen = draw_piece(rows.is_rare, self.seed)
        piece = replace(rows.take(chosen, rows.weights(chosen)), check=self.budget.check)
        likely = reference_seconds(member, piece.size, _PIECE_FOLDS)
        if likely <= _MEASURING_PART * self.budget.left:
            try:
                learn_piece(member, piece, self.costs)
                return True
            except Stopped:
                pass
            except Exception as error:  # of whatever learns it, as in `_learn`
                self.failed[member.name] = error
        self.unmeasurable.add(member.name)
        return False

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
        rows = self.views.folds(member.view, self.seed, self.n_jobs)
        size = self.costs.affordable(member, rows.size, rows.n_folds, seconds)
        return self.costs.predict(member, size, rows.n_folds)

    def _learn(self, member: Member, seconds: float) -> None:
        """Learn a member on the rows that it can learn from within so many seconds.

        The first one is learned to its end, whatever it takes.
        """
        self.report(member.name)
        every = rows = self.views.folds(member.view, self.seed, self.n_jobs)
        size = self.costs.affordable(member, rows.size, rows.n_folds, seconds)
        learned = np.arange(len(every.fold))
        if size.n_rows < len(rows.fold):
            n_majority = size.n_rows - size.n_rare
            learned, weight = draw_majority(rows.is_rare, rows.weight, n_majority, rows.seed)
            rows = rows.take(learned, weight)
        if self.leader is not None:
            first = FirstFold(self.leader, learned, rows.is_rare, rows.weight, self.objective)
            rows = replace(rows, judge=first.judge)
        if self.candidates:
            rows = replace(rows, check=self.budget.check)
        start = learning_clock()
        try:
            fitted = quietly(member, rows)
            if len(learned) < len(every.fold):
                others = np.setdiff1d(self.held_out.tested, learned, assume_unique=True)
                fitted = [_with_others(each, every, learned, others, rows.check) for each in fitted]
        except Stopped:
            self.without_time[member.name] = None
        except Behind:
            self.behind.append(member.name)
        except Exception as error:  # of whatever learned it: the others are none the worse
            self.failed[member.name] = error
        else:
            self._take_in(member, fitted, rows, learning_clock() - start)

    def _take_in(
        self, member: Member, fitted: list[CrossFitted], rows: EncodedFolds, took: float
    ) -> None:
        """Add the settings of a member to the candidates."""
        self.costs.learn(member, rows.size, rows.n_folds, took)
        share = took / len(fitted)
        means = [rows.mean_of(each) for each in fitted]
        self.candidates += [
            Candidate(member, each.setting, each.held_out, each.functions, mean, share)
            for each, mean in zip(fitted, means, strict=True)
        ]
        scores = [each.held_out for each in fitted]
        self.leader = Leader.of(scores, self.held_out, self.objective, self.leader)
        self.learned.append(member.name)
        self.failed.pop(member.name, None)  # a piece is no proof


def _with_others(
    fitted: CrossFitted,
    rows: EncodedFolds,
    learned: np.ndarray,
    others: np.ndarray,
    check: Callable[[], None],
) -> CrossFitted:
    """Add scores of rows that no function saw, each by the function of its fold."""
    held_out = np.full(len(rows.fold), np.nan)
    held_out[learned] = fitted.held_out
    for number, function in enumerate(fitted.functions):
        check()
        of_fold = others[rows.fold[others] == number]
        held_out[of_fold] = function.scores(rows.part(number, of_fold), rows.n_jobs)
    return fitted._replace(held_out=held_out)


def quietly(member: Member, rows: EncodedFolds) -> list[CrossFitted]:
    """Learn without the warnings of a member: held-out rows say whether it is any good."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return member.cross_fit(rows)


def learn_piece(member: Member, piece: EncodedFolds, costs: CostModel) -> None:
    """Learn two folds of a small piece of a table, to know what the member takes."""
    fold = np.where(piece.fold < 0, piece.fold, piece.fold % _PIECE_FOLDS)
    piece = replace(piece, fold=fold)
    start = learning_clock()
    quietly(member, piece)
    costs.learn(member, piece.size, piece.n_folds, learning_clock() - start)


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
    share. Learns the first members on two folds of a small piece of a long table, to know what
    they take, but those that would take a tenth of the time for it, as on a slow machine.
    """
    n_rows, n_rare = rows.table.n_rows, int(rows.is_rare.sum())
    if n_rows < SMALL_ROWS:
        return rows
    views = TrainingViews(rows.piece(seed), absolute_time)
    # The first call of a process reads libraries and starts threads, which takes seconds: where it
    # was short, the member is measured again.
    for member in (members[0], *members[:_PILOT_MEMBERS]):
        piece = views.folds(member.view, seed, n_jobs)
        likely = costs.predict(member, piece.size, _PIECE_FOLDS) or 0.0
        most = _MEASURING_PART * budget.left
        if member.name in costs.ratios:
            most = min(most, _FIRST_CALL_SECONDS)
        if likely <= most:
            learn_piece(member, piece, costs)
    sizes = [
        Size(n_rows, n_rare, views.folds(each.view, seed, n_jobs).size.n_features)
        for each in members
    ]
    seconds = (
        costs.predict(member, costs.affordable(member, size, rows.n_folds, np.inf), rows.n_folds)
        for member, size in zip(members, sizes, strict=True)
    )
    if sum(each or 0.0 for each in seconds) <= budget.left:
        return rows
    rows = rows.with_fewer_folds()
    first = members[0]
    every = costs.affordable(first, sizes[0], rows.n_folds, np.inf)
    share = max(_FIRST_PART, first.share / sum(member.share for member in members))
    size = costs.affordable(first, every, rows.n_folds, share * budget.left)
    if size == every:
        return rows
    # All rare rows, and so many majority rows, weighted to stand for all.
    return rows.part(*draw_majority(rows.is_rare, rows.weight, size.n_rows - n_rare, seed))
