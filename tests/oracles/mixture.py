"""The mixture of online learners from its formulas, a row after the other in plain Python."""

import math

import numpy as np

from oracles.first_order import newton_step

LARGEST = math.log(1e6)


def ranks(X, rows, knots):
    """Each value by its middle rank among the thousand rows before, spread over two knots.

    `rows` in place of a thousand. 0 among the first; columns of two values there stay as they are.
    """
    n, d = X.shape
    out = np.zeros((n, d, knots))
    ranked = [len(set(X[:rows, j].tolist())) > 2 for j in range(d)]
    for t in range(rows, n):
        block = X[t // rows * rows - rows : t // rows * rows]
        for j in range(d):
            x = X[t, j]
            if not ranked[j]:
                out[t, j, 0] = x
                continue
            r = np.mean((block[:, j] < x) + 0.5 * (block[:, j] == x))
            out[t, j] = np.maximum(0.0, 1.0 - np.abs(r * (knots - 1) - np.arange(knots)))
    return out.reshape(n, d * knots)


def place(recent, score):
    """A score's place by the recent majority scores."""
    n = len(recent)
    if n == 0 or not math.isfinite(score):
        return 0.5
    ordered = sorted(recent)
    above = sum(s > score for s in recent) + 0.5 * sum(s == score for s in recent)
    rate = (above + 0.5) / (n + 1)
    if n >= 20:
        top = ordered[n - n // 20 :]
        if score == top[0]:
            rate = max(rate, len(top) / (n + 1))
        elif score > top[0] and sum(top) > len(top) * top[0]:
            excess = sum(s - top[0] for s in top) / len(top)
            return min(1.0, (math.log((n + 1) / len(top)) + (score - top[0]) / excess) / LARGEST)
    return min(1.0, -math.log(rate) / LARGEST)


def pair_loss(own, others):
    return sum(((1 - (own - other)) / 2) ** 2 for other in others) / len(others)


def prior(K):
    """What experts count at the start: the stack a half, if there is one; the members alike."""
    return np.ones(1) if K == 1 else np.array([1 / (2 * K)] * K + [1 / 2])


def stack_at_start(K):
    """Intercept and weights by which the stack is the mean of the members."""
    return np.array([0.0, *np.full(K, 3 / K)])


def aged(S):
    """A covariance of which a 200th of a half-life is forgotten, with variances of 1 at most."""
    wanted = np.minimum(np.diag(S) * 2 ** (1 / 200), 1.0)
    grows = np.sqrt(wanted / np.diag(S))
    return S * np.outer(grows, grows)


def mixture(scores, sign, n_recent, n_pairs, share, half_life):
    """The mixture's scores, its weights at the end, and every loss, a row a rare row.

    Losses are of the experts, and in the last column of the mixture. `scores`: (n_members, n).
    """
    K = len(scores)
    p_start, recent, kept = prior(K), [[] for _ in range(K)], []
    w, mean, S = p_start, stack_at_start(K), np.eye(1 + K)
    out, losses, rare, majority = [], [], [], []
    for t, y in enumerate(sign):
        u = np.array([place(recent[k][-n_recent:], scores[k][t]) for k in range(K)])
        n1, n0 = len(rare), len(majority)
        overall = (n1 + 1) / (n1 + n0 + 100)
        now = n1 + n0
        r = sum(0.5 ** ((now - i) / half_life) for i in rare)
        m = r + sum(0.5 ** ((now - i) / half_life) for i in majority)
        p = (r + 10) / (m + 10 / overall)
        level = math.log(p / (1 - p))
        x = np.append(1.0, (LARGEST * u - 1) / 3)
        if K > 1:
            u = np.append(u, np.clip(mean @ x / LARGEST, -0.25, 0.75))
        out.append(LARGEST * w @ u + level)
        if y > 0 and kept:
            others = kept[-n_pairs:]
            lost = [pair_loss(u[k], [v[k] for v in others]) for k in range(len(u))]
            losses.append([*lost, pair_loss(w @ u, [w @ v for v in others])])
            w = w * np.exp(-np.array(lost) / 2)
            w = (1 - share) * w / w.sum() + share * p_start
        if y:
            mean, S = newton_step(mean, S, x, y, 1.0, level)
        if y > 0:
            S = aged(S)
        if y < 0:
            kept.append(u)
            for k in range(K):
                if math.isfinite(scores[k][t]):
                    recent[k].append(scores[k][t])
        if y:
            (rare if y > 0 else majority).append(now)
    return np.array(out), w, np.array(losses).reshape(-1, len(w) + 1)


def best_sequence(losses, switches):
    """The least loss of members in turns that change at most so often; `losses` (T, K)."""
    best = np.zeros((switches + 1, losses.shape[1]))
    for lost in losses:
        change = np.vstack(
            [np.full(losses.shape[1], np.inf), np.tile(best.min(1), (len(lost), 1)).T[:-1]]
        )
        best = np.minimum(best, change) + lost
    return best.min()
