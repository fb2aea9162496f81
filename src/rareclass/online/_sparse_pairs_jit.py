"""The compiled loop of OAM and of CBR with a diagonal covariance: sparse rows against a buffer.

Four numbers of a feature lie side by side in a workspace, so that a visit is one cache line:
the weight mu, the variance term h, the value of the row being learned (0 between rows) and the
precision G. h is 1 / G for the exact step and 1 / (G + C) for that of Proposition 2 as printed.
OAM has no variances: G and h stay 1. Only the columns of these rows and of the buffered ones are
filled in: a call costs their non-zeros, however many features there are. Numpy's rules of division
leave out a test for zero at every visit.
"""

import numpy as np

from rareclass.compiling import njit

_MU, _H, _X, _G = 0, 1, 2, 3
# Below this share of a row's own sum, differences of sums have too few digits left.
_NEAR = 1e-6
# Where v is smaller no step is made, and no precision grows larger. The exact step counts in units
# of v and 1 / v, so that features of any size neither overflow nor vanish.
_LEAST_V, _MOST_G = 1e-300, 1e150
# The root of the exact step: rounds at most (4 are usual), and the change that ends them. Each
# round squares the error.
_ROUNDS, _NEAR_ROOT = 100, 1e-6


@njit(cache=True, nogil=True, error_model="numpy")
def _fetch(work, indices, mean, precision, added):
    """Fill the workspace in these columns."""
    for i in indices:
        G = 1.0 if precision is None else precision[i]
        work[i, _MU] = mean[i]
        work[i, _H] = 1.0 / (G + added)
        work[i, _X] = 0.0
        work[i, _G] = G


@njit(cache=True, nogil=True, error_model="numpy")
def _give_back(work, indices, mean, precision):
    """Copy weights and precisions of these columns out of the workspace."""
    for i in indices:
        mean[i] = work[i, _MU]
        if precision is not None:
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
def _pair_sums(work, indices, values, own, phi):
    """mu.b of a buffered row b, and v = sum z^2 h for z = x - b, from `own`, the sum over x."""
    score, inside, shared = 0.0, 0.0, 0.0
    for k in range(indices.shape[0]):
        i, b = indices[k], values[k]
        x, h = work[i, _X], 1.0 if phi is None else work[i, _H]
        z = x - b
        score += work[i, _MU] * b
        inside += z * z * h
        shared += x * x * h
    return score, inside + max(own - shared, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _difference(work, indices, data, other_indices, other_values, columns, z):
    """Fill in the columns of x or b and ``z = x - b`` there; returns how many they are."""
    n = other_indices.shape[0]
    for k in range(n):
        i = other_indices[k]
        columns[k], z[k] = i, work[i, _X] - other_values[k]
        work[i, _X] = 0.0  # done: the next loop leaves it out, and puts x back
    for k in range(indices.shape[0]):
        i = indices[k]
        if work[i, _X] != 0.0:
            columns[n], z[n] = i, data[k]
            n += 1
        work[i, _X] = data[k]
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def _sums_of_difference(work, n, columns, z):
    """mu.z and sum z^2 h, of which the step of nearly equal rows is large."""
    margin, v = 0.0, 0.0
    for k in range(n):
        i = columns[k]
        margin += work[i, _MU] * z[k]
        v += z[k] * z[k] * work[i, _H]
    return margin, v


@njit(cache=True, nogil=True, error_model="numpy")
def _printed_sizes(m, v, C, phi):
    """alpha and beta as printed for a margin m = y mu.z and v = sum z^2 / (G + C) > 0."""
    zeta = 1.0 + phi * phi
    root = np.sqrt(0.25 * (m * phi * phi) ** 2 + v * phi * phi * zeta)
    alpha = min(C, max(0.0, (root - m * (1.0 + 0.5 * phi * phi)) / (v * zeta)))
    # sqrt(u) = (-a + sqrt(a^2 + 4 v)) / 2 without the difference of near equals.
    a = alpha * v * phi
    return alpha, alpha * phi / (2.0 * v / (a + np.sqrt(a * a + 4.0 * v)) + a)


@njit(cache=True, nogil=True, error_model="numpy")
def _shares(work, n, columns, z, v, shares):
    """Fill in ``w = z^2 / (G v)`` of each column; returns the sum of w^2."""
    squares = 0.0
    for k in range(n):
        shares[k] = z[k] * z[k] * work[columns[k], _H] / v
        squares += shares[k] * shares[k]
    return squares


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _sums_at(shares, b):
    """Sums of ``w r``, ``w r^2`` and ``(w r)^2`` with ``r = 1 / (1 + b w)``."""
    first, second, third = 0.0, 0.0, 0.0
    for k in range(shares.shape[0]):
        r = 1.0 / (1.0 + b * shares[k])
        p = shares[k] * r
        first += p
        second += p * r
        third += p * p
    return first, second, third


@njit(cache=True, nogil=True, error_model="numpy")
def _exact_sizes(shares, squares, m, v, C, phi):
    """alpha and beta that solve problem (6) with a diagonal covariance.

    The conditions of a minimum are ``mu += alpha y z / G`` and ``G += beta z^2`` with
    ``beta = alpha phi / sqrt(u)`` and ``u = sum z^2 / (G + beta z^2)``. Where alpha < C the loss is
    0 after the step, ``m + alpha v = phi sqrt(u)``, with ``v = sum z^2 / G``. Either is an equation
    in beta alone, whose left side less its right one rises with beta; the lesser root is taken.

    A round replaces u by ``a / (1 + c beta)`` with the value and slope of u, and solves the two
    quadratic equations that are left. By Jensen's inequality that is nowhere above u, and so each
    root is approached from one side, with an error that is squared from round to round; where one
    feature differs the first round is exact. Units: v of `shares` and u, v^2 of `squares`, 1 / v of
    beta in here.
    """
    size = np.sqrt(v)
    margin, square, limit = m / size, phi * phi, C * phi * size
    a, c, b = 1.0, squares, 0.0
    for _ in range(_ROUNDS):
        e = 0.5 * c * margin * phi / np.sqrt(a)
        free = square - margin * phi / np.sqrt(a) * (np.sqrt(e * e + 1.0 + c * square) - e)
        far = limit * c
        cut = 0.5 * limit * (far + np.sqrt(far * far + 4.0 * a)) / a
        before, b = b, min(max(0.0, free), cut, _MOST_G)
        if abs(b - before) <= _NEAR_ROOT * b:
            break
        first, second, third = _sums_at(shares, b)
        a, c = first * first / second, third / second
    return min(C, b * np.sqrt(a / (1.0 + c * b)) / (phi * size)), b / v


@njit(cache=True, nogil=True, error_model="numpy")
def _move(work, i, z, mean_step, beta, added):
    """``mu += alpha y z / G``, ``G += beta z^2`` in one feature; mean_step is alpha y."""
    work[i, _MU] += mean_step * z * work[i, _H] if added == 0.0 else mean_step * z / work[i, _G]
    if beta > 0.0:
        work[i, _G] = min(work[i, _G] + beta * z * z, _MOST_G)
        work[i, _H] = 1.0 / (work[i, _G] + added)


@njit(cache=True, nogil=True, error_model="numpy")
def _step(work, indices, data, other_indices, other_values, mean_step, beta, added):
    """Step along z = x - b; returns the row's own sums after it."""
    for k in range(other_indices.shape[0]):
        i = other_indices[k]
        _move(work, i, work[i, _X] - other_values[k], mean_step, beta, added)
        work[i, _X] = 0.0  # as above
    for k in range(indices.shape[0]):
        i = indices[k]
        if work[i, _X] != 0.0:
            _move(work, i, data[k], mean_step, beta, added)
        work[i, _X] = data[k]
    return _own_sums(work, indices, data)


@njit(cache=True, nogil=True, error_model="numpy")
def _learn_row(
    work, indices, data, y, other_indices, other_values, lengths, most, phi, added, room
):  # fmt: skip
    """Visit the pairs of a row with the buffered rows of the other class."""
    columns, z, shares = room
    score, own = _own_sums(work, indices, data)
    for k in range(indices.shape[0]):
        work[indices[k], _X] = data[k]
    for slot in range(lengths.shape[0]):
        b_indices = other_indices[slot, : lengths[slot]]
        b_values = other_values[slot, : lengths[slot]]
        other, v = _pair_sums(work, b_indices, b_values, own, phi)
        margin = score - other
        if v <= _NEAR * own:
            n = _difference(work, indices, data, b_indices, b_values, columns, z)
            margin, v = _sums_of_difference(work, n, columns, z)
        m = y * margin
        loss = (1.0 if phi is None else phi * np.sqrt(v)) - m
        if not (loss > 0.0 and _LEAST_V < v < np.inf):
            continue
        if phi is None:
            alpha, beta = min(most, loss / v), 0.0
        elif added == 0.0:
            n = _difference(work, indices, data, b_indices, b_values, columns, z)
            squares = _shares(work, n, columns, z, v, shares)
            alpha, beta = _exact_sizes(shares[:n], squares, m, v, most, phi)
        else:
            alpha, beta = _printed_sizes(m, v, most, phi)
        score, own = _step(work, indices, data, b_indices, b_values, y * alpha, beta, added)
    for k in range(indices.shape[0]):
        work[indices[k], _X] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _columns_of(indices, buffer_indices, lengths, seen):
    """The columns of all rows and of all buffered ones, some of them more than once."""
    found = np.empty(indices.shape[0] + lengths.sum(), np.int64)
    n = indices.shape[0]
    found[:n] = indices
    for plane in range(2):
        for b in range(min(seen[plane], lengths.shape[1])):
            length = lengths[plane, b]
            found[n : n + length] = buffer_indices[plane, b, :length]
            n += length
    return found[:n]


@njit(cache=True, nogil=True, error_model="numpy")
def learn(
    indptr, indices, data, sign, most, slot, mean, precision, buffer_indices, buffer_values,
    lengths, seen, phi, added, scores_out,
):  # fmt: skip
    """Learn from rows in order; `mean`, `precision` and the buffers are changed in place.

    ``indptr, indices, data``: CSR rows with sorted columns and no zeros, int64 and float64.
    ``sign``: +1 rare, -1 majority, 0 to be scored only; ``most``: the greatest alpha of each row;
    ``slot``: where the row goes in its class's buffer, -1 for nowhere. The buffers are those of
    `SparseBuffers`, wide enough for these rows. ``precision`` and ``phi`` are None for OAM.
    ``added``: 0 for the step of problem (6), C for Proposition 2 as printed. ``scores_out``: each
    row's mu.x before it.
    """
    capacity, width = lengths.shape[1], 2 * buffer_values.shape[2]
    work = np.empty((mean.shape[0], 4))
    room = np.empty(width, np.int64), np.empty(width), np.empty(width)
    held = _columns_of(indices, buffer_indices, lengths, seen)
    _fetch(work, held, mean, precision, added)
    for t in range(sign.shape[0]):
        start, end = indptr[t], indptr[t + 1]
        columns, values = indices[start:end], data[start:end]
        scores_out[t] = _own_sums(work, columns, values)[0]
        if sign[t] == 0:
            continue
        plane = 1 if sign[t] > 0 else 0
        other = 1 - plane
        known = lengths[other, : min(seen[other], capacity)]
        greatest = most[t]
        if phi is None:  # a buffered row stands for those of its class that are not held
            greatest *= max(1.0, seen[other] / capacity)
        _learn_row(
            work, columns, values, float(sign[t]), buffer_indices[other], buffer_values[other],
            known, greatest, phi, added, room,
        )  # fmt: skip
        seen[plane] += 1
        if slot[t] >= 0:
            buffer_indices[plane, slot[t], : end - start] = columns
            buffer_values[plane, slot[t], : end - start] = values
            lengths[plane, slot[t]] = end - start
    _give_back(work, held, mean, precision)
