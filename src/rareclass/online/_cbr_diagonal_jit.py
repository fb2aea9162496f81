"""The compiled loop of CBR with a diagonal covariance over sparse rows.

Four numbers of a feature lie side by side in a workspace, so that a visit is one cache line:
the weight mu, the variance term h = 1 / (G + C), the value of the row being learned (0 between
rows) and the precision G. Only the columns of these rows and of the buffered ones are filled in:
a call costs their non-zeros, however many features there are. Numpy's rules of division leave out
a test for zero at every visit.
"""

import numpy as np

from rareclass.compiling import njit

_MU, _H, _X, _G = 0, 1, 2, 3
# Below this share of a row's own sum, differences of sums have too few digits left.
_NEAR = 1e-6
# where v is smaller no step is made, and no precision grows larger: nothing can overflow.
_LEAST_V, _MOST_G = 1e-300, 1e150


@njit(cache=True, nogil=True, error_model="numpy")
def _fetch(work, indices, mean, precision, C):
    """Fill the workspace in these columns."""
    for k in range(indices.shape[0]):
        i = indices[k]
        work[i, _MU] = mean[i]
        work[i, _H] = 1.0 / (precision[i] + C)
        work[i, _X] = 0.0
        work[i, _G] = precision[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _give_back(work, indices, mean, precision):
    """Copy weights and precisions of these columns out of the workspace."""
    for k in range(indices.shape[0]):
        i = indices[k]
        mean[i] = work[i, _MU]
        precision[i] = work[i, _G]


@njit(cache=True, nogil=True, error_model="numpy")
def _own_sums(work, indices, data):
    """mu.x and sum x^2 h of a row."""
    score, own = 0.0, 0.0
    for k in range(indices.shape[0]):
        i, x = indices[k], data[k]
        score += work[i, _MU] * x
        own += x * x * work[i, _H]
    return score, own


@njit(cache=True, nogil=True, error_model="numpy")
def _pair_sums(work, indices, values, own):
    """mu.b of a buffered row b, and v = sum z^2 h for z = x - b.

    What x has outside the columns of b is `own` less what it has inside.
    """
    score, inside, shared = 0.0, 0.0, 0.0
    for k in range(indices.shape[0]):
        i, b = indices[k], values[k]
        x, h = work[i, _X], work[i, _H]
        z = x - b
        score += work[i, _MU] * b
        inside += z * z * h
        shared += x * x * h
    return score, inside + max(own - shared, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _near_pair_sums(work, indices, data, other_indices, other_values):
    """mu.z and v of nearly equal rows, of which the step is large: no differences of sums."""
    margin, v = 0.0, 0.0
    for k in range(other_indices.shape[0]):
        i = other_indices[k]
        z = work[i, _X] - other_values[k]
        margin += work[i, _MU] * z
        v += z * z * work[i, _H]
        work[i, _X] = 0.0  # done: the next loop leaves it out, and puts x back
    for k in range(indices.shape[0]):
        i, x = indices[k], data[k]
        if work[i, _X] != 0.0:
            margin += work[i, _MU] * x
            v += x * x * work[i, _H]
        work[i, _X] = x
    return margin, v


@njit(cache=True, nogil=True, error_model="numpy")
def _step_sizes(m, v, C, phi):
    """alpha and beta of SCW-I for a margin m = y mu.z and its variance v > 0."""
    zeta = 1.0 + phi * phi
    root = np.sqrt(0.25 * (m * phi * phi) ** 2 + v * phi * phi * zeta)
    alpha = min(C, max(0.0, (root - m * (1.0 + 0.5 * phi * phi)) / (v * zeta)))
    # sqrt(u) = (-a + sqrt(a^2 + 4 v)) / 2 without the difference of near equals.
    a = alpha * v * phi
    return alpha, alpha * phi / (2.0 * v / (a + np.sqrt(a * a + 4.0 * v)) + a)


@njit(cache=True, nogil=True, error_model="numpy")
def _move(work, i, z, mean_step, beta, C):
    """mu += alpha y z / G, G += beta z^2 in one feature."""
    work[i, _MU] += mean_step * z / work[i, _G]
    work[i, _G] = min(work[i, _G] + beta * z * z, _MOST_G)
    work[i, _H] = 1.0 / (work[i, _G] + C)


@njit(cache=True, nogil=True, error_model="numpy")
def _update(work, indices, data, other_indices, other_values, mean_step, beta, C):
    """Step along z = x - b; returns the row's own sums after it."""
    for k in range(other_indices.shape[0]):
        i = other_indices[k]
        _move(work, i, work[i, _X] - other_values[k], mean_step, beta, C)
        work[i, _X] = 0.0  # as above
    score, own = 0.0, 0.0
    for k in range(indices.shape[0]):
        i, x = indices[k], data[k]
        if work[i, _X] != 0.0:
            _move(work, i, x, mean_step, beta, C)
        work[i, _X] = x
        score += work[i, _MU] * x
        own += x * x * work[i, _H]
    return score, own


@njit(cache=True, nogil=True, error_model="numpy")
def _learn_row(work, indices, data, y, other_indices, other_values, lengths, C, most, phi):
    """Visit the pairs of a row with the buffered rows of the other class; its score before."""
    score, own = _own_sums(work, indices, data)
    before = score
    for k in range(indices.shape[0]):
        work[indices[k], _X] = data[k]
    for slot in range(lengths.shape[0]):
        columns = other_indices[slot, : lengths[slot]]
        values = other_values[slot, : lengths[slot]]
        other, v = _pair_sums(work, columns, values, own)
        margin = score - other
        if v <= _NEAR * own:
            margin, v = _near_pair_sums(work, indices, data, columns, values)
        m = y * margin
        if _LEAST_V < v < np.inf and phi * np.sqrt(v) - m > 0.0:
            alpha, beta = _step_sizes(m, v, most, phi)
            score, own = _update(work, indices, data, columns, values, y * alpha, beta, C)
    for k in range(indices.shape[0]):
        work[indices[k], _X] = 0.0
    return before


@njit(cache=True, nogil=True, error_model="numpy")
def learn(
    indptr,
    indices,
    data,
    sign,
    step,
    slot,
    mean,
    precision,
    buffer_indices,
    buffer_values,
    lengths,
    seen,
    C,
    phi,
    scores_out,
):
    """Learn from rows in order; `mean`, `precision` and the buffers are changed in place.

    ``indptr, indices, data``: CSR rows with sorted columns and no zeros, int64 and float64.
    ``sign``: +1 rare, -1 majority, 0 to be scored only; ``step`` scales the greatest alpha, C, of
    a row; ``slot``: where the row goes in its class's buffer, -1 for nowhere. The buffers are
    those of `SparseBuffers`, wide enough for these rows. ``scores_out``: each row's mu.x before it.
    """
    capacity = lengths.shape[1]
    work = np.empty((mean.shape[0], 4))
    _fetch(work, indices, mean, precision, C)
    for plane in range(2):
        for b in range(min(seen[plane], capacity)):
            columns = buffer_indices[plane, b, : lengths[plane, b]]
            _fetch(work, columns, mean, precision, C)
    for t in range(sign.shape[0]):
        start, end = indptr[t], indptr[t + 1]
        columns, values = indices[start:end], data[start:end]
        if sign[t] == 0:
            scores_out[t] = _own_sums(work, columns, values)[0]
            continue
        plane = 1 if sign[t] > 0 else 0
        other = 1 - plane
        scores_out[t] = _learn_row(
            work,
            columns,
            values,
            float(sign[t]),
            buffer_indices[other],
            buffer_values[other],
            lengths[other, : min(seen[other], capacity)],
            C,
            C * step[t],
            phi,
        )
        seen[plane] += 1
        if slot[t] >= 0:
            evicted = buffer_indices[plane, slot[t], : lengths[plane, slot[t]]]
            _give_back(work, evicted, mean, precision)
            buffer_indices[plane, slot[t], : end - start] = columns
            buffer_values[plane, slot[t], : end - start] = values
            lengths[plane, slot[t]] = end - start
    _give_back(work, indices, mean, precision)
    for plane in range(2):
        for b in range(min(seen[plane], capacity)):
            columns = buffer_indices[plane, b, : lengths[plane, b]]
            _give_back(work, columns, mean, precision)
