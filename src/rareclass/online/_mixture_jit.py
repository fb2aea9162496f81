"""Compiled loops of a mixture: maps of rows; scores of several learners on one scale and mixed."""

import math

import numpy as np

from rareclass.compiling import njit
from rareclass.online._univariate_jit import move

# Among fewer recent rows there is no tail to go by; it is the highest 20th of them.
_LEAST, _TAIL = 20, 20
# A place of 1 is a rate of 1 in a million.
LARGEST = math.log(1e6)
# (e^2 is exp-concave up to 1/2 for e in [0, 1])
_RATE = 0.5
# Rare rows that stand for the share of the whole stream in that of the last rows, and what the
# share begins as.
_STEADY, _FIRST_RARE, _FIRST_ROWS = 10.0, 1.0, 100.0
# Rare rows after which the past counts half in an expert's AUC, and in what the stack has learned.
_HALF = 200.0
# The stack learns from ``log(1 / rate)`` less its mean, by this unit; its weights have at most this
# variance. Its place lies in [_LOWEST, _LOWEST + 1].
_USUAL, UNIT, STACK_VARIANCE, _LOWEST = 1.0, 3.0, 1.0, -0.25


@njit(cache=True, nogil=True)
def _at_or_above(ordered, score):
    """How many of sorted numbers lie above a score, and half of those that equal it."""
    low = np.searchsorted(ordered, score, side="left")
    high = low
    if low < ordered.shape[0] and ordered[low] == score:
        high = np.searchsorted(ordered, score, side="right")
    return ordered.shape[0] - 0.5 * (low + high)


@njit(cache=True, nogil=True)
def tail(ordered):
    """Where the tail of sorted scores begins, its rows, and their mean excess above it, or 0."""
    n = ordered.shape[0]
    top = max(n // _TAIL, 1)
    if n < _LEAST:
        return np.inf, top, 0.0
    edge, excess = ordered[n - top], 0.0
    for j in range(n - top, n):
        excess += (ordered[j] - edge) / top
    return edge, top, excess


@njit(cache=True, nogil=True)
def place(ordered, score):
    """``log(rate) / log(1e-6)`` in [0, 1], by the rate of recent majority scores above a score.

    In the tail the rate is that of an exponential of the same mean: it goes on beyond the highest
    score. 0.5 where there is nothing to go by.
    """
    n = ordered.shape[0]
    if n == 0 or not abs(score) < np.inf:
        return 0.5
    rate = (_at_or_above(ordered, score) + 0.5) / (n + 1.0)
    if n >= _LEAST and score >= ordered[n - max(n // _TAIL, 1)]:
        edge, top, excess = tail(ordered)
        of_tail = top / (n + 1.0)
        if score == edge:
            rate = max(rate, of_tail)
        elif excess > 0.0:
            return min((-math.log(of_tail) + (score - edge) / excess) / LARGEST, 1.0)
    return min(-math.log(rate) / LARGEST, 1.0)


@njit(cache=True, nogil=True)
def _keep(recent, ordered, kept, score):
    """Put a majority score in place of the oldest, `ordered` kept sorted; returns how many came."""
    size = recent.shape[0]
    filled = min(kept, size)
    free = kept if kept < size else np.searchsorted(ordered, recent[kept % size])
    to = np.searchsorted(ordered[:filled], score)
    if to > free:  # what lies between moves down to where the oldest was
        to -= 1
        for i in range(free, to):
            ordered[i] = ordered[i + 1]
    else:
        for i in range(free, to, -1):
            ordered[i] = ordered[i - 1]
    ordered[to] = score
    recent[kept % size] = score
    return kept + 1


@njit(cache=True, nogil=True)
def _keep_all(recent, ordered, kept, scores):
    """Put the scores of a majority row, one a member, in place of the oldest."""
    for k in range(scores.shape[0]):
        if abs(scores[k]) < np.inf:
            kept[k] = _keep(recent[k], ordered[k], kept[k], scores[k])


@njit(cache=True, nogil=True)
def _pair_measures(own, others):
    """Mean loss ``((1 - (own - other)) / 2)^2`` and AUC of one rare place against many."""
    n = others.shape[0]
    lost, above = 0.0, 0.0
    for b in range(n):
        gap = own - others[b]
        lost += 0.25 * (1.0 - gap) * (1.0 - gap)
        if gap > 0.0:
            above += 1.0
        elif gap == 0.0:
            above += 0.5
    return lost / n, above / n


@njit(cache=True, nogil=True)
def level(seen, lately):
    """Log odds of the rare class lately, held towards those of the whole stream."""
    share = (seen[1] + _FIRST_RARE) / (seen[0] + seen[1] + _FIRST_ROWS)
    p = (lately[1] + _STEADY) / (lately[0] + lately[1] + _STEADY / share)
    return math.log(p / (1.0 - p))


@njit(cache=True, nogil=True)
def _stacked(places, mean, inputs):
    """The stack's log odds beyond the level by the members' places; fills `inputs`, 1 first."""
    inputs[0], total = 1.0, mean[0]
    for k in range(mean.shape[0] - 1):
        inputs[k + 1] = (LARGEST * places[k] - _USUAL) / UNIT
        total += mean[k + 1] * inputs[k + 1]
    return total


@njit(cache=True, nogil=True)
def _mixed_place(scores, t, ordered, kept, weights, mean, places, inputs):
    """Weighted mean place of row t, and the stack's log odds, 0 without one."""
    n_members, n_experts = scores.shape[0], weights.shape[0]
    beyond, total = 0.0, 0.0
    for k in range(n_members):
        places[k] = place(ordered[k, : min(kept[k], ordered.shape[1])], scores[k, t])
    if n_experts > n_members:
        beyond = _stacked(places, mean, inputs)
        places[n_members] = min(max(beyond / LARGEST, _LOWEST), _LOWEST + 1.0)
    for k in range(n_experts):
        total += weights[k] * places[k]
    return total, beyond


@njit(cache=True, nogil=True)
def _learn_stack(inputs, log_odds, mean, covariance, sign, step):
    """A Newton step of the stack; after a rare row what it knew before counts less."""
    n = inputs.shape[0]
    along, variance = np.zeros(n), 0.0
    for i in range(n):
        for j in range(n):
            along[i] += covariance[i, j] * inputs[j]
        variance += along[i] * inputs[i]
    move(mean, covariance, along, variance, log_odds, sign, step)
    if sign < 0.0:
        return
    grows = np.full(n, 2.0 ** (0.5 * step / _HALF))
    for i in range(n):
        if covariance[i, i] * grows[i] * grows[i] > STACK_VARIANCE:
            grows[i] = math.sqrt(STACK_VARIANCE / covariance[i, i])
    for i in range(n):
        for j in range(n):
            covariance[i, j] *= grows[i] * grows[j]


@njit(cache=True, nogil=True)
def _judge(places, pairs, weights, prior, losses, auc, judged, step, fixed_share):
    """Losses of a rare row's places against the kept majority rows, and the weights after them."""
    n_experts, n_pairs = weights.shape[0], pairs.shape[0]
    judged[0] += 1.0
    slow = max(1.0 / judged[0], 1.0 - 2.0 ** (-1.0 / _HALF))
    own, others = 0.0, np.zeros(n_pairs)
    new, least = np.empty(n_experts), np.inf
    for k in range(n_experts):
        lost, above = _pair_measures(places[k], pairs[:, k])
        new[k], least = lost, min(least, lost)
        losses[k] += step * lost
        auc[k] += slow * (above - auc[k])
        own += weights[k] * places[k]
        for b in range(n_pairs):
            others[b] += weights[k] * pairs[b, k]
    lost, above = _pair_measures(own, others)
    losses[n_experts] += step * lost
    auc[n_experts] += slow * (above - auc[n_experts])
    total = 0.0
    for k in range(n_experts):
        weights[k] *= math.exp(-_RATE * step * (new[k] - least))
        total += weights[k]
    for k in range(n_experts):
        weights[k] = (1.0 - fixed_share) * weights[k] / total + fixed_share * prior[k]


@njit(cache=True, nogil=True)
def mix(
    scores, sign, step, recent, ordered, kept, pairs, last, last_rare, seen, lately, weights,
    losses, auc, judged, mean, covariance, prior, fixed_share, keeps, out,
):  # fmt: skip
    """Go through rows in order: place, stack, mix, judge, learn, keep.

    All but the first three, `prior` and the shares change in place. Experts are the members, and
    behind them the stack where there is one: an entry more in ``weights``.

    ``scores``: the members' scores of each row before it, shape (n_members, n_rows). ``recent``,
    ``ordered``, ``kept``: each member's last majority scores, the same sorted, and how many came.
    ``pairs``: places of the last rows of each class, class 1 rare, shape (2, n_pairs, n_experts).
    ``last``, ``last_rare``: what each expert alone had scored the last labelled rows, shape
    (n_last, n_experts), and which were rare.
    ``seen``, ``lately``: labelled rows of each class in all, and those that have not faded, of
    which a share of ``keeps`` stays at every row. ``losses``, ``auc``: of the experts, the mixture
    last. ``mean``, ``covariance``: of the stack's intercept and weights. ``prior``: what weights
    begin as. ``out``: the mixture's score of each row.
    """
    n_members, n_rows = scores.shape
    n_experts = weights.shape[0]
    places, inputs = np.empty(n_experts), np.empty_like(mean)
    n_pairs = pairs.shape[1]
    for t in range(n_rows):
        now = level(seen, lately)
        total, beyond = _mixed_place(scores, t, ordered, kept, weights, mean, places, inputs)
        out[t] = LARGEST * total + now
        if sign[t] == 0:
            continue
        own = 1 if sign[t] > 0 else 0
        if own == 1 and seen[0] > 0:
            others = pairs[0, : min(seen[0], n_pairs)]
            _judge(places, others, weights, prior, losses, auc, judged, step[t], fixed_share)
        if n_experts > n_members:
            _learn_stack(inputs, beyond + now, mean, covariance, float(sign[t]), step[t])
        slot = (seen[0] + seen[1]) % last_rare.shape[0]
        last_rare[slot] = own
        for k in range(n_experts):
            last[slot, k] = LARGEST * places[k] + now
            pairs[own, seen[own] % n_pairs, k] = places[k]
        if own == 0:
            _keep_all(recent, ordered, kept, scores[:, t])
        seen[own] += 1
        lately[own] += 1.0
        lately[0] *= keeps
        lately[1] *= keeps


@njit(cache=True, nogil=True)
def counts(weights, mean):
    """Share of the score that a natural log of each member's rate adds, with the stack."""
    n_members = mean.shape[0] - 1
    out = weights[:n_members].copy()
    if weights.shape[0] > n_members:
        out += weights[n_members] / UNIT * mean[1:]
    return out


@njit(cache=True, nogil=True)
def mixed_places(scores, ordered, kept, weights, mean, out):
    """Weighted mean place of rows by the members and the stack as they are."""
    places, inputs = np.empty_like(weights), np.empty_like(mean)
    for t in range(scores.shape[1]):
        out[t], _ = _mixed_place(scores, t, ordered, kept, weights, mean, places, inputs)


@njit(cache=True, nogil=True)
def rank_rows(X, ordered, ranked, knots):
    """CSR arrays (indptr, indices, data) of rows, `knots` places a column.

    With r the middle rank of a value in its sorted column of `ordered`, from 0 to 1, and
    ``p = r (knots - 1)``, a ranked column has ``1 - f`` at place floor(p) and f at the next one,
    f the fraction of p. Another has its value at its first place. Zeros are left out.
    """
    n, d = X.shape
    indptr = np.zeros(n + 1, np.int64)
    indices, data = np.empty(2 * n * d, np.int64), np.empty(2 * n * d)
    filled = 0
    for t in range(n):
        for j in range(d):
            first, x = j * knots, X[t, j]
            here, next_one = x, 0.0
            if ranked[j]:
                column = ordered[j]
                low = np.searchsorted(column, x, side="left")
                high = np.searchsorted(column, x, side="right")
                p = (knots - 1) * (0.5 * (low + high) / column.shape[0])
                floor = int(p)
                first += floor
                here, next_one = 1.0 - (p - floor), p - floor
            if here != 0.0:
                indices[filled], data[filled] = first, here
                filled += 1
            if next_one != 0.0:
                indices[filled], data[filled] = first + 1, next_one
                filled += 1
        indptr[t + 1] = filled
    return indptr, indices[:filled].copy(), data[:filled].copy()


# cos(2 pi sqrt(u)) for u in [0, 1/4] to 2e-8: its interpolant of degree 6 at Chebyshev's points.
# With the library's cosine the loop takes three times as long, and rounds by the machine.
_C0, _C1, _C2 = 0.9999999889445765, -19.739204466576158, 64.93911592834692
_C3, _C4, _C5, _C6 = -85.45011342750767, 60.16742979194585, -25.966884612550658, 6.527705962902734


@njit(cache=True, nogil=True)
def wave_rows(X, frequencies, phases):
    """``sqrt(2 / D) cos(2 pi (asinh(x) F + b))`` of each row x; F is (d, D), b (D,)."""
    n, d = X.shape
    D = phases.shape[0]
    size = math.sqrt(2.0 / max(D, 1))
    out = np.empty((n, D))
    for t in range(n):
        for k in range(D):
            out[t, k] = phases[k]
        for j in range(d):
            if X[t, j] != 0.0:
                x = math.asinh(X[t, j])
                for k in range(D):
                    out[t, k] += x * frequencies[j, k]
        for k in range(D):
            turn = out[t, k] - math.floor(out[t, k] + 0.5)
            u = turn * turn
            even = _C3 + u * (_C4 + u * (_C5 + u * _C6))
            out[t, k] = size * (_C0 + u * (_C1 + u * (_C2 + u * even)))
    return out
