"""The folds that all members share, as the number of the fold that holds each row out."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rareclass.errors import InputError, counted
from rareclass.estimators.search import Fold, make_folds
from rareclass.folds.dealing import dealt
from rareclass.folds.places import places
from rareclass.folds.stretches import stretches
from rareclass.folds.times import read_times
from rareclass.labels.two_classes import Labels
from rareclass.parameters import is_whole

# Rows that every fold learns from, and none scores.
ALWAYS_LEARNED = -1


def fold_numbers(
    cv: Any,
    labels: Labels,
    n_rows: int,
    seed: int,
    groups: Any = None,
    time: Any = None,
) -> np.ndarray:
    """Number of the fold that holds each row out, of shape (n_rows,), from 0 on.

    Stratified and shuffled; rows of a group stay together; with `time` a fold is a stretch of it.
    A single rare row is always learned from. Whatever the folds, both classes are among the rows
    that a fold does not hold out.

    Raises `ValueError` on a `cv` that is none, that holds a row out twice, or that leaves rows out
    which it does not test; `InputError` where groups or times do not fit the rows, or leave too few
    folds.
    """
    if groups is not None and time is not None:
        raise ValueError("groups and time both make folds: give one of them.")
    is_count = isinstance(cv, (bool, int, np.integer))
    if is_count:
        _check_count(cv, labels)
        if len(labels.rare) == 1:
            return _of_majority(int(cv), labels, n_rows, seed)
    elif time is not None:
        raise ValueError(f"cv={cv!r} must be a whole number where time makes the folds.")
    is_rare = np.zeros(n_rows, dtype=bool)
    is_rare[labels.rare] = True
    if time is not None:
        moment = places(read_times(time, n_rows), n_rows, "time")
        return _of_rows(labels, "time", n_rows, partial(stretches, int(cv)), is_rare, moment)
    if groups is not None:
        group = places(groups, n_rows, "groups")
        if is_count:
            n_folds = min(int(cv), len(np.unique(group[labels.rare])))
            return _of_rows(labels, "groups", n_rows, partial(dealt, n_folds, seed), is_rare, group)
        if hasattr(cv, "split"):
            cv = list(cv.split(np.empty((n_rows, 0)), is_rare, group))
    if is_count:
        cv = min(int(cv), len(labels.rare), len(labels.majority))
    return _as_numbers(make_folds(cv, labels, n_rows, seed, "more rows"), labels, n_rows)


def _check_count(cv: Any, labels: Labels) -> None:
    if not is_whole(cv, 2):
        raise ValueError(f"cv={cv!r} must be at least 2 folds.")
    if len(labels.majority) < 2:
        raise InputError(
            "the majority has 1 row of weight above 0, which cannot be held out and learned from.",
            "Give more rows of it.",
        )


def _as_numbers(folds: list[Fold], labels: Labels, n_rows: int) -> np.ndarray:
    """Numbers of folds that each learn from all rows but those that they test."""
    kept = _kept(labels)
    number = np.full(n_rows, ALWAYS_LEARNED)
    for k, fold in enumerate(folds):
        twice = np.flatnonzero(fold.tested & (number >= 0))
        if len(twice):
            raise ValueError(
                f"cv holds row {twice[0]} out twice: give folds that hold each row out once at "
                "most."
            )
        idle = kept[(fold.held_out & ~fold.tested)[kept]]
        if len(idle):
            raise ValueError(
                f"fold {k + 1} of cv neither learns from nor tests {counted(len(idle), 'row')}, "
                f"the first of them row {idle[0]}: give folds that learn from all rows but those "
                "that they test. For folds by time, pass time to fit."
            )
        number[fold.tested] = k
    return number


def _of_majority(cv: int, labels: Labels, n_rows: int, seed: int) -> np.ndarray:
    """Folds of the majority alone."""
    number = np.full(n_rows, ALWAYS_LEARNED)
    n_majority = len(labels.majority)
    order = np.random.default_rng(seed).permutation(n_majority)
    number[labels.majority] = order % min(cv, n_majority)
    return number


def _of_rows(
    labels: Labels,
    name: str,
    n_rows: int,
    split: Callable[[np.ndarray, np.ndarray], np.ndarray],
    is_rare: np.ndarray,
    place: np.ndarray,
) -> np.ndarray:
    """Folds of the rows that count, where each leaves both classes to learn from."""
    kept = _kept(labels)
    number = np.full(n_rows, ALWAYS_LEARNED)
    number[kept] = split(is_rare[kept], place[kept])
    for what, rows in (("rare", labels.rare), ("majority", labels.majority)):
        if len(np.unique(number[rows])) == 1:
            raise InputError(
                f"{name} puts all {what} rows into one fold, which would have none to learn from.",
                f"Fit without {name}.",
            )
    return number


def _kept(labels: Labels) -> np.ndarray:
    return np.sort(np.concatenate([labels.rare, labels.majority]))
