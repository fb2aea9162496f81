"""Kernel machines: the landmarks that pull a score up or down, and the features that do."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from rareclass.explain.explanation import Explanation, Floats, strongest_of
from rareclass.explain.features import Features
from rareclass.kernels.kernels import FeatureScaled, Gaussian, Laplace, Linear, Polynomial
from rareclass.ranking.machine import KernelModel

# Kernel entries held at a time, a few times over.
_ENTRIES = 2**21


@dataclass(frozen=True)
class KernelExplanation(Explanation):
    r"""The score of a kernel machine as the sum that it is.

    Attributes
    ----------
    pulls : ndarray of shape (n, n_landmarks)
        :math:`\beta_r k(z_r, x_i)`: their sum over r is the score. Landmarks with a positive
        coefficient, mostly rare rows, pull up; the others pull down.
    landmark_rows : ndarray of shape (n_landmarks,) or None
        The training row that each landmark is; None where landmarks are no rows.
    """

    pulls: Floats = field(kw_only=True)
    landmark_rows: NDArray[np.intp] | None = None

    def nearest(self, k: int) -> NDArray[np.intp]:
        """The k landmarks that pull each row up most, the strongest first: (n, k), -1 for none.

        The rare rows that are nearest are `rareclass.explain.nearest_cases`'s.

        ``landmark_rows[nearest]`` are their rows in the training data.
        """
        return strongest_of(self.pulls, k)


def explain_kernel(model: KernelModel, rows: Features) -> KernelExplanation:
    """Pulls of all landmarks, and the change of the score as each group becomes typical.

    ``f(x) - f(x with the group's features typical)``, exactly: only the group's part of the
    squared distance, or inner product, is worked out again. O(n n_landmarks n_features) time.
    """
    kernel, Z = plain_kernel(model)
    beta = np.asarray(model.coef_, dtype=np.float64)
    X, typical = rows.X, rows.typical
    if isinstance(kernel, FeatureScaled):
        Z, X, typical = Z * kernel.scales, X * kernel.scales, typical * kernel.scales
        kernel = kernel.kernel
    size = max(1, _ENTRIES // max(1, len(beta)))
    parts = [
        _explained(kernel, X[first : first + size], Z, beta, typical, rows.groups)
        for first in range(0, len(X), size)
    ]
    pulls = np.concatenate([np.empty((0, len(beta))), *(part[0] for part in parts)])
    effects = np.concatenate([np.empty((0, len(rows.groups))), *(part[1] for part in parts)])
    return KernelExplanation(
        pulls.sum(axis=1),
        effects,
        rows.columns,
        pulls=pulls,
        landmark_rows=getattr(model, "landmark_rows_", None),
    )


def plain_kernel(model: KernelModel) -> tuple[Any, Floats]:
    """The kernel, and the landmarks in float64."""
    expansion = model._expansion()
    Z = expansion.landmarks
    Z = Z.toarray() if hasattr(Z, "toarray") else Z
    return expansion.kernel, np.asarray(Z, dtype=np.float64)


def _explained(
    kernel: Any,
    X: Floats,
    Z: Floats,
    beta: Floats,
    typical: Floats,
    groups: list[NDArray[np.intp]],
) -> tuple[Floats, Floats]:
    """Pulls (n, n_landmarks) and effects (n, n_groups) of some rows."""
    is_radial = isinstance(kernel, Gaussian | Laplace)
    is_product = isinstance(kernel, Linear | Polynomial)
    between = cdist(X, Z, "sqeuclidean") if is_radial else X @ Z.T
    K = _value(kernel, between) if is_radial or is_product else kernel.block(X, Z)
    scores, effects = K @ beta, np.empty((len(X), len(groups)))
    for k, group in enumerate(groups):
        if is_radial:
            moved = cdist(typical[None, group], Z[:, group], "sqeuclidean")
            moved = between - cdist(X[:, group], Z[:, group], "sqeuclidean") + moved
            changed = _value(kernel, np.maximum(moved, 0.0))
        elif is_product:
            changed = _value(kernel, between + (typical[group] - X[:, group]) @ Z[:, group].T)
        else:
            replaced = X.copy()
            replaced[:, group] = typical[group]
            changed = kernel.block(replaced, Z)
        effects[:, k] = scores - changed @ beta
    return K * beta, effects


def _value(kernel: Any, between: Floats) -> Floats:
    """The kernel from squared distances, or from inner products."""
    if isinstance(kernel, Gaussian):
        return np.exp(-between / kernel.width**2)
    if isinstance(kernel, Laplace):
        return np.exp(-np.sqrt(between) / kernel.width)
    if isinstance(kernel, Polynomial):
        value: Floats = (between / kernel.width**2 + kernel.offset) ** kernel.degree
        return value
    return between
