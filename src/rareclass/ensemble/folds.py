"""The folds that all members share: for each row, the number of the fold that holds it out."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rareclass.errors import ErrorKind, InputError, counted
from rareclass.estimators.search import Fold, make_folds
from rareclass.folds.dealing import dealt, places, read_times, stretches
from rareclass.labels.two_classes import Labels
from rareclass.parameters import is_whole

_PARTS = 5
# The fold of rows that every fold learns from, and none scores.
ALWAYS_LEARNED = -1


def fold_numbers(
    cv: Any,
    labels: Labels,
    n_rows: int,
    seed: int,
    groups: Any = None,
    time: Any = None,
    which: np.ndarray | None = None,
) -> np.ndarray:
    """Return the number of the fold that holds each row out, of shape (n_rows,), from 0 on.

    Stratified and shuffled; rows of a group stay together; with `time` a fold is a stretch of it.
    A single rare row is always learned from. Whatever the folds, both classes are among the rows
    that a fold does not hold out. `which` of shape (n_rows,), -1 for the majority, spreads the rows
    of each of several rare classes over the folds.

    Raises `ValueError` on a `cv` that is none, and `InputError` where `cv` holds a row out twice or
    leaves rows out which it does not test, and where groups or times do not fit the rows or leave
    too few folds.
    """
    is_count = isinstance(cv, (bool, int, np.integer))
    _check(cv, labels, is_count, groups is not None, time is not None)
    is_rare = np.zeros(n_rows, dtype=bool)
    is_rare[labels.rare] = True
    if is_count and len(labels.rare) == 1:  # folds of the majority alone
        number = np.full(n_rows, ALWAYS_LEARNED)
        n_majority = len(labels.majority)
        order = np.random.default_rng(seed).permutation(n_majority)
        number[labels.majority] = order % min(int(cv), n_majority)
        return number
    if time is not None:
        moment = places(read_times(time, n_rows), n_rows, "time")
        return _split(labels, "time", partial(stretches, int(cv)), is_rare, moment)
    if groups is not None:
        groups = group = places(groups, n_rows, "groups")
        if is_count:
            n_folds = min(int(cv), len(np.unique(group[labels.rare])))
            return _split(labels, "groups", partial(dealt, n_folds, seed), is_rare, group)
    if is_count:
        cv = min(int(cv), len(labels.rare), len(labels.majority))
    folds = make_folds(cv, labels, n_rows, seed, "more rows", which, groups)
    return _as_numbers(folds, labels, n_rows)


def _check(cv: Any, labels: Labels, is_count: bool, has_groups: bool, has_time: bool) -> None:
    if has_groups and has_time:
        raise InputError(
            "groups and time are both given.", "Give one of them.", ErrorKind.COMBINATION
        )
    if has_time and not is_count:
        raise InputError(
            f"cv={cv!r} is not a whole number, which folds by time need.",
            "Give a number of folds, or no time.",
            ErrorKind.COMBINATION,
            value=cv,
        )
    if is_count and not is_whole(cv, 2):
        raise InputError(
            f"cv={cv!r} is not at least 2 folds.", "Give 2 or more.", ErrorKind.SETTING, value=cv
        )
    if is_count and len(labels.majority) < 2:
        raise InputError(
            "The majority has 1 row of weight above 0, which cannot be both trained on and held "
            "out.",
            "Give more majority rows.",
            ErrorKind.TOO_FEW_ROWS,
        )


def _as_numbers(folds: list[Fold], labels: Labels, n_rows: int) -> np.ndarray:
    """Return numbers of folds that each learn from all rows but those that they test."""
    kept = np.sort(np.concatenate([labels.rare, labels.majority]))
    number = np.full(n_rows, ALWAYS_LEARNED)
    for k, fold in enumerate(folds):
        twice = np.flatnonzero(fold.tested & (number >= 0))
        if len(twice):
            raise InputError(
                f"cv holds row {twice[0]} out twice.",
                "Give folds that hold each row out once at most.",
                ErrorKind.ROWS,
                row=int(twice[0]),
            )
        idle = kept[(fold.held_out & ~fold.tested)[kept]]
        if len(idle):
            raise InputError(
                f"Fold {k + 1} of cv neither learns from nor tests {counted(len(idle), 'row')}, "
                f"the first of them row {idle[0]}.",
                "Give folds that learn from all rows but those that they test. For folds by time, "
                "pass time to fit.",
                ErrorKind.ROWS,
                row=int(idle[0]),
            )
        number[fold.tested] = k
    return number


def _split(
    labels: Labels,
    name: str,
    split: Callable[[np.ndarray, np.ndarray], np.ndarray],
    is_rare: np.ndarray,
    place: np.ndarray,
) -> np.ndarray:
    """Split the rows that count by group or time, so that each fold leaves both classes."""
    kept = np.sort(np.concatenate([labels.rare, labels.majority]))
    number = np.full(len(is_rare), ALWAYS_LEARNED)
    number[kept] = split(is_rare[kept], place[kept])
    for kind, rows in (("rare", labels.rare), ("majority", labels.majority)):
        if len(np.unique(number[rows])) == 1:
            raise InputError(
                f"{name} puts all {kind} rows into one fold, which would have none to learn from.",
                f"Fit without {name}.",
                ErrorKind.TOO_FEW_ROWS,
            )
    return number


def parts_of_rows(n_rows: int, seed: int, groups: Any = None, time: Any = None) -> np.ndarray:
    """Return parts of the rows, of shape (n_rows,), where folds are too few to be parts.

    Dealt at random; rows of a group are in one part, and with `time` a part is a stretch of it.
    """
    if time is not None:
        moment = places(read_times(time, n_rows), n_rows, "time")
        return moment * _PARTS // (int(moment.max()) + 1)
    group = np.arange(n_rows) if groups is None else places(groups, n_rows, "groups")
    return np.random.default_rng(seed).permutation(int(group.max()) + 1)[group] % _PARTS
