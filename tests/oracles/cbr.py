"""CBR with a full covariance, pair by pair, as Algorithms 1 to 3 and Proposition 1 have it."""

from statistics import NormalDist

import numpy as np

from oracles.first_order import Buffers


class PlainCBR:
    """Goes along with a model that has just begun: the same parameters, the same draws."""

    def __init__(self, model, dtype=np.float64):
        self.C, self.phi = model.C, NormalDist().inv_cdf(model.eta)
        rng = np.random.Generator(np.random.PCG64())
        rng.bit_generator.state = model.state_.rng.bit_generator.state
        self.buffers = Buffers(model.buffer_size, model.policy, rng)
        d = model.n_features_in_
        self.mean, self.S = np.zeros(d, dtype), np.eye(d, dtype=dtype)
        self.steps = 0  # of the last row
        self.balanced = model.class_weight == "balanced"

    def score_and_learn(self, x, label):
        score = self.mean @ x
        y, C, seen = (1 if label else -1), self.C, self.buffers.seen
        if self.balanced:
            C *= 2 * seen[-y] / (sum(seen.values()) + 1)
        self.steps = 0
        for row in self.buffers.rows[-y]:
            self._pair(x - row, y, C)
        self.buffers.put(x, y, self.buffers.draw())
        return score

    def _pair(self, z, y, C):
        phi, psi, zeta = self.phi, 1 + self.phi**2 / 2, 1 + self.phi**2
        m, v = y * (self.mean @ z), z @ self.S @ z
        if v <= 0.0 or phi * np.sqrt(v) - m <= 0.0:
            return
        root = np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * zeta)
        self.steps += 1
        alpha = min(C, max(0.0, (-m * psi + root) / (v * zeta)))
        a = alpha * v * phi
        beta = alpha * phi / (2 * v / (a + np.sqrt(a**2 + 4 * v)) + a)
        w = self.S @ z
        self.mean = self.mean + alpha * y * w
        self.S = self.S - beta * np.outer(w, w)
