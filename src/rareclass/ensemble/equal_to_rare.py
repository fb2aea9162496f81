"""Majority rows that equal a rare row in every column."""

import numpy as np

from rareclass.encoding.typed_table import TypedTable


def held_out_together(table: TypedTable, is_rare: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """The folds with each majority row that equals a rare one in the fold of that one.

    For rows that stand for copies by their weight. Spread over the folds such copies would be
    learned from and held out alike; one row for all of them is held out whole, and is scored by
    functions that know the place by the rare row alone: at the top of the list, with all of its
    weight. The folds as they are where one of them would lose its last majority row.
    """
    columns = [_as_codes(column.values) for column in table.columns]
    rare = np.flatnonzero(is_rare & (fold >= 0))
    near = np.flatnonzero(~is_rare & (fold >= 0))
    for column in columns:
        near = near[np.isin(column[near], column[rare])]
    if not len(near):
        return fold
    place = {row: k for row, k in zip(_as_bytes(columns, rare), rare.tolist(), strict=True)}
    pairs = [
        (each, place[row])
        for row, each in zip(_as_bytes(columns, near), near.tolist(), strict=True)
        if row in place
    ]
    moved = fold.copy()
    for each, beside in pairs:
        moved[each] = fold[beside]
    before, after = (len(np.unique(folds[~is_rare])) for folds in (fold, moved))
    return moved if after == before else fold


def _as_codes(values: np.ndarray) -> np.ndarray:
    """Whole numbers that are equal where values are, missing ones among them."""
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    plain = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, and no zero below zero
    return plain.astype(np.float64).view(np.int64)


def _as_bytes(columns: list[np.ndarray], rows: np.ndarray) -> list[bytes]:
    if not columns:
        return [b""] * len(rows)
    return [row.tobytes() for row in np.column_stack([column[rows] for column in columns])]
