"""Score functions of learned members: the protocol, a linear function and a kernel expansion."""

from collections.abc import Sequence
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from rareclass.kernels.expansion import KernelExpansion, block_scores
from rareclass.kernels.kernels import make_kernel
from rareclass.rows import ArrayRows, as_source

# Kernel entries of a block of rows: they stay in cache.
_BLOCK_ENTRIES = 2**19


class ScoreFunction(Protocol):
    """A score f(x) of an encoded row, higher where the row is more like the rare class.

    There are three: a sum of kernel functions, a sum of trees, and a linear function. They hold
    arrays and numbers alone, so that a model file opens without the library that learned it, and
    the mean of several of one kind is one of the same kind.
    """

    def scores(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """Return f of every row of X, of shape (n_rows,), in `n_jobs` threads."""
        ...

    @classmethod
    def mean_of(cls, functions: Sequence[Self]) -> Self:
        """Return the function whose score is the mean of the functions' scores."""
        ...


Function = TypeVar("Function", bound=ScoreFunction)


def mean_function(functions: Sequence[Function]) -> Function:
    """Return the mean of functions of one kind."""
    return functions[0] if len(functions) == 1 else type(functions[0]).mean_of(functions)


class LinearFunction:
    r"""The linear score :math:`f(x) = a + w \cdot x` of dense or sparse rows.

    Attributes
    ----------
    weights : ndarray of shape (n_features,)
    intercept : float

    Examples
    --------
    >>> LinearFunction(np.array([1.0, -1.0]), 0.5).scores(np.array([[2.0, 1.0]]))
    array([1.5])
    """

    def __init__(self, weights: np.ndarray, intercept: float = 0.0) -> None:
        self.weights, self.intercept = weights, intercept

    def check_parts(self) -> None:
        """Raise `ValueError` where the weights are no list of numbers."""
        if self.weights.ndim != 1 or self.weights.dtype.kind != "f":
            raise ValueError("weights is no list of numbers")

    def scores(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """Return f of every row, of shape (n_rows,): one product."""
        return X @ self.weights + self.intercept

    @classmethod
    def mean_of(cls, functions: Sequence[Self]) -> Self:
        """Return the function of the mean weights."""
        weights = np.mean([each.weights for each in functions], axis=0)
        return cls(weights, float(np.mean([each.intercept for each in functions])))


class KernelFunction:
    r"""The kernel expansion :math:`f(x) = \sum_r b_r \, k(a \circ z_r, a \circ x)`.

    Kernel values are of 32 bits, six digits (three of the Laplace kernel right beside a landmark),
    as nothing but the order of scores is used.

    Attributes
    ----------
    kernel : str
        A name that `rareclass.kernels.kernels.make_kernel` knows.
    width : float
    landmarks : ndarray of shape (n_landmarks, n_features), float32
        Times the scales a.
    coefficients : ndarray of shape (n_landmarks,)
    scales : ndarray of shape (n_features,) or None
        a; None for ones.
    least : float
        Sum of similarities below which a row is less like the landmarks than any training row.
    most : float
        Highest score of such a row: far from everything a kernel score falls to zero, which may
        be above the majority's.
    """

    def __init__(
        self,
        kernel: str,
        width: float,
        landmarks: np.ndarray,
        coefficients: np.ndarray,
        scales: np.ndarray | None = None,
        least: float = 0.0,
        most: float = 0.0,
    ) -> None:
        self.kernel, self.width, self.scales = kernel, width, scales
        self.landmarks = np.asarray(landmarks, dtype=np.float32)
        self.coefficients = coefficients
        self.least, self.most = least, most

    def check_parts(self) -> None:
        """Raise `ValueError` where the parts of the expansion are not of one size."""
        n_landmarks, n_features = self.landmarks.shape
        if self.coefficients.shape != (n_landmarks,) or self.coefficients.dtype.kind != "f":
            raise ValueError(f"coefficients has not a number for each of {n_landmarks} landmarks")
        if self.scales is not None and self.scales.shape != (n_features,):
            raise ValueError(f"scales has not a number for each of {n_features} features")
        if not self.width > 0:
            raise ValueError("width is not above 0")

    def scores(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """Return f of every row, of shape (n_rows,): O(n_landmarks n_features) a row."""
        scores, similarity = self.with_similarity(X, n_jobs).T
        far = similarity < self.least
        return np.where(far, np.minimum(scores, self.most), scores)

    def with_similarity(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """Return the plain expansion and the sum of similarities of every row: (n_rows, 2)."""
        X = np.asarray(X, dtype=np.float32)
        if not len(X):
            return np.empty((0, 2))
        if self.scales is not None:
            X = X * self.scales.astype(np.float32)
        expansion = KernelExpansion(make_kernel(self.kernel, self.width), self.landmarks)
        size = max(64, _BLOCK_ENTRIES // max(1, len(self.landmarks)))
        rows = ArrayRows(as_source(X), block_rows=size, n_jobs=n_jobs)
        both = np.column_stack([self.coefficients, np.ones(len(self.coefficients))])
        return rows.map(block_scores, expansion, both)

    @classmethod
    def mean_of(cls, functions: Sequence[Self]) -> Self:
        """Return one expansion: over the same landmarks their mean, else over all landmarks."""
        first, n = functions[0], len(functions)
        same = all(each.landmarks is first.landmarks for each in functions)
        metric = first.kernel, first.width
        if any(
            each.scales is not first.scales or (each.kernel, each.width) != metric
            for each in functions
        ):
            raise ValueError("kernel functions of different metrics have no common expansion.")
        share = [each.coefficients / n for each in functions]
        least = sum(each.least for each in functions)  # of all landmarks together
        return cls(
            first.kernel,
            first.width,
            first.landmarks if same else np.concatenate([each.landmarks for each in functions]),
            np.sum(share, axis=0) if same else np.concatenate(share),
            first.scales,
            first.least if same else least,
            float(np.mean([each.most for each in functions])),
        )
