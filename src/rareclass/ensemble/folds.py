"""The folds that all members share: for each row, the number of the fold that holds it out."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from rareclass.errors import ErrorKind, InputError, counted
from rareclass.estimators.search import Fold, make_folds
from rareclass.folds.dealing import dealt, places, read_times, stretches
from rareclass.labels.two_classes import Labels
from rareclass.parameters import is_whole

if TYPE_CHECKING:
    from rareclass.encoding.typed_table import TypedTable


# Odd multiplier of Knuth's hash: rows that differ in a bit land far from each other.
_ODD = np.uint64(0x9E3779B97F4A7C15)
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


def parts_of_rows(
    table: "TypedTable",
    is_rare: np.ndarray,
    n_parts: int,
    seed: int,
    groups: Any = None,
    time: Any = None,
) -> np.ndarray:
    """Return parts of the rows that statistics of labels are out of, of shape (n_rows,), from 0 on.

    Equal rows are in the same part, and so are rows of a group; with `time` a part is a stretch of
    it. Else the rows of each class are dealt in an order that their cells decide: copies of a row
    change nothing. O(n_rows log n_rows) a column.
    """
    n_rows = table.n_rows
    if time is not None:
        moment = places(read_times(time, n_rows), n_rows, "time")
        distinct, place = np.unique(moment, return_inverse=True)
        return place * n_parts // len(distinct)
    if groups is not None:
        group = places(groups, n_rows, "groups")
        distinct, place = np.unique(group, return_inverse=True)
        return np.random.default_rng(seed).permutation(len(distinct))[place] % n_parts
    key = np.full(n_rows, seed, np.uint64)
    for column in table.columns:
        cells = column.values
        if column.levels is not None:  # by its letters: the numbers of words differ by table
            words = pl.Series(column.levels.tolist(), dtype=pl.String).hash().to_numpy()
            cells = np.append(words, np.uint64(0))[cells]
        else:
            cells = np.where(np.isnan(cells), np.nan, cells + 0.0).view(np.uint64)
        key = (key ^ cells) * _ODD
        key ^= key >> np.uint64(29)
    part = np.empty(n_rows, np.int64)
    for rows in (np.flatnonzero(is_rare), np.flatnonzero(~is_rare)):
        part[rows] = np.unique(key[rows], return_inverse=True)[1] % n_parts
    return part


def with_equal_rows_together(
    table: "TypedTable", is_rare: np.ndarray, fold: np.ndarray
) -> np.ndarray:
    """Move each majority row that equals a rare row to the fold of that rare row.

    For rows that stand for copies by their weight: held out apart from an equal rare row, one row
    for all copies is scored at the top of the list, with all of its weight, by functions that know
    the place by the rare row alone. The folds stay as they are where one would lose its last
    majority row.
    """
    rare = np.flatnonzero(is_rare & (fold >= 0))
    near = np.flatnonzero(~is_rare & (fold >= 0))
    columns = [np.zeros(len(fold), np.int64)]
    for column in table.columns:
        codes = column.values
        if codes.dtype.kind == "f":  # one NaN, and no zero below zero
            plain = np.where(np.isnan(codes), np.nan, codes + 0.0)
            codes = plain.astype(np.float64).view(np.int64)
        columns.append(codes.astype(np.int64))
        near = near[np.isin(columns[-1][near], columns[-1][rare])]
    if not len(near):
        return fold
    rows = np.concatenate([rare, near])
    cells = np.column_stack([column[rows] for column in columns])
    number = np.unique(cells, axis=0, return_inverse=True)[1].ravel().tolist()
    of_rare = dict(zip(number[: len(rare)], rare.tolist(), strict=True))
    moved = fold.copy()
    for row, equal in zip(near.tolist(), number[len(rare) :], strict=True):
        if equal in of_rare:
            moved[row] = fold[of_rare[equal]]
    before, after = (len(np.unique(folds[~is_rare])) for folds in (fold, moved))
    return moved if after == before else fold
