r"""The running quadratic model of a mean over mini-batches, which `StochasticRankRC` minimises."""

from typing import NamedTuple, Self

import numpy as np
from scipy import linalg

# A batch weighs as the cube of what was seen up to it: a model made far from the minimum is soon
# forgotten, and the last pass alone still weighs less than all.
_FORGETTING = 3
# Batches over which the estimate of the gap is averaged, at most.
_BATCHES_OF_GAP = 20


class Expansion(NamedTuple):
    """Value, gradient and curvature of the objective of one mini-batch at w."""

    w: np.ndarray  # shape (rank,)
    value: float
    gradient: np.ndarray
    curvature: np.ndarray


class RunningModel(NamedTuple):
    r"""The average of second-order expansions of mini-batches, each at the point of its time.

    .. math::

        q(w) = \sum_b a_b \bigl( F_b(w_b) + g_b'(w - w_b) + \tfrac12 (w - w_b)' H_b (w - w_b)
        \bigr) = e - c'w + \tfrac12 w' A w

    Its gradient at w is the average of mini-batch gradients, each carried to w along its own
    curvature. Once the pairs on the bends of the loss settle, that is exact, and q over all rows is
    the objective itself.
    """

    A: np.ndarray  # shape (rank, rank)
    c: np.ndarray  # shape (rank,)
    e: float = 0.0
    mass: float = 0.0  # total weight of the batches
    # total of their weights in the average, relative to the last: what a batch is set against
    window: float = 0.0
    share: float = 1.0  # weight of the last batch in the average
    gap: float = 0.0  # estimated distance of the objective from its minimum, over the last batches

    @classmethod
    def empty(cls, rank: int) -> Self:
        """Nothing seen."""
        return cls(np.zeros((rank, rank)), np.zeros(rank))

    def share_of(self, weight: float, least: float) -> float:
        """Share of a batch of this weight in the average; `least` is a lower bound."""
        mass = self.mass + weight
        window = self.window * (self.mass / mass) ** _FORGETTING + weight
        return min(1.0, max(weight / window, least))

    def updated(self, batch: Expansion, weight: float, share: float) -> Self:
        """Add a batch that weighs `share` in the average; with 1 nothing else does."""
        w, Hw = batch.w, batch.curvature @ batch.w
        e = batch.value - float(batch.gradient @ w) + 0.5 * float(w @ Hw)
        return self._replace(
            A=self.A + share * (batch.curvature - self.A),
            c=self.c + share * (Hw - batch.gradient - self.c),
            e=self.e + share * (e - self.e),
            mass=weight if share == 1.0 else self.mass + weight,
            window=weight / share,
            share=share,
        )

    def value(self, w: np.ndarray) -> float:
        """The model at a point."""
        return self.e - float(self.c @ w) + 0.5 * float(w @ (self.A @ w))

    def relative_gap(self, w: np.ndarray) -> float:
        """Estimated distance of the objective from its minimum, relative to its value at w."""
        value = self.value(w)
        return self.gap / value if value > 0.0 else np.inf

    def step(self, w: np.ndarray) -> tuple[np.ndarray, Self]:
        r"""The step from w to the minimum, O(rank^3), and the model with its gap updated.

        A fresh batch that weighs a in the average moves the minimum of the model by noise of
        variance a^2, while the average itself has variance a / 2: its objective is above the
        minimum by the decrease that one batch brings, over 2 a.
        """
        gradient = self.A @ w - self.c
        try:
            factor = linalg.cho_factor(self.A, lower=True, check_finite=False)
            step = -linalg.cho_solve(factor, gradient, check_finite=False)
        except linalg.LinAlgError:
            # lam is below the rounding error of A: directions that A does not resolve stay.
            values, vectors = linalg.eigh(self.A, check_finite=False)
            noise = len(values) * np.finfo(np.float64).eps * float(np.abs(values).max())
            step = -vectors @ ((gradient @ vectors) / np.maximum(values, noise))
        decrease = max(-0.5 * float(gradient @ step), 0.0)
        share = max(self.share, 1.0 / _BATCHES_OF_GAP)
        gap = self.gap + share * (decrease / (2.0 * self.share) - self.gap)
        return step, self._replace(gap=gap)

    def moved(self, old: np.ndarray) -> Self:
        """The model in other coordinates, of which the old ones are `old` times the new ones.

        Directions that were not there are curved like the most curved one.
        """
        added = np.eye(old.shape[1]) - old.T @ old
        A = old.T @ self.A @ old + self.A.diagonal().max(initial=0.0) * added
        return self._replace(A=A, c=old.T @ self.c)

    def discounted(self, share: float) -> Self:
        """Count what was seen by `share` only: the rest of its pairs were not there yet."""
        return self._replace(mass=share * self.mass, window=share * self.window)
