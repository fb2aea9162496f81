"""Rankings of rows of numbers as a model file holds them: arrays alone, without scikit-learn.

`KernelRanking` is what of a kernel machine scores rows; kernel machines inherit their scoring from
it. `LinearRanking` is what of a linear one does. Both are to one estimator what `CombinedRanking`
is to a `RareClassifier`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rareclass.kernels.expansion import KernelExpansion, block_rows, block_scores
from rareclass.kernels.kernels import FeatureScaled, make_kernel
from rareclass.rows import Block, RowSource, as_source, rows_of
from rareclass.rows.source import with_safe_squares
from rareclass.stored import KeptPart


class KernelRanking(KeptPart):
    r"""The score :math:`f(x) = \sum_r \beta_r k(z_r, x)` of an expansion over landmarks.

    Attributes are as in `RankRC`.
    """

    kernel: Any
    width_: float
    landmarks_: Any  # z: ndarray or CSR of shape (n_landmarks, n_features)
    landmark_rows_: np.ndarray | None  # a training row for each
    dual_coef_: np.ndarray  # beta, shape (n_landmarks,)
    feature_scales_: np.ndarray | None = None  # shape (n_features,), within the kernel
    n_jobs: int | None

    def score_samples(self, X: Any) -> np.ndarray:
        """Return f(x) of every row, of shape (n_rows,): O(n_landmarks n_features) a row."""
        return self._map(X, self.dual_coef_)

    def check_parts(self) -> None:
        """Raise `ValueError` where the parts of the expansion are not of one size."""
        n_landmarks, n_features = self.landmarks_.shape
        if self.dual_coef_.shape != (n_landmarks,) or self.dual_coef_.dtype.kind != "f":
            raise ValueError(
                f"dual_coef_ does not have a number for each of {n_landmarks} landmarks"
            )
        if self.feature_scales_ is not None and self.feature_scales_.shape != (n_features,):
            raise ValueError(f"feature_scales_ has not a number for each of {n_features} features")
        if not self.width_ > 0:
            raise ValueError("width_ is not above 0")

    def _expansion(self) -> KernelExpansion:
        """Return the operator on blocks of rows."""
        kernel = make_kernel(self.kernel, self.width_)
        if self.feature_scales_ is not None:
            kernel = FeatureScaled(kernel, self.feature_scales_)
        return KernelExpansion(kernel, self.landmarks_)

    def _source(self, X: Any) -> RowSource:
        return with_safe_squares(as_source(X))

    def _map(self, X: Any, coefficients: np.ndarray) -> np.ndarray:
        source, expansion = self._source(X), self._expansion()
        size = block_rows(expansion.n_landmarks, source.dtype)
        rows = rows_of(source, block_rows=size, n_jobs=self.n_jobs)
        return rows.map(block_scores, expansion, coefficients)


@dataclass(eq=False)
class LinearRanking:
    r"""The score :math:`f(x) = w \cdot x`.

    Examples
    --------
    >>> LinearRanking(np.array([1.0, -1.0])).score_samples(np.array([[2.0, 0.5]]))
    array([1.5])
    """

    coef_: np.ndarray  # w, shape (n_features,)

    def check_parts(self) -> None:
        """Raise `ValueError` where the weights are no list of numbers."""
        if self.coef_.ndim != 1 or self.coef_.dtype.kind != "f":
            raise ValueError("coef_ is not a list of numbers")

    def score_samples(self, X: Any) -> np.ndarray:
        """Return f(x) of every row, of shape (n_rows,): one product."""
        return rows_of(as_source(X)).map(linear_scores, self.coef_)


def linear_scores(block: Block, coef: np.ndarray) -> np.ndarray:
    """Return X w of a block; one column a column of `coef`."""
    return np.asarray(block.X @ coef, dtype=np.float64)
