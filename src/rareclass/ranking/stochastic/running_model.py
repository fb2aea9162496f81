"""A quadratic model of the objective, averaged over the mini-batches seen."""

from typing import NamedTuple, Self

import numpy as np
from scipy import linalg

# A batch weighs as the cube of what was seen up to it: a model made far from the minimum is soon
# forgotten, and the last pass alone still weighs less than all.
_FORGETTING = 3
# Batches over which the estimate of the gap is averaged, at most.
_FEW = 20


class BatchModel(NamedTuple):
    """Value, gradient and curvature of the loss over one mini-batch at a point, no regulariser."""

    value: float
    gradient: np.ndarray
    curvature: np.ndarray


class Minimum(NamedTuple):
    """Where the regularised model is least."""

    w: np.ndarray
    value: float  # the model there
    decrease: float  # by how much that is below the model at the point where it was asked for


class RunningModel(NamedTuple):
    r"""The average of second-order expansions of mini-batch losses, each at the point of its time.

    .. math::

        q(w) = \sum_b a_b \bigl( F_b(w_b) + g_b'(w - w_b) + \tfrac12 (w - w_b)' H_b (w - w_b)
        \bigr) = e - c'w + \tfrac12 w' A w

    Its gradient at w is the average of mini-batch gradients, each carried to w along its own
    curvature. Once the pairs on the bends of the loss settle, that is exact, and q + the
    regulariser over all rows is the objective itself.
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
    def empty(cls, rank: int) -> "RunningModel":
        """Nothing seen."""
        return cls(np.zeros((rank, rank)), np.zeros(rank))

    def share_of(self, weight: float, least: float) -> float:
        """What a batch of this weight would weigh in the average; `least` is a lower bound."""
        mass = self.mass + weight
        window = self.window * (self.mass / mass) ** _FORGETTING + weight
        return min(1.0, max(weight / window, least))

    def updated(self, batch: BatchModel, w: np.ndarray, weight: float, share: float) -> Self:
        """The average with one more batch, seen at w, which weighs `share` in it."""
        Hw = batch.curvature @ w
        e = batch.value - float(batch.gradient @ w) + 0.5 * float(w @ Hw)
        return self._replace(
            A=self.A + share * (batch.curvature - self.A),
            c=self.c + share * (Hw - batch.gradient - self.c),
            e=self.e + share * (e - self.e),
            mass=self.mass + weight,
            window=weight / share,
            share=share,
        )

    def value(self, w: np.ndarray, lam: float) -> float:
        """The regularised model at a point."""
        return self.e - float(self.c @ w) + 0.5 * float(w @ (self.A @ w) + lam * (w @ w))

    def minimum(self, w: np.ndarray, lam: float) -> Minimum:
        """The minimum of the regularised model, looked for from w: O(rank^3)."""
        H = self.A.copy()
        H[np.diag_indices_from(H)] += lam
        gradient = H @ w - self.c
        try:
            factor = linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
            step = -linalg.cho_solve(factor, gradient, check_finite=False)
        except linalg.LinAlgError:
            # lam is below the rounding error of A: directions that A does not resolve stay.
            values, vectors = linalg.eigh(self.A, check_finite=False)
            noise = len(values) * np.finfo(np.float64).eps * float(np.abs(values).max())
            step = -vectors @ ((gradient @ vectors) / np.maximum(values + lam, lam + noise))
        found = w + step
        return Minimum(found, self.value(found, lam), max(-0.5 * float(gradient @ step), 0.0))

    def noted(self, decrease: float) -> Self:
        r"""With what the decrease of the regularised model by the last batch says of the gap.

        A fresh batch that weighs a in the average moves the minimum of the model by noise of
        variance a^2, while the average itself has variance a / 2: its objective is above the
        minimum by the decrease that one batch brings, over 2 a.
        """
        share = max(self.share, 1.0 / _FEW)
        return self._replace(gap=self.gap + share * (decrease / (2.0 * self.share) - self.gap))

    def widened(self, rank: int) -> Self:
        """With further coordinates: curved like the most curved one until batches say better."""
        more = rank - len(self.c)
        A = np.zeros((rank, rank))
        A[:-more, :-more] = self.A
        A[np.arange(rank - more, rank), np.arange(rank - more, rank)] = self.A.diagonal().max(
            initial=0.0
        )
        return self._replace(A=A, c=np.pad(self.c, (0, more)))

    def discounted(self, share: float) -> Self:
        """What was seen counts only `share`: the rest of its pairs were not there yet."""
        return self._replace(mass=share * self.mass, window=share * self.window)
