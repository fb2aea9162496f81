"""The compiled loop of online logistic regression over sparse rows."""

import numpy as np

from rareclass.compiling import njit

# A part of a gradient beyond this counts as this: squares and their sums stay finite.
_MOST_PART, _MOST_SUM = 1e150, 1e300


@njit(cache=True, nogil=True, error_model="numpy")
def _moved(weight, squares, part, eta):
    """Weight and sum of squares after an AdaGrad step along one part of a gradient."""
    part = min(max(part, -_MOST_PART), _MOST_PART)
    squares = min(squares + part * part, _MOST_SUM)
    if squares > 0.0:
        weight -= eta * (part / np.sqrt(squares))
    return weight, squares


@njit(cache=True, nogil=True, error_model="numpy")
def learn(
    indptr, indices, data, sign, step, coef, squares, intercept, seen, eta, balanced, scores_out
):
    """Learn from rows in order; `coef`, `squares`, `intercept` and `seen` are changed in place.

    ``indptr, indices, data``: CSR rows without zeros, int64 and float64. ``sign``: +1 rare, -1
    majority, 0 to be scored only; ``step``: the weight of a row. ``intercept``: b and the sum of
    its squared slopes. ``scores_out``: each row's w.x before it.
    """
    for t in range(sign.shape[0]):
        score = 0.0
        for k in range(indptr[t], indptr[t + 1]):
            score += coef[indices[k]] * data[k]
        scores_out[t] = score
        if sign[t] == 0:
            continue
        y, plane = float(sign[t]), 1 if sign[t] > 0 else 0
        seen[plane] += step[t]
        weight = step[t]
        if balanced:
            weight *= 0.5 * (seen[0] + seen[1]) / seen[plane]
        slope = -y * weight / (1.0 + np.exp(y * (score + intercept[0])))
        if not abs(slope) > 0.0:  # nothing to learn, or a score that overflowed both ways
            continue
        intercept[0], intercept[1] = _moved(intercept[0], intercept[1], slope, eta)
        for k in range(indptr[t], indptr[t + 1]):
            i = indices[k]
            coef[i], squares[i] = _moved(coef[i], squares[i], slope * data[k], eta)
