"""What an ensemble knows of a learner: the view it needs, what it costs, how it learns folds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from rareclass.ensemble.functions.score_function import ScoreFunction


class Stopped(Exception):  # noqa: N818 (nothing went wrong)
    """The time for a member ran out before it was learned."""


@dataclass(frozen=True)
class Size:
    """A training table by its numbers."""

    n_rows: int
    n_rare: int
    n_features: int  # of the member's view


@dataclass(frozen=True, eq=False)
class EncodedFolds:
    """Encoded training rows with their labels and folds.

    `X` has the shape (n_rows, n_features), dense or CSR; `is_rare`, `weight` (None: every row
    counts once) and `fold` the shape (n_rows,). Rows of fold k are not learned from when their
    scores are held-out scores; a fold below 0 is learned from always and scored by nobody.
    `check` raises `Stopped` when there is no time left; it is called between folds.
    """

    X: Any
    is_rare: np.ndarray
    weight: np.ndarray | None
    fold: np.ndarray
    seed: int
    n_jobs: int
    check: Callable[[], None] = lambda: None

    @property
    def size(self) -> Size:
        """The table by its numbers."""
        return Size(self.X.shape[0], int(self.is_rare.sum()), self.X.shape[1])

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    def take(self, rows: np.ndarray, weight: np.ndarray | None) -> "EncodedFolds":
        """Some of the rows, with other weights."""
        return replace(
            self,
            X=self.X[rows],
            is_rare=self.is_rare[rows],
            weight=weight,
            fold=self.fold[rows],
        )

    def weights(self, rows: np.ndarray) -> np.ndarray | None:
        """Weights of the chosen rows, if there are any."""
        return None if self.weight is None else self.weight[rows]


class CrossFitted(NamedTuple):
    """A setting of a member, learned once for every fold.

    `held_out` of shape (n_rows,) are scores by the function that did not see the row, NaN for rows
    of no fold; `functions` are those of the folds, in order.
    """

    setting: str  # what tells it from others of the member, in words; "" where there is one
    held_out: np.ndarray
    functions: list[ScoreFunction]


class Member(Protocol):
    """A way to learn a ranking from encoded rows: settings, never changed by learning."""

    name: ClassVar[str]  # what `members=` and the leaderboard call it
    view: ClassVar[str]  # the encoding it needs: a name that `rareclass.encoding.views` knows
    package: ClassVar[str | None]  # what must be installed besides the core
    # Of the time, beside the shares of the others, where there is not enough for all of them.
    share: ClassVar[float]
    # Of fewer rows it learns nothing that quicker ones do not: it is left out of several then.
    least_rows: ClassVar[int]

    # Majority rows that it learns from at most, with weights that make up; None: all.
    most_majority: ClassVar[int | None]

    def cost(self, size: Size) -> float:
        """How its time grows: proportional to the seconds of one fold, in any unit."""
        ...

    def cross_fit(self, rows: EncodedFolds) -> list[CrossFitted]:
        """Learn every fold, for one setting or for several that share the work.

        Raises `Stopped` when `rows.check` does.
        """
        ...


class AnyTable:
    """What most members say of time and of tables: an even share, and all rows of any number."""

    share: ClassVar[float] = 1.0
    least_rows: ClassVar[int] = 0
    most_majority: ClassVar[int | None] = None


class FoldByFold(AnyTable):
    """A member that learns one fold after the other; whoever inherits has ``learn``."""

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> ScoreFunction:
        """A function from the rows of one training part."""
        raise NotImplementedError

    def cross_fit(self, rows: EncodedFolds) -> list[CrossFitted]:
        """Learn every fold; there is one setting."""
        held_out = np.full(len(rows.fold), np.nan)
        functions = []
        for number, tested in each_fold(rows):
            train = np.flatnonzero(~tested)
            function = self.learn(
                rows.X[train],
                rows.is_rare[train],
                rows.weights(train),
                rows.seed + number,
                rows.n_jobs,
            )
            held_out[tested] = function.scores(rows.X[np.flatnonzero(tested)], rows.n_jobs)
            functions.append(function)
        return [CrossFitted("", held_out, functions)]


def each_fold(rows: EncodedFolds) -> Iterator[tuple[int, np.ndarray]]:
    """Number of each fold and the mask of its rows, while there is time."""
    for number in range(rows.n_folds):
        rows.check()
        yield number, rows.fold == number
