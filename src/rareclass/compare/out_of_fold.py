"""Out-of-fold scores: learn the training part of each fold and score the test part."""

import inspect
import time as clock
from collections.abc import Iterator
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from rareclass.compare.comparison import MethodRun
from rareclass.decide.rarity_scores import rarity_scores
from rareclass.errors import ErrorKind, InputError

# Rows that weights may be written out as, for a learner that takes none.
_MOST_COPIED = 5_000_000


class FoldRows(NamedTuple):
    """Rows that all methods learn from and are tested on, and their folds."""

    X: Any
    y: NDArray[Any]  # labels, as the methods are given them
    pos_label: Any
    weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None
    time: NDArray[Any] | None
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]]  # rows to learn from and to test


class FoldScores(NamedTuple):
    """Scores of a fold's test rows, in their order, and the seconds to learn and score."""

    scores: NDArray[np.float64]
    seconds: float


class MethodOutcome(NamedTuple):
    """Scores of a method on all folds, or the reason why there are none."""

    status: str  # "ok", "failed", "stopped" or "interrupted"
    message: str  # reason where the status is not "ok"
    seconds: list[float]  # of each fold that was done
    memory: int | None = None  # most bytes beyond those held before, where that is known
    scores: NDArray[np.float64] | None = None  # of the test rows of all folds, one after the other
    warnings: tuple[str, ...] = ()

    def run(self, name: str) -> MethodRun:
        """Return the outcome as a line of the comparison."""
        return MethodRun(
            name,
            self.status,
            self.message,
            sum(self.seconds),
            len(self.seconds),
            self.memory,
            self.warnings,
        )


def fold_scores(estimator: Any, rows: FoldRows) -> Iterator[FoldScores]:
    """Learn and score fold by fold, each by a clone of the estimator."""
    for train, test in rows.folds:
        start = clock.perf_counter()
        beside = (
            None if column is None else column[train]
            for column in (rows.weight, rows.groups, rows.time)
        )
        model = fit_on(clone(estimator), take_rows(rows.X, train), rows.y[train], *beside)
        scores = rarity_scores(model, take_rows(rows.X, test), rows.pos_label)
        yield FoldScores(scores, clock.perf_counter() - start)


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Take rows of an array, a sparse matrix, or a pandas, polars or pyarrow table."""
    if sparse.issparse(X) or isinstance(X, np.ndarray):
        return X[rows]
    table = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(table, nw.DataFrame):
        return table[rows].to_native()
    return np.asarray(X)[rows]


def fit_on(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    weight: NDArray[np.float64] | None = None,
    groups: NDArray[Any] | None = None,
    time: NDArray[Any] | None = None,
) -> Any:
    """Fit an estimator in place, with those of weights, groups and times that its ``fit`` takes.

    Groups and times are for folds of the estimator's own. Where it takes no weights, a row of
    weight k is repeated k times.

    Raises `InputError` where weights that are not all whole would have to be written out.
    """
    taken = inspect.signature(estimator.fit).parameters
    beside = {"sample_weight": weight, "groups": groups, "time": time if groups is None else None}
    passed = {
        name: column for name, column in beside.items() if column is not None and name in taken
    }
    if weight is not None and "sample_weight" not in passed:
        rows = _copies(estimator, weight)
        X, y = take_rows(X, rows), y[rows]
        passed = {name: column[rows] for name, column in passed.items()}
    return estimator.fit(X, y, **passed)


def _copies(estimator: Any, weight: NDArray[np.float64]) -> NDArray[np.intp]:
    """Each row number as often as its weight says."""
    name = type(estimator).__name__
    if (weight % 1.0 != 0.0).any():
        raise InputError(
            f"{name} takes no sample_weight, and weights that are not whole numbers cannot be "
            "written out as copies.",
            "Leave it out, or give whole weights.",
            ErrorKind.UNSUPPORTED,
        )
    if weight.sum() > _MOST_COPIED:
        raise InputError(
            f"{name} takes no sample_weight, and {weight.sum():,.0f} copies are too many.",
            "Leave it out.",
            ErrorKind.UNSUPPORTED,
        )
    return np.repeat(np.arange(len(weight)), weight.astype(np.intp))
