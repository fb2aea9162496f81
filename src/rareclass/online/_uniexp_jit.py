"""The compiled loop of UniExp over sparse rows."""

import numpy as np

from rareclass.compiling import njit

_LEAST_MARGIN = -10.0
_MOST_WEIGHT = 1e100


@njit(cache=True, nogil=True, error_model="numpy")
def learn(indptr, indices, data, sign, step, coef, weight_seen, eta, scores_out):
    """Learn from rows in order; `coef` and the weights seen by class are changed in place.

    ``indptr, indices, data``: CSR rows without zeros, int64 and float64. ``sign``: +1 rare, -1
    majority, 0 to be scored only; ``step``: the weight of a row. ``scores_out``: each row's w.x
    before it.
    """
    for t in range(sign.shape[0]):
        score = 0.0
        for k in range(indptr[t], indptr[t + 1]):
            score += coef[indices[k]] * data[k]
        scores_out[t] = score
        if sign[t] == 0:
            continue
        y, plane = float(sign[t]), 1 if sign[t] > 0 else 0
        weight_seen[plane] += step[t]
        by_class = 0.5 * (weight_seen[0] + weight_seen[1]) / weight_seen[plane]
        slope = eta * step[t] * by_class * np.exp(-max(y * score, _LEAST_MARGIN))
        if not slope > 0.0:  # nothing to learn, or a score that overflowed both ways
            continue
        for k in range(indptr[t], indptr[t + 1]):
            moved = coef[indices[k]] + y * slope * data[k]
            coef[indices[k]] = min(max(moved, -_MOST_WEIGHT), _MOST_WEIGHT)
