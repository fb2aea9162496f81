"""Ensemble members: what a learner declares (view, cost) and how it learns folds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import joblib
import numpy as np
from scipy import sparse

from rareclass.ensemble.score_functions import ScoreFunction, mean_function
from rareclass.ensemble.tree_sum import TreeSum
from rareclass.rows.memory import count_threads

# Boosting by several threads meets at a barrier in every node of every tree: on a machine that does
# anything else, waiting takes far longer than one thread needs for everything. Below so many cells
# a thread more does not pay.
CELLS_A_BOOSTING_THREAD = 2_000_000
_FOLD_SECONDS = 0.005  # for a fold of a few rows
# Ten thousand million numbers of this size still have a sum in float32.
_LARGEST = np.float32(1e28)


class Stopped(Exception):  # noqa: N818 (nothing went wrong)
    """The time for a member ran out before the member was learned."""


@dataclass(frozen=True)
class Size:
    """Numbers of rows, rare rows and features (of the member's view) of a training table."""

    n_rows: int
    n_rare: int
    n_features: int


def _time_is_left() -> None:
    """Stand in for a check of the time where there is no limit."""


class RowsAsUnseen(NamedTuple):
    """Rows, by number, whose features are others where the fold that holds them out learns.

    They have words that no other fold has: `X` has them as rows of words that training did not
    have.
    """

    rows: np.ndarray
    X: Any

    def among(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the places in `chosen`, row numbers, of rows that are here, and their places."""
        _, places, found = np.intersect1d(chosen, self.rows, return_indices=True)
        return places, found


@dataclass(frozen=True, eq=False)
class EncodedFolds:
    """Encoded training rows with their labels and folds.

    `X` has the shape (n_rows, n_features), dense or CSR; `is_rare`, `weight` (None: every row
    counts once) and `fold` the shape (n_rows,). Rows of fold k are not learned from when their
    scores are held-out scores; a fold below 0 is learned from always and scored by nobody.
    `features` are those that the functions of each fold see, `unseen` rows that are others to the
    fold that holds them out; None: all features, and no rows.
    `check` raises `Stopped` when there is no time left; members call it between folds.
    """

    X: Any
    is_rare: np.ndarray
    weight: np.ndarray | None
    fold: np.ndarray
    seed: int
    n_jobs: int
    check: Callable[[], None] = _time_is_left
    features: Sequence[np.ndarray] | None = None
    unseen: Mapping[int, RowsAsUnseen] | None = None

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    def features_of(self, number: int) -> np.ndarray:
        """Return the features that the functions of a fold see."""
        return np.arange(self.X.shape[1]) if self.features is None else self.features[number]

    def part(self, number: int, rows: np.ndarray) -> Any:
        """Return rows, by number, as the functions of a fold see them: (n_rows, n_seen)."""
        if self.features is None:
            return self.X[rows]
        X = self.X[rows]
        if self.unseen is not None:
            places, found = self.unseen[number].among(rows)
            X = _with_rows(X, places, self.unseen[number].X[found])
        return X[:, self.features[number]]

    def learned_by(self, number: int) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return the rows that a fold learns from, as it sees them, their labels and weights."""
        rows = np.flatnonzero(self.fold != number)
        return self.part(number, rows), self.is_rare[rows], self.weights(rows)

    def of_fold(self, number: int) -> Self:
        """Return the rows of one fold alone, which is number 0; the others are always learned."""
        return replace(
            self,
            X=self.part(number, np.arange(len(self.fold))),
            fold=np.where(self.fold == number, 0, -1),
            features=None,
            unseen=None,
        )

    def mean_of(self, fitted: "CrossFitted") -> ScoreFunction:
        """Return the function for new rows, of all features."""
        functions = fitted.functions
        if self.features is not None:
            each = zip(functions, self.features, strict=True)
            functions = [function.at(own, self.X.shape[1]) for function, own in each]
        return mean_function(functions)

    def take(self, rows: np.ndarray, weight: np.ndarray | None) -> Self:
        """Return some of the rows, with other weights."""
        unseen = None
        if self.unseen is not None:
            found = {number: (each, *each.among(rows)) for number, each in self.unseen.items()}
            unseen = {
                number: RowsAsUnseen(places, each.X[own])
                for number, (each, places, own) in found.items()
            }
        return replace(
            self,
            X=self.X[rows],
            is_rare=self.is_rare[rows],
            weight=weight,
            fold=self.fold[rows],
            unseen=unseen,
        )

    def scores_by_fold(self, functions: Sequence[ScoreFunction], rows: np.ndarray) -> np.ndarray:
        """Return scores of rows, by number, by the function of the fold that holds each out.

        Those of no fold by that of the first.
        """
        scores, fold = np.empty(len(rows)), np.maximum(self.fold[rows], 0)
        for number, function in enumerate(functions):
            self.check()
            own = np.flatnonzero(fold == number)
            scores[own] = function.scores(self.part(number, rows[own]), self.n_jobs)
        return scores

    def weights(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the weights of the chosen rows, if there are any."""
        return None if self.weight is None else self.weight[rows]

    def each_fold(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the number of each fold and the mask of its rows, while there is time."""
        for number in range(self.n_folds):
            self.check()
            yield number, self.fold == number


def _with_rows(X: Any, places: np.ndarray, others: Any) -> Any:
    """Return the rows of X, a copy, with others at some places."""
    if not len(places):
        return X
    if sparse.issparse(X):
        order = np.arange(X.shape[0])
        order[places] = X.shape[0] + np.arange(len(places))
        return sparse.vstack([X, others], format="csr")[order]
    X[places] = others
    return X


class CrossFitted(NamedTuple):
    """One setting of a member, learned once for every fold.

    `held_out` of shape (n_rows,) are scores by the function that did not see the row, NaN for rows
    of no fold; `functions` are those of the folds, in order, of the features that each sees.
    """

    setting: str  # in words, such as "C 0.1"; "" where the member has one setting
    held_out: np.ndarray
    functions: list[ScoreFunction]


class Member:
    """A way to learn a ranking from encoded rows; subclasses are frozen and have `cross_fit`."""

    name: ClassVar[str]  # in `members=` and in the leaderboard
    view: ClassVar[str]  # the encoding that the member needs: a name in `rareclass.encoding.views`
    package: ClassVar[str | None] = None  # to be installed besides the core
    # Seconds of one thread of the reference machine for a unit of `cost`.
    unit: ClassVar[float] = 1e-6
    # On fewer rows the member adds nothing to quicker ones, and is left out of several.
    least_rows: ClassVar[int] = 0
    # On more columns it takes too long for what it adds.
    most_columns: ClassVar[int | None] = None
    # Majority rows that the member learns from at most, with weights that make up; None: all.
    most_majority: ClassVar[int | None] = None

    def cost(self, size: Size) -> float:
        """Return a number that is proportional to the seconds of one fold, in the member's unit."""
        raise NotImplementedError

    def seconds(self, size: Size) -> float:
        """Return the seconds that one fold takes one thread of the reference machine."""
        return _FOLD_SECONDS + self.unit * self.cost(size)

    def cross_fit(self, rows: EncodedFolds) -> list[CrossFitted]:
        """Learn every fold, for one setting or for several that share the work.

        Raises `Stopped` when `rows.check` does.
        """
        raise NotImplementedError

    def within_memory(self, n_bytes: int) -> "Member":
        """Return the member with at most so many bytes for what it could compute again."""
        return self


Learned = TypeVar("Learned")


def learn_folds(
    rows: EncodedFolds, learn: Callable[[EncodedFolds, int], Learned], at_once: int = 1
) -> Iterator[tuple[int, Learned]]:
    """Yield the number of each fold, in order, and what `learn` returns for it.

    The folds run through joblib: `at_once` of them in threads, or where `joblib.parallel_config`
    says, such as on the workers of a Dask cluster. `rows.check` is called before each.
    """
    folds = joblib.Parallel(at_once, prefer="threads", batch_size=1, return_as="generator")
    tasks = (joblib.delayed(_learn_fold)(learn, rows, number) for number in range(rows.n_folds))
    yield from enumerate(folds(tasks))


def _learn_fold(
    learn: Callable[[EncodedFolds, int], Learned], rows: EncodedFolds, number: int
) -> Learned:
    rows.check()
    with joblib.parallel_config("threading"):  # what a fold itself does at once stays with it
        return learn(rows, number)


class FoldByFold(Member):
    """A member of one setting that learns each fold by itself; subclasses have `learn`."""

    # Threads go to the folds first, which have nothing to wait for; to each as many as its table
    # has this number of cells. None: threads go to the folds one after the other.
    cells_a_thread: ClassVar[int | None] = None

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> ScoreFunction:
        """Learn a score function from the rows of one training part."""
        raise NotImplementedError

    def cross_fit(self, rows: EncodedFolds) -> list[CrossFitted]:
        """Learn every fold; there is one setting."""
        at_once, n_threads = 1, rows.n_jobs
        if self.cells_a_thread is not None:
            available = count_threads(rows.n_jobs)
            at_once = max(1, min(available, rows.n_folds))
            n_threads = max(1, min(available // at_once, rows.X.size // self.cells_a_thread))

        held_out, functions = np.full(len(rows.fold), np.nan), []
        learn = partial(self._learn_fold, n_threads=n_threads)
        for number, (function, scores) in learn_folds(rows, learn, at_once):
            held_out[rows.fold == number] = scores
            functions.append(function)
        return [CrossFitted("", held_out, functions)]

    def _learn_fold(
        self, rows: EncodedFolds, number: int, n_threads: int
    ) -> tuple[ScoreFunction, np.ndarray]:
        """Return the function of one fold and the scores of the rows that it holds out."""
        function = self.learn(*rows.learned_by(number), rows.seed + number, n_threads)
        tested = np.flatnonzero(rows.fold == number)
        return function, function.scores(rows.part(number, tested), n_threads)


class TreeMember(FoldByFold):
    """A member whose score is a sum of trees; subclasses have `grow`."""

    view: ClassVar[str] = "trees"

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """Learn trees; the score is 0 where there is one class."""
        if is_rare.all() or not is_rare.any():
            return TreeSum.of([])
        return self.grow(X, is_rare, weight, seed, n_jobs)

    def grow(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """Learn trees from rows of two classes."""
        raise NotImplementedError


def float32_rows(X: np.ndarray) -> np.ndarray:
    """Return dense rows in float32, for libraries that compare in it, clipped to +-1e28.

    Scored as they are, larger numbers still lie beyond every threshold.
    """
    with np.errstate(over="ignore"):
        rows = np.asarray(X).astype(np.float32)
    return np.clip(rows, -_LARGEST, _LARGEST, out=rows)
