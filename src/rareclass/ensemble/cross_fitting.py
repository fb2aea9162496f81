"""Members learned on the folds of a table, one after the other; of each, held-out scores.

The folds of a member run through joblib (`learn_folds`). A member that the time limit of the user
stops, or that fails, is left out; Ctrl-C leaves those that were learned by then.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from rareclass.compiling import compiled_seconds
from rareclass.ensemble.combination import Candidate
from rareclass.ensemble.members.member import CrossFitted, EncodedFolds, Member, Stopped
from rareclass.ensemble.training_rows import HeldOutRows, TrainingViews
from rareclass.folds.majority_part import draw_majority


def learning_clock() -> float:
    """Return seconds since some moment, compiling left out: only the first run has to compile."""
    return time.perf_counter() - compiled_seconds()


class TimeLimit(NamedTuple):
    """Seconds that a fit may take, counted from `started`; None: as long as it takes.

    Sent to another process, whose clock is another one, it goes on with what is left.
    """

    seconds: float | None
    started: float

    @classmethod
    def from_now(cls, seconds: float | None) -> "TimeLimit":
        """Return a limit that is counted from this moment."""
        return cls(seconds, learning_clock())

    @property
    def left(self) -> float:
        """Seconds until the end, negative after it; infinite without a limit."""
        if self.seconds is None:
            return float("inf")
        return self.seconds - (learning_clock() - self.started)

    def check(self) -> None:
        """Raise `Stopped` after the end."""
        if self.left < 0.0:
            raise Stopped

    def __reduce__(self) -> tuple[Callable[..., "TimeLimit"], tuple[float | None, float]]:
        return _with_left, (self.seconds, self.left)


def _with_left(seconds: float | None, left: float) -> TimeLimit:
    started = learning_clock()
    return TimeLimit(seconds, started if seconds is None else started - (seconds - left))


@dataclass
class CrossFitting:
    """Members learned so far; `run` may be interrupted at any time and leaves all that is whole.

    `stopped` are members that the time limit stopped or did not let begin; `failed` holds the
    errors of members. The first member has no time limit.
    """

    views: TrainingViews
    held_out: HeldOutRows
    n_jobs: int
    limit: TimeLimit = field(default_factory=lambda: TimeLimit.from_now(None))
    report: Callable[[str], None] = lambda name: None  # called before a member is learned
    candidates: list[Candidate] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)

    def run(self, members: Sequence[Member]) -> None:
        """Learn members in order; raises the first error where all of them fail."""
        has_categories = bool(self.views.statistics.category_names_)
        # A view of indicators holds nothing of its own where there are no categories.
        useful = [each for each in members if has_categories or each.view != "indicators"]
        for member in useful or members:
            self.report(member.name)
            try:
                self._learn(member)
            except Stopped:
                self.stopped.append(member.name)
            except Exception as error:  # of whatever learns it: the others are none the worse
                self.failed[member.name] = error
        if not self.candidates:
            raise next(iter(self.failed.values()))

    def _learn(self, member: Member) -> None:
        """Learn a member from all rows, or from as many of the majority as it learns from."""
        started = learning_clock()
        every = rows = self.views.folds(member.view, self.held_out.seed, self.n_jobs)
        if self.candidates:
            rows = every = replace(every, check=self.limit.check)
        learned, most = np.arange(len(every.fold)), member.most_majority
        if most is not None and most < np.count_nonzero(~rows.is_rare):
            learned, weight = draw_majority(rows.is_rare, rows.weight, most, rows.seed)
            rows = rows.take(learned, weight)
        with warnings.catch_warnings():  # held-out rows say whether a member is any good
            warnings.simplefilter("ignore")
            fitted = member.cross_fit(rows)
        if len(learned) < len(every.fold):
            others = np.setdiff1d(self.held_out.tested, learned, assume_unique=True)
            fitted = [_with_others(each, every, learned, others) for each in fitted]
        share = (learning_clock() - started) / len(fitted)
        self.candidates += [
            Candidate.of(member, each, rows.mean_of(each), share, self.held_out) for each in fitted
        ]


def _with_others(
    fitted: CrossFitted, rows: EncodedFolds, learned: np.ndarray, others: np.ndarray
) -> CrossFitted:
    """Add scores of rows that no function saw, each by the function of its fold."""
    held_out = np.full(len(rows.fold), np.nan)
    held_out[learned] = fitted.held_out
    held_out[others] = rows.scores_by_fold(fitted.functions, others)
    return fitted._replace(held_out=held_out)
