"""Rows that are equal in all columns and differ in their label, held in the same fold."""

import numpy as np

from rareclass.encoding.typed_table import TypedTable


def with_equal_rows_together(
    table: TypedTable, is_rare: np.ndarray, fold: np.ndarray
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
