"""A fitted kernel expansion at rows: its values, and the features it is linear in."""

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from rareclass.kernels.expansion import KernelExpansion, block_scores
from rareclass.kernels.kernels import make_kernel
from rareclass.kernels.scaled import FeatureScaled
from rareclass.ranking.preparation import block_rows
from rareclass.rows import ArrayRows, as_source, header


class KernelModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """What every kernel ranking machine shares: landmarks, and functions carried by them.

    Whoever inherits has ``kernel``, ``n_jobs``, ``width_``, ``landmarks_`` and ``whitener_``.
    """

    def transform(self, X: Any) -> np.ndarray:
        """Nyström features of every row: the paper's linearisation, section 5.1.

        Coordinates of the rows in the span of the landmarks, such that a linear model on them
        with a ridge penalty is the kernel model: inner products of features are the kernel
        projected on the landmarks, and the score is ``transform(X) @ w`` for some w.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, rank)
            rank is at most the number of landmarks: duplicates add no direction.

        Notes
        -----
        Cost: O(n_landmarks (n_features + rank)) a row.
        """
        check_is_fitted(self)
        return self._map(X, self.whitener_)

    @property
    def _n_features_out(self) -> int:
        return self.whitener_.shape[1]

    def _expansion(self) -> KernelExpansion:
        kernel = make_kernel(self.kernel, self.width_)
        scales = getattr(self, "feature_scales_", None)
        if scales is not None:
            kernel = FeatureScaled(kernel, scales)
        return KernelExpansion(kernel, self.landmarks_)

    def _map(self, X: Any, coefficients: np.ndarray) -> np.ndarray:
        source = as_source(X, getattr(self, "feature_names_in_", None))
        validate_data(self, header(X), reset=False, skip_check_array=True)
        expansion = self._expansion()
        size = block_rows(expansion.n_landmarks, source.dtype)
        rows = ArrayRows(source, block_rows=size, n_jobs=self.n_jobs)
        return rows.map(block_scores, expansion, coefficients)
