"""Mean and covariance of both classes while rows pass: in full, or by random projection."""

from typing import Any, NamedTuple, Self

import numpy as np

from rareclass.machine import check_fits
from rareclass.online._moments_jit import learn_projected
from rareclass.online.ranker import SparseRows

# Steps take fourth powers of a row's values, and floats end at 1e308.
_LARGEST = 1e75


class ClassMoments(NamedTuple):
    """Moments of the majority (plane 0) and of the rare class (plane 1)."""

    weight: np.ndarray  # shape (2,): rows of a class, by weight
    mean: np.ndarray  # shape (2, n_features)
    # shape (2, n_features, n_features): sum of ``(x - mean)(x - mean)'``: `weight` times the
    # covariance
    scatter: np.ndarray
    spread: np.ndarray  # shape (2,): trace of `scatter`

    @classmethod
    def empty(cls, n_features: int) -> Self:
        """Two classes without rows."""
        _check_covariances(n_features)
        shape = (2, n_features, n_features)
        return cls(np.zeros(2), np.zeros((2, n_features)), np.zeros(shape), np.zeros(2))

    def grown(self, n_features: int) -> Self:
        """The same rows with zeros in the new features."""
        _check_covariances(n_features)
        more = (0, n_features - self.mean.shape[1])
        return self._replace(
            mean=np.pad(self.mean, ((0, 0), more)),
            scatter=np.pad(self.scatter, ((0, 0), more, more)),
        )

    def threshold(self, coef: np.ndarray) -> float:
        """The score between the classes: see `equal_error_threshold`."""
        if not self.weight.all():
            return 0.0
        variance = ((self.scatter @ coef) @ coef) / self.weight
        return equal_error_threshold(self.mean @ coef, np.sqrt(np.maximum(variance, 0.0)))


def equal_error_threshold(mean: np.ndarray, deviation: np.ndarray) -> float:
    """Point where two Gaussians have tails of equal mass, as many deviations from either mean.

    `mean` and `deviation` are those of the scores of each class. The midpoint when neither is
    spread out.

    >>> float(equal_error_threshold(np.array([0.0, 3.0]), np.array([1.0, 2.0])))
    1.0
    """
    both = deviation.sum()
    if both == 0.0:
        return float(mean.mean())
    return float(mean[0] + (mean[1] - mean[0]) * (deviation[0] / both))


def _check_covariances(n_features: int) -> None:
    check_fits(
        16 * n_features**2,
        f"Two covariances of {n_features:,} features",
        f"OPAUC(rank=50) keeps 50 columns in place of {n_features:,}; or leave features out.",
    )


def check_size(rows: Any) -> None:
    """Raise `ValueError` on a value whose powers in a step would be beyond what floats hold."""
    values = rows if isinstance(rows, np.ndarray) else rows.data
    if not values.size or -_LARGEST <= values.min() <= values.max() <= _LARGEST:
        return
    at = np.unravel_index(int(np.abs(values).argmax()), values.shape)
    column = at[1] if isinstance(rows, np.ndarray) else rows.indices[at]
    raise ValueError(
        f"column {column}: {float(values[at])!r} is too large to learn from: powers of it are "
        f"beyond what floats hold. Scale the column; values up to {_LARGEST:g} will do."
    )


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
    """Moving state of OPAUC with a rank."""

    weights: SplitWeights
    moments: LowRankMoments
    rng: np.random.Generator

    @classmethod
    def empty(cls, n_features: int, rank: int, rng: np.random.Generator) -> Self:
        """Before the first row."""
        _check_sums(n_features, rank)
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
        return learn_projected(rows, sign, step, drawn, eta, lam, self.weights, self.moments)

    def grown(self, n_features: int) -> Self:
        """The same rows with zeros in the new features."""
        weights, moments = self.weights, self.moments
        _check_sums(n_features, moments.draws.shape[1])
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


def _check_sums(n_features: int, rank: int) -> None:
    """Raise `ValueError` when the sums would take more than half of the free memory."""
    check_fits(
        16 * n_features * (rank + 1),
        f"Sums of rank {rank} over {n_features:,} features",
        "Choose a smaller rank, or leave features out.",
    )
