"""Slow definitions of an ensemble: rates by counting rows, and selection by trying everybody."""

import math

import numpy as np


def log_rate_by_rows(s, majority, weight):
    """ln F at a majority score, one row after the other."""
    one = min(w for w in weight if w > 0)
    above = sum(w for t, w in zip(majority, weight, strict=True) if t > s)
    equal = sum(w for t, w in zip(majority, weight, strict=True) if t == s)
    return math.log((above + 0.5 * equal + 0.5 * one) / (sum(weight) + one))


def excess_by_copies(majority, weight):
    """Mean excess of the thirty highest over the thirtieth, each row so many times."""
    copies = sorted(np.repeat(majority, weight.astype(int)), reverse=True)[:30]
    return sum(s - copies[-1] for s in copies) / len(copies)


def selection_by_trying(scores, merit, n_begin, n_steps):
    """Votes of greedy selection: the best of every number of votes, means taken anew each time."""
    n_members = scores.shape[1]

    def of(votes):
        return merit(sum(votes[k] * scores[:, k] for k in range(n_members)))

    own = [merit(scores[:, k]) for k in range(n_members)]
    first = sorted(range(n_members), key=lambda k: (-own[k], k))[:n_begin]
    votes = [int(k in first) for k in range(n_members)]
    tried = [(of(votes), votes)]
    for _ in range(n_steps):
        further = [[v + (k == j) for k, v in enumerate(votes)] for j in range(n_members)]
        votes = max(further, key=of)
        tried.append((of(votes), votes))
    best = max(tried, key=lambda each: each[0])[1]
    return np.array(best) / sum(best)
