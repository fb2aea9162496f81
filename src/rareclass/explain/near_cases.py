"""The rare cases that a row is nearest to, as the model sees them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from rareclass.encoding.table_statistics import TableStatistics
from rareclass.ensemble.combined_ranking import CombinedRanking
from rareclass.estimators.rankings import KernelRanking
from rareclass.explain.explaining import (
    OF_NUMBERS,
    Floats,
    estimator_of,
    plain_kernel,
    read_numbers,
    strongest_of,
)
from rareclass.parameters import check_whole

# Distances held at a time.
_ENTRIES = 2**21

Parts = dict[str, np.ndarray]


@dataclass(frozen=True)
class NearestCases:
    """The k nearest of some cases to each of n rows, the nearest first; all where there are fewer.

    Attributes
    ----------
    places : ndarray of int of shape (n, min(k, n_cases))
        Numbers of cases. Of equally near ones the first.
    distances : ndarray of shape (n, min(k, n_cases))
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


def case_features(model: Any, X: Any) -> Parts:
    """Return the arrays of n_rows rows that rows are compared by, as a model file keeps them.

    Raises `TypeError` and `ValueError` as `nearest_cases`.
    """
    if isinstance(model, CombinedRanking):
        return parts_of(model, X)
    if not isinstance(model, OF_NUMBERS):
        raise TypeError(
            f"{type(model).__name__} compares no cases: pass a kernel machine, MIBC, an online "
            "learner or a RareClassifier."
        )
    return {"features": read_numbers(model, X)}


def nearest_of(model: Any, rows: Parts, cases: Parts, k: int) -> NearestCases:
    """Find `nearest_cases` of rows and cases as `case_features` gives them."""
    n_rows, n_cases = (len(next(iter(each.values()))) for each in (rows, cases))
    k = min(k, n_cases)
    places = np.empty((n_rows, k), dtype=np.intp)
    distances = np.empty((n_rows, k))
    size = max(1, _ENTRIES // max(1, n_cases))
    for first in range(0, n_rows if n_cases else 0, size):
        part = {name: values[first : first + size] for name, values in rows.items()}
        apart = _distances(model, part, cases)
        # Strictly above 0, and the larger the nearer.
        found = strongest_of(1.0 + apart.max(initial=0.0) - apart, k)
        places[first : first + size] = found
        distances[first : first + size] = np.take_along_axis(apart, found, axis=1)
    return NearestCases(places, distances)


def _distances(model: Any, rows: Parts, cases: Parts) -> Floats:
    if isinstance(model, CombinedRanking):
        return table_distances(model, rows, cases)
    X, Z = rows["features"], cases["features"]
    if isinstance(model, KernelRanking):
        kernel, _ = plain_kernel(model)
        between = kernel.block(X, Z)
        squared = kernel.diag(X)[:, None] - 2.0 * between + kernel.diag(Z)
        return np.sqrt(np.maximum(squared, 0.0))
    weight = np.abs(np.asarray(model.coef_, dtype=np.float64).ravel())
    return cdist(X * weight, Z * weight, "cityblock")


def parts_of(model: CombinedRanking, X: Any) -> Parts:
    """Return the arrays of n_rows rows that rows are compared by.

    ``ranks``: of numbers among those of training, from 0 to 1, NaN where missing; ``cycles``: sines
    and cosines of dates; ``levels``: of words and codes; ``texts``: their components.
    """
    table = model.statistics_.encode(model._typed(X))
    return {
        "ranks": _ranks(model.statistics_, table.numbers),
        "cycles": table.cycles,
        "levels": np.stack([np.empty(table.n_rows, np.int32), *table.levels], axis=1)[:, 1:],
        "texts": table.texts,
    }


def table_distances(model: CombinedRanking, rows: Parts, cases: Parts) -> Floats:
    r"""Return distances between rows and cases, from 0 to 1: shape (n_rows, n_cases).

    .. math:: d(x, z) = \sum_c \frac{1}{2} \Bigl( \frac{1}{p} + \frac{l_c}{\sum l} \Bigr) d_c(x, z)

    over p columns: half of the weight is shared alike, half by :math:`l_c`, what the ranking of
    held-out rows loses without the column (`RareClassifier.feature_importances_`). Of a column that
    is several features :math:`d_c` is their mean: the difference of two numbers' ranks, 0 or 1 as
    words or codes are equal or not, half the difference of sines and cosines, and half of one less
    the cosine of two texts. One cell missing is 1, both is 0 (Gower 1971, with weights).

    Time: O(n_rows n_cases n_features).
    """
    known = model.statistics_
    total = np.zeros((len(rows["ranks"]), len(cases["ranks"])))
    weight = _column_weights(model)
    for sources, features in _features(known):
        share = weight[sources] / len(features)
        for part, k in features:
            total += share * _PARTS[part](rows[part][:, k], cases[part][:, k])
    for source in dict.fromkeys(known.text_sources_):
        chosen = np.flatnonzero(np.array(known.text_sources_) == source)
        total += weight[source] * _apart(rows["texts"][:, chosen], cases["texts"][:, chosen])
    return total


def _features(known: TableStatistics) -> list[tuple[int, list[tuple[str, int]]]]:
    """Return the features of each column of the table that has some, texts aside."""
    found: dict[int, list[tuple[str, int]]] = {}
    sources = known.number_sources_, known.cycle_sources_, known.category_sources_
    for part, of_part in zip(_PARTS, sources, strict=True):
        for k, source in enumerate(of_part):
            found.setdefault(source, []).append((part, k))
    return list(found.items())


def _column_weights(model: CombinedRanking) -> Floats:
    used = [k for k, column in enumerate(model.columns_) if column.is_used]
    losses = np.maximum(np.nan_to_num(model.feature_importances_[used]), 0.0)
    alike = np.full(len(used), 1.0 / len(used))
    return 0.5 * (alike + losses / losses.sum()) if losses.sum() > 0.0 else alike


def _ranks(known: TableStatistics, numbers: Floats) -> Floats:
    """Return the share of training below each number and half of those equal; NaN if missing."""
    found = known.summaries
    ranks = np.empty(numbers.shape)
    for k, (begin, end) in enumerate(zip(found.starts[:-1], found.starts[1:], strict=True)):
        ranks[:, k] = np.interp(numbers[:, k], found.knots[begin:end], found.ranks[begin:end])
    return np.where(np.isnan(numbers), np.nan, ranks)


def _difference(rows: np.ndarray, cases: np.ndarray) -> Floats:
    """Return absolute differences; 1 where one is missing, 0 where both are."""
    apart = np.abs(rows[:, None] - cases)
    missing, of_case = np.isnan(rows)[:, None], np.isnan(cases)
    if missing.any() or of_case.any():
        apart = np.where(missing | of_case, (missing != of_case).astype(np.float64), apart)
    return apart


_PARTS = {
    "ranks": _difference,
    "cycles": lambda rows, cases: _difference(rows / 2.0, cases / 2.0),
    "levels": lambda rows, cases: rows[:, None] != cases,
}


def _apart(rows: Floats, cases: Floats) -> Floats:
    """Return half of 1 - cosine; 1/2 for one text without known words, 0 for two of them."""
    lengths, of_cases = (np.linalg.norm(each, axis=1) for each in (rows, cases))
    inner = rows @ cases.T / np.maximum(np.outer(lengths, of_cases), np.finfo(np.float64).tiny)
    both_empty = (lengths == 0.0)[:, None] & (of_cases == 0.0)
    return np.where(both_empty, 0.0, np.clip(0.5 - 0.5 * inner, 0.0, 1.0))
