"""CBR with a full covariance, pair by pair, as Algorithms 1 to 3 and Proposition 1 have it."""

from statistics import NormalDist

import numpy as np


class PlainCBR:
    """Goes along with a model that has just begun: the same parameters, the same draws."""

    def __init__(self, model, dtype=np.float64):
        self.C, self.phi = model.C, NormalDist().inv_cdf(model.eta)
        self.capacity, self.policy = model.buffer_size, model.policy
        self.rng = np.random.Generator(np.random.PCG64())
        self.rng.bit_generator.state = model.state_.rng.bit_generator.state
        self.mean, self.S = (
            np.zeros(model.n_features_in_, dtype),
            np.eye(model.n_features_in_, dtype=dtype),
        )
        self.buffers, self.seen = ([], []), [0, 0]
        self.steps = 0  # of the last row
        self.balanced = model.class_weight == "balanced"

    def score_and_learn(self, x, label):
        score = self.mean @ x
        y = 1.0 if label else -1.0
        C = self.C
        if self.balanced:
            C *= 2 * self.seen[1 - label] / (sum(self.seen) + 1)
        self.steps = 0
        for row in self.buffers[1 - label]:
            self._pair(x - row, y, C)
        self._store(x, label)
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

    def _store(self, x, label):
        self.seen[label] += 1
        u = self.rng.random() if self.policy == "reservoir" else 0.0
        n, buffer = self.seen[label], self.buffers[label]
        if len(buffer) < self.capacity:
            buffer.append(x)
        elif self.policy == "fifo":
            buffer[(n - 1) % self.capacity] = x
        elif int(u * n) < self.capacity:
            buffer[int(u * n)] = x
