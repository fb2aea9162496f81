"""The rare cases that a row is nearest to, as the model sees them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from rareclass.ensemble.rare_classifier import RareClassifier
from rareclass.estimators.estimator import read_features
from rareclass.explain.explaining import estimator_of, plain_kernel
from rareclass.explain.explanation import Floats, strongest_of
from rareclass.moments.mibc import MIBC
from rareclass.online.ranker import OnlineRanker
from rareclass.parameters import check_whole
from rareclass.ranking.machine import KernelModel

# Distances held at a time.
_ENTRIES = 2**21


@dataclass(frozen=True)
class NearestCases:
    """The k nearest of some cases to each of n rows, the nearest first.

    Attributes
    ----------
    places : ndarray of int of shape (n, k)
        Numbers of cases; -1 where there are fewer. Of equally near ones the first.
    distances : ndarray of shape (n, k)
        NaN where there are fewer.
    """

    places: NDArray[np.intp]
    distances: Floats


def nearest_cases(model: Any, X: Any, cases: Any, k: int = 3) -> NearestCases:
    r"""Find the k cases that each row of X is nearest to, in the features that the model uses.

    - `RareClassifier`: over the columns, half of the weight shared alike and half by what the
      ranking loses without a column: the difference of the ranks of two numbers among those of
      training, 0 or 1 as two words are equal or not, and the like for dates and texts. From 0 to 1.
    - Linear scores (`MIBC` and the online learners): :math:`\sum_j |w_j| |x_j - z_j|`. The scores
      of x and z differ by no more.
    - Kernel machines: the distance in the space of the kernel,
      :math:`\sqrt{k(x, x) - 2 k(x, z) + k(z, z)}`. See
      `rareclass.explain.KernelExplanation.pulls` for the part of each rare row in a score: pulls
      of rows near each other nearly cancel, so that the largest need not be those of the nearest.

    Parameters
    ----------
    model : fitted estimator, or a search for one
    X : as for its ``score_samples``
    cases : as X
        Rows to compare with, such as the rare ones of training.
    k : int, default=3

    Returns
    -------
    NearestCases
        Time: O(n n_cases n_features). Memory: some millions of numbers beside rows and cases.

    Raises
    ------
    TypeError
        For an estimator of another kind.
    ValueError
        On rows or cases that ``score_samples`` refuses, and a k below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from rareclass import MIBC
    >>> X, y = np.array([[0.0, 0], [1, 0], [0, 1], [4, 4], [9, 1]]), [0, 0, 0, 1, 1]
    >>> model = MIBC(covariance="diagonal").fit(X, y)
    >>> nearest_cases(model, [[5, 4], [8, 1]], X[3:], k=1).places
    array([[0],
           [1]])
    """
    check_whole("k", k, "the number of cases to name", 1)
    model = estimator_of(model)
    return nearest_of(model, case_features(model, X), case_features(model, cases), int(k))


def case_features(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Return the arrays of n_rows rows that rows are compared by, as a model file keeps them.

    Raises `TypeError` and `ValueError` as `nearest_cases`.
    """
    if isinstance(model, RareClassifier):
        from rareclass.explain.tables import parts_of

        check_is_fitted(model)
        return parts_of(model, X)
    if not isinstance(model, KernelModel | MIBC | OnlineRanker):
        raise TypeError(
            f"{type(model).__name__} compares no cases: pass a kernel machine, MIBC, an online "
            "learner or a RareClassifier."
        )
    check_is_fitted(model)
    source = read_features(model, X, reset=False)
    rows = source.take(slice(0, source.n_rows))
    dense = rows.toarray() if sparse.issparse(rows) else rows
    return {"features": np.asarray(dense, dtype=np.float64)}


def nearest_of(
    model: Any, rows: dict[str, np.ndarray], cases: dict[str, np.ndarray], k: int
) -> NearestCases:
    """Find `nearest_cases` of rows and cases as `case_features` gives them."""
    n_rows, n_cases = (len(next(iter(each.values()))) for each in (rows, cases))
    places = np.full((n_rows, k), -1, dtype=np.intp)
    distances = np.full((n_rows, k), np.nan)
    size = max(1, _ENTRIES // max(1, n_cases))
    for first in range(0, n_rows if n_cases else 0, size):
        part = {name: values[first : first + size] for name, values in rows.items()}
        apart = _distances(model, part, cases)
        # Strictly above 0, and the larger the nearer.
        found = strongest_of(1.0 + apart.max(initial=0.0) - apart, k)
        places[first : first + size] = found
        near = np.take_along_axis(apart, np.maximum(found, 0), axis=1)
        distances[first : first + size] = np.where(found >= 0, near, np.nan)
    return NearestCases(places, distances)


def _distances(model: Any, rows: dict[str, np.ndarray], cases: dict[str, np.ndarray]) -> Floats:
    if isinstance(model, RareClassifier):
        from rareclass.explain.tables import table_distances

        return table_distances(model, rows, cases)
    X, Z = rows["features"], cases["features"]
    if isinstance(model, KernelModel):
        kernel, _ = plain_kernel(model)
        between = kernel.block(X, Z)
        squared = kernel.diag(X)[:, None] - 2.0 * between + kernel.diag(Z)
        apart: Floats = np.sqrt(np.maximum(squared, 0.0))
        return apart
    weight = np.abs(np.asarray(model.coef_, dtype=np.float64).ravel())
    return cdist(X * weight, Z * weight, "cityblock")
