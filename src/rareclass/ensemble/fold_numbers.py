"""The folds that all members share, as the number of the fold that holds each row out."""

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold

from rareclass.estimators.folds import make_folds
from rareclass.labels.two_classes import Labels

# Rows that every fold learns from, and none scores.
ALWAYS_LEARNED = -1


def fold_numbers(
    cv: Any,
    labels: Labels,
    n_rows: int,
    seed: int,
    groups: np.ndarray | None = None,
    time: np.ndarray | None = None,
) -> np.ndarray:
    """Number of the fold that holds each row out, of shape (n_rows,).

    Stratified and shuffled; rows of a group stay together; with `time` a fold is a stretch of it.
    A single rare row is always learned from. Raises `ValueError` where a row is held out twice.
    """
    is_rare = np.zeros(n_rows, dtype=bool)
    is_rare[labels.rare] = True
    if len(labels.rare) == 1:
        return _of_majority(cv, is_rare, seed)
    if time is not None:
        return _stretches(int(cv), is_rare, np.asarray(time))
    if groups is not None and isinstance(cv, (int, np.integer)):
        folds = min(int(cv), len(labels.rare), len(np.unique(groups)))
        splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
        cv = list(splitter.split(np.empty((n_rows, 0)), is_rare, groups))
    elif isinstance(cv, (int, np.integer)):
        cv = min(int(cv), len(labels.rare), len(labels.majority))
    number = np.full(n_rows, ALWAYS_LEARNED)
    for k, fold in enumerate(make_folds(cv, labels, n_rows, seed, "more rows")):
        if (number[fold.tested] >= 0).any():
            row = int(np.flatnonzero(fold.tested & (number >= 0))[0])
            raise ValueError(
                f"cv holds row {row} out twice: give folds that hold each row out once at most."
            )
        number[fold.tested] = k
    return number


def _of_majority(cv: Any, is_rare: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    number = rng.permutation(len(is_rare)) % min(int(cv), int((~is_rare).sum()))
    number[is_rare] = ALWAYS_LEARNED
    return number


def _stretches(cv: int, is_rare: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Stretches of time that hold about as many rare rows each."""
    order = np.argsort(time, kind="stable")
    n_rare = int(is_rare.sum())
    n_folds = min(cv, n_rare)
    before = np.cumsum(is_rare[order]) - is_rare[order]
    number = np.empty(len(time), dtype=np.int64)
    number[order] = np.minimum(before * n_folds // n_rare, n_folds - 1)
    # Rows of one moment stay together.
    _, place = np.unique(time, return_inverse=True)
    first = np.full(place.max() + 1, n_folds)
    np.minimum.at(first, place, number)
    return first[place]
