"""Mean and covariance of both classes, kept while rows pass."""

from typing import Any, NamedTuple, Self

import numpy as np

from rareclass.machine import check_fits
from rareclass.parameters import check_number

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
        _check_memory(n_features)
        shape = (2, n_features, n_features)
        return cls(np.zeros(2), np.zeros((2, n_features)), np.zeros(shape), np.zeros(2))

    def grown(self, n_features: int) -> Self:
        """The same rows with zeros in the new features."""
        _check_memory(n_features)
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
    """Where two Gaussians have tails of equal mass: as many deviations from either mean.

    `mean` and `deviation` are those of the scores of each class. The midpoint when neither is
    spread out.

    Examples
    --------
    >>> float(equal_error_threshold(np.array([0.0, 3.0]), np.array([1.0, 2.0])))
    1.0
    """
    both = deviation.sum()
    if both == 0.0:
        return float(mean.mean())
    return float(mean[0] + (mean[1] - mean[0]) * (deviation[0] / both))


def _check_memory(n_features: int) -> None:
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


def check_regulariser(lam: Any) -> None:
    """Raise `ValueError` unless lam is a finite number at or above 0."""
    check_number("lam", lam, "a finite number at or above 0", ends="[)")
