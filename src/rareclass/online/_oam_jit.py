"""The compiled loop of OAM over sparse rows: passive-aggressive steps.

The row being learned is spread over a dense workspace, of which only the columns of these rows and
of the buffered ones are touched: a call costs their non-zeros, however many features there are.
"""

import numpy as np

from rareclass.compiling import njit

# Below this share of |x|^2, differences of sums have too few digits left.
_NEAR = 1e-6


@njit(cache=True, nogil=True, error_model="numpy")
def _clear(work, indices):
    for k in range(indices.shape[0]):
        work[indices[k]] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _score(coef, indices, data):
    """w.x of a row."""
    total = 0.0
    for k in range(indices.shape[0]):
        total += coef[indices[k]] * data[k]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _pair_sums(coef, work, indices, values, own):
    """w.b of a buffered row b, and |x - b|^2.

    What x has outside the columns of b is `own`, |x|^2, less what it has inside.
    """
    score, inside, shared = 0.0, 0.0, 0.0
    for k in range(indices.shape[0]):
        i, b = indices[k], values[k]
        x = work[i]
        score += coef[i] * b
        inside += (x - b) * (x - b)
        shared += x * x
    return score, inside + max(own - shared, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _near_pair_sums(coef, work, indices, data, other_indices, other_values):
    """w.z and |z|^2 of nearly equal rows, of which the step is large: no differences of sums."""
    margin, norm = 0.0, 0.0
    for k in range(other_indices.shape[0]):
        i = other_indices[k]
        z = work[i] - other_values[k]
        margin += coef[i] * z
        norm += z * z
        work[i] = 0.0  # done: the next loop leaves it out, and puts x back
    for k in range(indices.shape[0]):
        i, x = indices[k], data[k]
        if work[i] != 0.0:
            margin += coef[i] * x
            norm += x * x
        work[i] = x
    return margin, norm


@njit(cache=True, nogil=True, error_model="numpy")
def _step(coef, work, indices, data, other_indices, other_values, factor):
    """w += factor z, where equal values leave no trace; returns w.x after it."""
    for k in range(other_indices.shape[0]):
        i = other_indices[k]
        coef[i] += factor * (work[i] - other_values[k])
        work[i] = 0.0  # as above
    score = 0.0
    for k in range(indices.shape[0]):
        i, x = indices[k], data[k]
        if work[i] != 0.0:
            coef[i] += factor * x
        work[i] = x
        score += coef[i] * x
    return score


@njit(cache=True, nogil=True, error_model="numpy")
def _learn_row(coef, work, indices, data, y, other_indices, other_values, lengths, C):
    """A passive-aggressive step for each pair in turn: tau = min(C, hinge / |z|^2)."""
    score, own = _score(coef, indices, data), 0.0
    for k in range(indices.shape[0]):
        own += data[k] * data[k]
    for slot in range(lengths.shape[0]):
        columns = other_indices[slot, : lengths[slot]]
        values = other_values[slot, : lengths[slot]]
        other, norm = _pair_sums(coef, work, columns, values, own)
        margin = score - other
        if norm <= _NEAR * own:
            margin, norm = _near_pair_sums(coef, work, indices, data, columns, values)
        hinge = 1.0 - y * margin
        if hinge > 0.0 and 0.0 < norm < np.inf:
            tau = y * min(C, hinge / norm)
            score = _step(coef, work, indices, data, columns, values, tau)


@njit(cache=True, nogil=True, error_model="numpy")
def learn(
    indptr,
    indices,
    data,
    sign,
    step,
    slot,
    coef,
    buffer_indices,
    buffer_values,
    lengths,
    seen,
    C,
    scores_out,
):
    """Learn from rows in order; `coef` and the buffers are changed in place.

    ``indptr, indices, data``: CSR rows with sorted columns and no zeros, int64 and float64.
    ``sign``: +1 rare, -1 majority, 0 to be scored only; ``step`` scales a row's C; ``slot``: where
    the row goes in its class's buffer, -1 for nowhere. The buffers are those of `SparseBuffers`,
    wide enough for these rows. ``scores_out``: each row's w.x before it.
    """
    capacity = lengths.shape[1]
    work = np.empty(coef.shape[0])
    _clear(work, indices)
    for plane in range(2):
        for b in range(min(seen[plane], capacity)):
            _clear(work, buffer_indices[plane, b, : lengths[plane, b]])
    for t in range(sign.shape[0]):
        start, end = indptr[t], indptr[t + 1]
        columns, values, y = indices[start:end], data[start:end], float(sign[t])
        scores_out[t] = _score(coef, columns, values)
        if sign[t] == 0:
            continue
        plane = 1 if sign[t] > 0 else 0
        other = 1 - plane
        known = lengths[other, : min(seen[other], capacity)]
        others, other_values = buffer_indices[other], buffer_values[other]
        C_t = C * step[t] * max(1.0, seen[other] / capacity)
        for k in range(start, end):
            work[indices[k]] = data[k]
        _learn_row(coef, work, columns, values, y, others, other_values, known, C_t)
        _clear(work, columns)
        seen[plane] += 1
        if slot[t] >= 0:
            buffer_indices[plane, slot[t], : end - start] = columns
            buffer_values[plane, slot[t], : end - start] = values
            lengths[plane, slot[t]] = end - start
