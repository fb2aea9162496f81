"""Scores of several learners on one scale, judged and mixed: the compiled loop of a mixture."""

import math

import numpy as np

from rareclass.compiling import njit

# Among fewer recent rows there is no tail to go by; it is the highest 20th of them.
_LEAST, _TAIL = 20, 20
# A place of 1 is a rate of 1 in a million.
LARGEST = math.log(1e6)
# (e^2 is exp-concave up to 1/2 for e in [0, 1])
_RATE = 0.5
# Rare rows that stand for the share of the whole stream in that of the last rows, what the share
# begins as, and the rare rows after which the past counts half in a member's AUC.
_STEADY, _FIRST_RARE, _FIRST_ROWS, _AUC_HALF = 10.0, 1.0, 100.0, 200.0


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
    """Where the tail of sorted scores begins, its rows, and the mean of what they are above it.

    The mean is 0 where there is no tail to go by.
    """
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
    """Put a majority score in place of the oldest; `ordered` stays sorted. Returns how many came.

    ``kept`` scores came before.
    """
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
def _judge(places, pairs, weights, losses, auc, judged, step, fixed_share):
    """Losses of a rare row's places against the kept majority rows, and the weights after them."""
    n_members, n_pairs = weights.shape[0], pairs.shape[0]
    judged[0] += 1.0
    slow = max(1.0 / judged[0], 1.0 - 2.0 ** (-1.0 / _AUC_HALF))
    own, others = 0.0, np.zeros(n_pairs)
    new, least = np.empty(n_members), np.inf
    for k in range(n_members):
        lost, above = _pair_measures(places[k], pairs[:, k])
        new[k], least = lost, min(least, lost)
        losses[k] += step * lost
        auc[k] += slow * (above - auc[k])
        own += weights[k] * places[k]
        for b in range(n_pairs):
            others[b] += weights[k] * pairs[b, k]
    lost, above = _pair_measures(own, others)
    losses[n_members] += step * lost
    auc[n_members] += slow * (above - auc[n_members])
    total = 0.0
    for k in range(n_members):
        weights[k] *= math.exp(-_RATE * step * (new[k] - least))
        total += weights[k]
    for k in range(n_members):
        weights[k] = (1.0 - fixed_share) * weights[k] / total + fixed_share / n_members


@njit(cache=True, nogil=True)
def mix(
    scores, sign, step, recent, ordered, kept, pairs, last, last_rare, seen, lately, weights,
    losses, auc, judged, fixed_share, keeps, out,
):  # fmt: skip
    """Go through rows in order: place, mix, judge, keep; all but the first three change in place.

    ``scores``: the members' scores of each row before it, shape (n_members, n_rows). ``recent``,
    ``ordered``, ``kept``: each member's last majority scores, the same sorted, and how many came.
    ``pairs``: places of the last rows of each class, class 1 rare, shape (2, n_pairs, n_members).
    ``last``, ``last_rare``: what each member alone had scored the last labelled rows, shape
    (n_last, n_members), and which were rare.
    ``seen``, ``lately``: labelled rows of each class in all, and those that have not faded, of
    which a share of ``keeps`` stays at every row. ``losses``, ``auc``: of the members, the mixture
    last. ``out``: the mixture's score of each row.
    """
    n_members, n_rows = scores.shape
    places = np.empty(n_members)
    n_pairs = pairs.shape[1]
    for t in range(n_rows):
        total, now = 0.0, level(seen, lately)
        for k in range(n_members):
            places[k] = place(ordered[k, : min(kept[k], recent.shape[1])], scores[k, t])
            total += weights[k] * places[k]
        out[t] = LARGEST * total + now
        if sign[t] == 0:
            continue
        own = 1 if sign[t] > 0 else 0
        if own == 1 and seen[0] > 0:
            others = pairs[0, : min(seen[0], n_pairs)]
            _judge(places, others, weights, losses, auc, judged, step[t], fixed_share)
        slot = (seen[0] + seen[1]) % last_rare.shape[0]
        last_rare[slot] = own
        for k in range(n_members):
            last[slot, k] = LARGEST * places[k] + now
            pairs[own, seen[own] % n_pairs, k] = places[k]
            if own == 0 and abs(scores[k, t]) < np.inf:
                kept[k] = _keep(recent[k], ordered[k], kept[k], scores[k, t])
        seen[own] += 1
        lately[own] += 1.0
        lately[0] *= keeps
        lately[1] *= keeps


@njit(cache=True, nogil=True)
def mixed_places(scores, ordered, kept, weights, out):
    """Weighted mean place of rows by the members as they are."""
    for t in range(scores.shape[1]):
        out[t] = 0.0
        for k in range(scores.shape[0]):
            out[t] += weights[k] * place(ordered[k, : min(kept[k], ordered.shape[1])], scores[k, t])
