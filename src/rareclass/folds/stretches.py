"""Time cut into stretches that hold about as many rare rows each."""

import numpy as np


def stretches(n_stretches: int, is_rare: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Number of the stretch of time of each row, from 0 on; rows of a moment stay together.

    A stretch ends after the moment that gives it its share of the rare rows that are left. There
    are fewer stretches where fewer moments have rare rows, or where the last of them has most.

    `is_rare` and `moment`, numbered from 0 on in the order of time, have one entry a row. O(n)
    time.
    """
    rare = np.bincount(moment, is_rare)
    moments = np.flatnonzero(rare)
    ends = []
    held, left, n_left = 0.0, float(rare.sum()), min(n_stretches, len(moments))
    for each in moments[:-1]:
        held += rare[each]
        if n_left > 1 and held >= left / n_left:
            ends.append(each)
            left, held, n_left = left - held, 0.0, n_left - 1
    if not ends and len(moments) > 1:
        ends = [moments[-2]]
    return np.searchsorted(ends, moment, side="left")


def exactly(n_stretches: int, is_rare: np.ndarray, moment: np.ndarray) -> np.ndarray | None:
    """As `stretches`, but just as many; None where fewer moments than that have rare rows.

    A stretch also ends where each moment of rare rows that is left is needed for a stretch. It ends
    half-way to the next such moment, so that stretches have other rows, too.
    """
    rare = np.bincount(moment, is_rare)
    moments = np.flatnonzero(rare)
    if len(moments) < n_stretches:
        return None
    ends: list[int] = []
    held, left = 0.0, float(rare.sum())
    for number, each in enumerate(moments[:-1]):
        held += rare[each]
        n_left = n_stretches - len(ends)
        if n_left > 1 and (held >= left / n_left or len(moments) - number == n_left):
            ends.append(int(each + moments[number + 1] - 1) // 2)
            left, held = left - held, 0.0
    return np.searchsorted(ends, moment, side="left")
