"""Covariances of both classes by random projection, and weights that rows move at low cost."""

from typing import Any, NamedTuple, Self

import numpy as np

from rareclass.machine import check_fits
from rareclass.online._low_rank_jit import learn
from rareclass.online.moments import equal_error_threshold
from rareclass.online.ranker import SparseRows


class LowRankMoments(NamedTuple):
    """Sums over the rows x of a class, each with its own draw r of `rank` normal numbers.

    With mean c, the covariance is close to ``Z Z' / (rank weight)``, ``Z = sum (x - c) r'``:
    positive semi-definite, and right on average over the draws.
    """

    # shape (n_features, 2 * (rank + 1)): columns of sum x r', then sum x: of the majority, of the
    # rare class
    basis: np.ndarray
    gram: np.ndarray  # basis' basis
    draws: np.ndarray  # shape (2, rank): sum r
    weight: np.ndarray  # shape (2,): rows of a class, by weight


class SplitWeights(NamedTuple):
    """Weights ``w = scale base + basis along``, so that a row changes few numbers."""

    base: np.ndarray  # shape (n_features,)
    along: np.ndarray  # shape (2 * (rank + 1),)
    products: np.ndarray  # shape (2 * (rank + 1),): basis' base
    numbers: np.ndarray  # shape (3,): scale, base' base, and rows learned since along was last zero


class LowRankState(NamedTuple):
    """What OPAUC with a rank knows after some rows."""

    weights: SplitWeights
    moments: LowRankMoments
    rng: np.random.Generator

    @classmethod
    def empty(cls, n_features: int, rank: int, rng: np.random.Generator) -> Self:
        """Before the first row."""
        check_memory(n_features, rank)
        width = 2 * (rank + 1)
        weights = SplitWeights(
            np.zeros(n_features), np.zeros(width), np.zeros(width), np.array([1.0, 0.0, 0.0])
        )
        basis, gram = np.zeros((n_features, width)), np.zeros((width, width))
        moments = LowRankMoments(basis, gram, np.zeros((2, rank)), np.zeros(2))
        return cls(weights, moments, rng)

    @property
    def coef(self) -> np.ndarray:
        """w; O(n_features rank)."""
        weights = self.weights
        return weights.numbers[0] * weights.base + self.moments.basis @ weights.along

    def learned(
        self, rows: Any, sign: np.ndarray, step: np.ndarray, eta: float, lam: float
    ) -> np.ndarray:
        """Learn from rows, in place; returns each row's score before it."""
        # Every row has its draws, with a label or without, so that batches do not matter.
        drawn = self.rng.standard_normal((len(sign), self.moments.draws.shape[1]))
        rows = SparseRows(*map(np.ascontiguousarray, rows))
        return learn(rows, sign, step, drawn, eta, lam, self.weights, self.moments)

    def grown(self, n_features: int) -> Self:
        """The same rows with zeros in the new features."""
        weights, moments = self.weights, self.moments
        check_memory(n_features, moments.draws.shape[1])
        more = (0, n_features - len(weights.base))
        return self._replace(
            weights=weights._replace(base=np.pad(weights.base, more)),
            moments=moments._replace(basis=np.pad(moments.basis, (more, (0, 0)))),
        )

    def threshold(self) -> float:
        """The score between the classes: see `equal_error_threshold`."""
        _, _, draws, weight = self.moments
        if not weight.all():
            return 0.0
        rank = draws.shape[1]
        products = (self.coef @ self.moments.basis).reshape(2, rank + 1)
        mean = products[:, rank] / weight
        spread = products[:, :rank] - draws * mean[:, None]
        return equal_error_threshold(mean, np.sqrt((spread**2).sum(axis=1) / (rank * weight)))


def check_memory(n_features: int, rank: int) -> None:
    """Raise `ValueError` when the sums would take more than half of the free memory."""
    check_fits(
        16 * n_features * (rank + 1),
        f"Sums of rank {rank} over {n_features:,} features",
        "Choose a smaller rank, or leave features out.",
    )
