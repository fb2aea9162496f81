"""The first-order learners and diagonal CBR, row by row from their formulas, in plain Python."""

import math

import numpy as np


class Buffers:
    """Two lists of rows: +1 the rare class, -1 the majority."""

    def __init__(self, capacity, policy, rng):
        self.capacity, self.policy, self.rng = capacity, policy, rng
        self.rows, self.seen = {1: [], -1: []}, {1: 0, -1: 0}

    def draw(self):
        """One draw a row, learned from or not."""
        return self.rng.random() if self.policy == "reservoir" else None

    def put(self, x, y, draw):
        self.seen[y] += 1
        n, rows = self.seen[y], self.rows[y]
        if len(rows) < self.capacity:
            rows.append(x)
            return
        slot = int(draw * n) if self.policy == "reservoir" else (n - 1) % self.capacity
        if slot < self.capacity:
            rows[slot] = x


def learn(X, sign, step, buffers, n_features, visit):
    """Scores before each row, and the final weights; `visit` changes the weights w in place."""
    w, scores = np.zeros(n_features), []
    for x, y, part in zip(np.asarray(X, float), sign, step, strict=True):
        scores.append(float(sum(w * x)))
        draw = buffers.draw()
        if y:
            visit(w, x, y, part, buffers.rows[-y], buffers.seen[-y])
            buffers.put(x, y, draw)
    return np.array(scores), w


def oam(X, sign, step, buffers, C):
    def visit(w, x, y, part, others, n_others):
        C_t = C * part * max(1.0, n_others / buffers.capacity)
        for b in others:
            z = x - b
            loss = max(0.0, 1 - y * (w @ z))
            if z.any():
                w += min(C_t, loss / (z @ z)) * y * z

    return learn(X, sign, step, buffers, X.shape[1], visit)


def cbr_diagonal(X, sign, step, buffers, C, phi, pair_step=None):
    """CBR-diag with Proposition 2 as printed or another step of a pair; also returns G."""
    G = np.ones(X.shape[1])

    def visit(w, x, y, part, others, n_others):
        for b in others:
            (pair_step or printed_step)(w, G, x - b, y, C, C * part, phi)

    return *learn(X, sign, step, buffers, X.shape[1], visit), G


def printed_step(w, G, z, y, C, most, phi):
    """Proposition 2 as printed; w and G are changed in place."""
    psi, zeta = 1 + phi**2 / 2, 1 + phi**2
    v, m = sum(z**2 / (G + C)), y * sum(w * z)
    if v == 0 or phi * math.sqrt(v) - m <= 0:
        return
    root = math.sqrt(m**2 * phi**4 / 4 + v * phi**2 * zeta)
    alpha = min(most, max(0.0, (-m * psi + root) / (v * zeta)))
    a = alpha * v * phi
    root_u = 2 * v / (a + math.sqrt(a**2 + 4 * v))
    w += alpha * y * z / G
    G += alpha * phi / (root_u + a) * z**2


def exact_step(w, G, z, y, C, most, phi):
    """The minimum of equation (6), by halves, from its conditions alone.

    ``G += beta z^2`` and ``mu += alpha y z / G`` with ``alpha = beta sqrt(u) / phi``, where beta is
    the least at which either alpha is C or the loss after the step is 0: both rise with beta.
    """
    terms, m = z**2 / G, y * sum(w * z)
    v = sum(terms)
    if v == 0 or phi * math.sqrt(v) - m <= 0:
        return

    def is_enough(beta):
        root_u = math.sqrt(sum(terms / (1 + beta * terms)))
        alpha = beta * root_u / phi
        return alpha >= most or m + alpha * v >= phi * root_u

    low, high = -700.0, 700.0  # of log beta
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_enough(math.exp(middle)) else (middle, high)
    beta = math.exp(high)
    w += min(most, beta * math.sqrt(sum(terms / (1 + beta * terms))) / phi) * y * z / G
    G += beta * z**2


def pair_objective(mu, variance, before, G, z, y, C, phi):
    """Equation (6): KL divergence from N(before, 1 / G) and C times the loss of the pair."""
    divergence = sum(variance * G - 1 - np.log(variance * G) + (mu - before) ** 2 * G) / 2
    return divergence + C * max(0.0, phi * math.sqrt(sum(z**2 * variance)) - y * sum(mu * z))


def uniexp(X, sign, step, eta):
    w, weight, scores = np.zeros(X.shape[1]), {1: 0.0, -1: 0.0}, []
    for x, y, part in zip(np.asarray(X, float), sign, step, strict=True):
        scores.append(float(sum(w * x)))
        if y:
            weight[y] += part
            by_class = sum(weight.values()) / (2 * weight[y])
            w += eta * part * by_class * y * x * math.exp(min(-y * scores[-1], 10.0))
    return np.array(scores), w


def newton_step(mean, S, x, y, weight, offset=0.0):
    """Mode and inverse curvature of N(mean, S) times the likelihood of a row; the mode by halves.

    It is mean + y m S x where ``m = weight / (1 + exp(y (offset + mean.x) + m x'Sx))``.
    """
    margin, variance = y * (offset + mean @ x), x @ S @ x

    def slope(m):
        return weight / (1.0 + math.exp(min(margin + variance * m, 700.0)))

    low, high = 0.0, slope(0.0)
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if middle > slope(middle) else (middle, high)
    mode = mean + y * high * S @ x
    p = 1.0 / (1.0 + math.exp(min(max(-(offset + mode @ x), -700.0), 700.0)))
    h = weight * p * (1.0 - p)
    return mode, S - h * np.outer(S @ x, S @ x) / (1.0 + h * variance)


def logistic_newton(X, sign, step, eta, balanced, full=128):
    """Scores before each row, w, and b; features from `full` on have no covariance."""
    X = np.asarray(X, float)
    d = X.shape[1]
    mean, S = np.zeros(1 + d), np.diag([100.0, *np.full(d, eta**2)])
    alone = np.arange(1 + d) > full
    weight, scores = {1: 0.0, -1: 0.0}, []
    for x, y, part in zip(X, sign, step, strict=True):
        scores.append(float(mean[1:] @ x))
        if not y:
            continue
        weight[y] += part
        c = part * (sum(weight.values()) / (2 * weight[y]) if balanced else 1.0)
        mean, S = newton_step(mean, S, np.append(1.0, x), y, c)
        S[alone] *= np.eye(1 + d)[alone]
        S[:, alone] *= np.eye(1 + d)[:, alone]
    return np.array(scores), mean[1:], mean[0]


def logistic(X, sign, step, eta, balanced):
    """Scores before each row, w, and b; AdaGrad with the intercept as one more column of ones."""
    X = np.asarray(X, float)
    w, squares = np.zeros(X.shape[1] + 1), np.zeros(X.shape[1] + 1)
    weight, scores = {1: 0.0, -1: 0.0}, []
    for x, y, part in zip(X, sign, step, strict=True):
        scores.append(float(sum(w[:-1] * x)))
        if not y:
            continue
        weight[y] += part
        c = part * (sum(weight.values()) / (2 * weight[y]) if balanced else 1.0)
        likely = 1.0 / (1.0 + math.exp(-(scores[-1] + w[-1])))
        slope = c * (likely - (y > 0)) * np.append(x, 1.0)
        squares += slope**2
        moves = squares > 0
        w[moves] -= eta * slope[moves] / np.sqrt(squares[moves])
    return np.array(scores), w[:-1], w[-1]
