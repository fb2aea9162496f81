"""f(x) = sum_r b_r k(z_r, x)."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from rareclass.kernels.expansion import KernelExpansion, block_scores
from rareclass.kernels.kernels import make_kernel
from rareclass.rows import ArrayRows, as_source

# Rows a block: its kernel stays in cache.
_BLOCK_ENTRIES = 2**19


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
        What such a row scores at most: far from everything a kernel score falls to zero, which
        may be above the majority's.
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
        """f of every row, of shape (n_rows,): O(n_landmarks n_features) a row."""
        scores, similarity = self.with_similarity(X, n_jobs).T
        far = similarity < self.least
        return np.where(far, np.minimum(scores, self.most), scores)

    def with_similarity(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """The plain expansion and the sum of similarities of every row: shape (n_rows, 2)."""
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
        """One expansion: over the same landmarks their mean, else over all landmarks."""
        first = functions[0]
        n = len(functions)
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
