"""Out-of-fold scores: a method learns each fold's training rows and scores its test rows."""

import time as clock
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rareclass.compare.fitting import fit_on, take_rows
from rareclass.decide.rarity_scores import rarity_scores

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


class FoldRows(NamedTuple):
    """The rows that all methods learn from and are judged on, and their folds."""

    X: Any
    y: NDArray[Any]  # labels, as the methods are given them
    pos_label: Any
    weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None
    time: NDArray[Any] | None
    folds: list[Split]  # rows to learn from and to test


class FoldScores(NamedTuple):
    """What a method made of a fold."""

    scores: NDArray[np.float64]  # of the test rows, in their order
    seconds: float  # to learn and to score


def fold_scores(estimator: Any, rows: FoldRows) -> Iterator[FoldScores]:
    """Learn and score fold by fold, each by a clone of the estimator."""
    for train, test in rows.folds:
        start = clock.perf_counter()
        model = fit_on(
            clone(estimator),
            take_rows(rows.X, train),
            rows.y[train],
            *(None if column is None else column[train] for column in rows[3:6]),
        )
        scores = rarity_scores(model, take_rows(rows.X, test), rows.pos_label)
        yield FoldScores(scores, clock.perf_counter() - start)
