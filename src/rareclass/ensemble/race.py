"""Members learned in turn while there is time, the most useful first.

1. every member in order, on the folds of the first round, if it is likely to end in time
2. with few rare rows and time left, the members that are in the running once more on other folds:
   held-out scores and functions are then means over the rounds

What a member is likely to take is known from a small piece of the table (`pilot`), then from what
it took.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rareclass.ensemble.budget import Budget, CostModel
from rareclass.ensemble.functions.score_function import ScoreFunction
from rareclass.ensemble.learned_member import merged
from rareclass.ensemble.members.member import CrossFitted, EncodedFolds, Member, Stopped
from rareclass.ensemble.training_views import TrainingViews

# Of the time left: a member that takes more waits.
_LARGE_PART = 0.35

Report = Callable[[str], None]
"""Told what is learned next."""


@dataclass
class Candidate:
    """A setting of a member, learned on the folds of one round or of several.

    `held_out` are mean scores of rows by functions that did not see them; `by_fold` the functions
    of the first round; `functions` their mean, and that of each further round.
    """

    member: Member
    setting: str
    held_out: np.ndarray
    by_fold: list[ScoreFunction]
    functions: list[ScoreFunction]
    seconds: float

    @property
    def key(self) -> tuple[str, str]:
        """Which it is."""
        return self.member.name, self.setting

    def joined(self, another: "Candidate") -> "Candidate":
        """With what a further round found."""
        n = len(self.functions)
        return Candidate(
            self.member,
            self.setting,
            (n * self.held_out + another.held_out) / (n + 1),
            self.by_fold,
            self.functions + another.functions,
            self.seconds + another.seconds,
        )


@dataclass
class Race:
    """What was learned so far; `run` may be interrupted at any time and leaves all that is whole.

    `without_time` has seconds foretold for members that were not begun, None where none were
    foretold, or a member was begun and stopped; `failed` what members raised.
    """

    views: TrainingViews
    budget: Budget
    costs: CostModel
    seed: int
    n_jobs: int
    report: Report = lambda name: None
    candidates: dict[tuple[str, str], Candidate] = field(default_factory=dict)
    without_time: dict[str, float | None] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)

    def run(self, members: Sequence[Member], number: int = 0) -> None:
        """Learn members on the folds of a round; those that are not likely to end in time are not.

        One is learned whatever it takes: the first that is likely to end in time, or else the
        quickest. Who is likely to take a large part of the time that is left waits until the others
        are done.
        """
        if not self.candidates:
            members = self._one_in_time_first(members, number)
        waiting = self._in_turn(members, number, _LARGE_PART)
        self._in_turn(waiting, number, 1.0)
        if not self.candidates:
            raise next(iter(self.failed.values()))

    def _one_in_time_first(self, members: Sequence[Member], number: int) -> Sequence[Member]:
        every = [self._rows(member, number, may_stop=False) for member in members]
        seconds = [
            self.costs.foretell(member, rows.size, rows.n_folds) or 0.0
            for member, rows in zip(members, every, strict=True)
        ]
        in_time = np.flatnonzero(np.array(seconds) <= self.budget.left)
        first = int(in_time[0] if len(in_time) else np.argmin(seconds))
        return [members[first], *members[:first], *members[first + 1 :]]

    def _in_turn(self, members: Sequence[Member], number: int, share: float) -> list[Member]:
        """Learn those that are likely to take at most a share of the time left; the others."""
        waiting = []
        for member in members:
            is_first = not self.candidates
            if not is_first and self.budget.left <= 0.0:
                self._left_out(member, None)
                continue
            rows = self._rows(member, number, may_stop=not is_first)
            foretold = self.costs.foretell(member, rows.size, rows.n_folds)
            if not is_first and (foretold or 0.0) > share * self.budget.left:
                waiting.append(member)
                if share == 1.0:
                    self._left_out(member, foretold)
                continue
            self.report(member.name)
            try:
                self._learn(member, rows, number)
            except Stopped:
                self._left_out(member, None)
            except Exception as error:  # of whatever learned it: the others are none the worse
                self.failed[member.name] = error
        return waiting

    def _left_out(self, member: Member, foretold: float | None) -> None:
        if member.name not in {name for name, _ in self.candidates}:  # in no round before
            seconds = None if foretold is None else float(foretold)
            self.without_time.setdefault(member.name, seconds)

    def _learn(self, member: Member, rows: EncodedFolds, number: int) -> None:
        start = time.perf_counter()
        found = quietly(member, rows)
        seconds = time.perf_counter() - start
        self.costs.learn(member, rows.size, rows.n_folds, seconds)
        for each in found:
            candidate = Candidate(
                member,
                each.setting,
                each.held_out,
                each.functions,
                [merged(each.functions)],
                seconds / len(found),
            )
            known = self.candidates.get(candidate.key)
            if number == 0:
                self.candidates[candidate.key] = candidate
            elif known is not None:
                self.candidates[candidate.key] = known.joined(candidate)

    def _rows(self, member: Member, number: int, may_stop: bool) -> EncodedFolds:
        views = self.views
        return EncodedFolds(
            views.encoded(member.view, number),
            views.is_rare,
            views.weight,
            views.folds[number],
            self.seed,
            self.n_jobs,
            self.budget.check if may_stop else lambda: None,
        )


def quietly(member: Member, rows: EncodedFolds) -> list[CrossFitted]:
    """Learn without the warnings of a member: whether it is any good, held-out rows say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return member.cross_fit(rows)


def pilot(
    members: Sequence[Member], views: TrainingViews, costs: CostModel, seed: int, n_jobs: int
) -> None:
    """Learn members on two folds of a small piece of the table: what do they take on all of it?"""
    fold = np.where(views.folds[0] < 0, views.folds[0], views.folds[0] % 2)
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
