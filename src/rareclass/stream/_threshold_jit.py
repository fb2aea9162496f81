"""Compiled choice of alerts, row by row, by a threshold that follows what is left of a budget."""

import numpy as np
from numpy.typing import NDArray

from rareclass.compiling import njit


@njit(cache=True, nogil=True)
def raise_alerts(
    scores: NDArray[np.float64],
    recent: NDArray[np.float64],
    seen: float,
    used: int,
    most: int,
    size: float,
    least_left: float,
    thresholds: NDArray[np.float64],
    is_alert: NDArray[np.bool_],
) -> int:
    """Decide which rows of one period are alerts; returns how many the period has then.

    `recent` are scores in ascending order, `seen` the rows of the period before these, `size` how
    many it has or is expected to have. Of row i, with b alerts left of `most` and
    n = max(size - seen - i, least_left) rows left, the wanted chance of an alert is

        p = min(b / n, 2 most / size),

    and the threshold lies between order statistics of the m recent scores such that a score like
    them is above it with that chance: the j-th highest is exceeded with chance j / (m + 1).
    """
    m = len(recent)
    highest = 2.0 * most / size
    for i in range(len(scores)):
        left = max(size - seen - i, least_left)
        chance = min((most - used) / left, highest)
        place = min(max(chance * (m + 1), 1.0), float(m))
        whole = int(place)
        threshold = recent[m - whole]
        if whole < m:
            threshold += (place - whole) * (recent[m - whole - 1] - threshold)
        thresholds[i] = threshold
        is_alert[i] = used < most and scores[i] > threshold
        if is_alert[i]:
            used += 1
    return used
