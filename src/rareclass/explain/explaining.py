"""Explanations: how much each column raises the score of a row, for every estimator.

Linear scores and round balls are sums over features. Elsewhere the contribution of a column is the
change of the score as the column becomes typical, computed exactly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.typed_table import TypedTable
from rareclass.ensemble.combined_ranking import CombinedRanking
from rareclass.errors import ErrorKind
from rareclass.estimators.estimator import read_features
from rareclass.estimators.rankings import KernelRanking, LinearRanking
from rareclass.kernels.kernels import FeatureScaled, Gaussian, Laplace, Linear, Polynomial
from rareclass.moments.mibc import MIBC
from rareclass.online.ranker import OnlineRanker
from rareclass.rows import as_source

# Kernel entries held at a time, a few times over.
_ENTRIES = 2**21
# Rows with a replaced column that are scored at a time.
_SCORED_ROWS = 50_000
# Probabilities of classes nearer to 0 or 1 than this have the log-odds of this.
_LEAST_SHARE = 1e-6

Floats = NDArray[np.float64]
OF_NUMBERS = KernelRanking | LinearRanking | MIBC | OnlineRanker
"""Rankings of rows of numbers that are explained."""


@dataclass(frozen=True)
class Explanation:
    """Contributions of columns to the scores of n rows.

    Attributes
    ----------
    score : ndarray of shape (n,)
    contributions : ndarray of shape (n, n_columns)
        By how much each column raises the score of a row, against a typical cell in its place;
        below 0 it lowers it.
    columns : list of str
        Names of features, columns of a table, or groups.
    base : float or None
        Where contributions add up, the score without any of them: ``base + contributions.sum(1)``
        is the score. None where columns work together, so that their effects one at a time do not
        add up to anything.
    """

    score: Floats
    contributions: Floats
    columns: list[str]
    base: float | None = None

    def strongest(self, k: int) -> list[list[str]]:
        """Return the names of the k columns that raise each row's score most, the strongest first.

        Fewer names where fewer columns raise it. Of equal ones the first.

        >>> explanation = Explanation(np.ones(1), np.array([[0.5, -1.0, 2.0]]), ["a", "b", "c"])
        >>> explanation.strongest(3)
        [['c', 'a']]
        """
        found = strongest_of(self.contributions, k)
        return [[self.columns[j] for j in row if j >= 0] for row in found]


def strongest_of(effects: Floats, k: int) -> NDArray[np.intp]:
    """Return positions of the k largest entries above 0 of each row, -1 where there are fewer."""
    found = np.full((len(effects), k), -1, dtype=np.intp)
    order = np.argsort(-effects, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(effects, order, axis=1)
    found[:, : order.shape[1]] = np.where(values > 0.0, order, -1)
    return found


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

    def nearest(self, k: int) -> list[NDArray[np.intp]]:
        """Return the k landmarks that pull each row up most, the strongest first.

        One array a row, with fewer places where fewer landmarks pull it up. ``landmark_rows[each]``
        are their rows in the training data. See `rareclass.explain.nearest_cases` for the rare rows
        that are nearest.
        """
        return [row[row >= 0] for row in strongest_of(self.pulls, k)]


def explain(
    model: Any, X: Any, *, typical: Any = None, groups: Sequence[Any] | None = None
) -> Explanation:
    r"""Explain the score of each row of X by its columns.

    Kernel machines (`RankRC`, `RankSVM`, `OrdinalRankRC`, `StochasticRankRC`): a
    `KernelExplanation`. Its ``pulls`` :math:`\beta_r k(z_r, x)` add up to the score; contributions
    are :math:`f(x) - f(x_{j \to t_j})`, the change as feature j takes its typical value t, which is
    what a reader can imagine: leaving a feature out of the distance would compare the row with one
    that cannot be. They do not add up, as features work together.

    Linear scores (`MIBC` and the online learners): :math:`w_j (x_j - t_j)`, which with the base
    :math:`w \cdot t` add up to the score. `OnlineMixture`: as kernel machines.

    `RareClassifier`: :math:`f(x) - f(x_{c \to t_c})` for a column c of the table, of the whole
    model, with the median for a number, the commonest word for a category, and an empty cell for a
    date or text.

    `RACH` with a round ball of features: :math:`-(x_j - c_j)^2`, which with :math:`R^2` add up to
    the depth.

    Parameters
    ----------
    model : fitted estimator, or a search for one
    X : as for its ``score_samples``
        Few rows: an explanation costs about as much as scoring each row once for each column.
    typical : array-like of shape (n_features,), optional
        A row to compare with, as ``numpy.median(X_train, axis=0)``. By default 0 for every feature,
        the mean of standardised ones; for `MIBC` that still has its moments the majority's mean.
        Not for `RareClassifier`; balls compare with their centre.
    groups : sequence of n_features names, optional
        Features of one name change together, as the indicators of one category. Not for
        `RareClassifier`, whose columns are those of the table.

    Returns
    -------
    Explanation
        Time for kernel machines: O(n n_landmarks n_features).

    Raises
    ------
    TypeError
        For an estimator of another kind.
    ValueError
        On rows that ``score_samples`` refuses, a typical row or groups of another length, and balls
        whose depth is no sum over features.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rareclass import RankRC
    >>> X, y = make_classification(200, weights=[0.9], random_state=0)
    >>> model = RankRC().fit(X, y)
    >>> explanation = explain(model, X[:2])
    >>> bool(abs(explanation.pulls.sum(axis=1) - model.score_samples(X[:2])).max() < 1e-9)
    True
    >>> explanation.strongest(2)[0]  # doctest: +SKIP
    ['x5', 'x12']
    """
    from rareclass.hyperball.rach import BallClassifier

    model = estimator_of(model)
    if isinstance(model, CombinedRanking):
        if typical is not None or groups is not None:
            raise ErrorKind.COMBINATION.error(
                "A RareClassifier knows its columns and their typical cells itself.",
                "Leave out typical and groups.",
            )
        return _by_column(model, model._typed(X), model.score_samples)
    if not isinstance(model, BallClassifier | OF_NUMBERS):
        raise TypeError(
            f"{type(model).__name__} is not explained: pass a kernel machine, MIBC, an online "
            "learner, a RareClassifier or RACH."
        )
    if typical is None and isinstance(model, MIBC) and "moments_" in vars(model):
        typical = model.moments_.mean
    rows = read_rows(model, X, typical, groups)
    if isinstance(model, BallClassifier):
        return explain_ball(model, rows)
    if isinstance(model, KernelRanking):
        return explain_kernel(model, rows)
    if isinstance(model, OnlineRanker) and not model._is_linear:
        scores = model.score_samples(rows.X)
        effects = np.empty((len(rows.X), len(rows.groups)))
        for place, group in enumerate(rows.groups):
            changed = rows.X.copy()
            changed[:, group] = rows.typical[group]
            effects[:, place] = scores - model.score_samples(changed)
        return Explanation(scores, effects, rows.columns)
    parts = (rows.X - rows.typical) * model.coef_
    contributions = np.stack([parts[:, group].sum(axis=1) for group in rows.groups], axis=1)
    base = float(model.coef_ @ rows.typical)
    return Explanation(rows.X @ model.coef_, contributions, rows.columns, base)


def estimator_of(model: Any) -> Any:
    """Return the best estimator of a search, ours or scikit-learn's; others as they are."""
    return vars(model).get("best_estimator_", model)


class ExplainedRows(NamedTuple):
    """Rows of an estimator of numbers, a typical row, and the features of each explained column."""

    X: Floats  # (n, n_features)
    typical: Floats  # (n_features,)
    groups: list[NDArray[np.intp]]  # features of each column that is explained
    columns: list[str]  # their names


def read_rows(model: Any, X: Any, typical: Any, groups: Sequence[Any] | None) -> ExplainedRows:
    """Read rows of X in float64, with a group of features for each distinct entry of `groups`.

    `typical` None is 0 for every feature. Raises `ValueError` on a typical row or groups of another
    length, and as `score_samples` does on X.
    """
    rows = read_numbers(model, X)
    n_features = rows.shape[1]
    middle = np.zeros(n_features) if typical is None else np.asarray(typical, dtype=np.float64)
    if middle.shape != (n_features,) or not np.isfinite(middle).all():
        raise ErrorKind.SHAPE.error(
            f"typical has shape {middle.shape}.",
            f"Pass one finite number for each of {n_features} features.",
        )
    if groups is None:
        of_model = vars(model).get("feature_names_in_")
        groups = [f"x{k}" for k in range(n_features)] if of_model is None else of_model
    named = [str(name) for name in groups]
    if len(named) != n_features:
        raise ErrorKind.SHAPE.error(
            f"groups has {len(named)} entries.", f"Name one for each of {n_features} features."
        )
    names = list(dict.fromkeys(named))
    place = {name: k for k, name in enumerate(names)}
    of_feature = np.array([place[name] for name in named], dtype=np.intp)
    members = [np.flatnonzero(of_feature == k) for k in range(len(names))]
    return ExplainedRows(rows, middle, members, names)


def read_numbers(model: Any, X: Any) -> Floats:
    """Return rows of X in float64, dense; raise what ``score_samples`` raises on them."""
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
        source = read_features(model, X, reset=False)
    else:  # a ranking of a model file, whose encoder gives its rows
        source = as_source(X)
    rows = source.take(slice(0, source.n_rows))
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)


def explain_kernel(model: KernelRanking, rows: ExplainedRows) -> KernelExplanation:
    """Return pulls of all landmarks, and the change of the score as each group becomes typical.

    ``f(x) - f(x with the group's features typical)``, exactly: only the group's part of the
    squared distance, or inner product, is worked out again. O(n n_landmarks n_features) time.
    """
    kernel, Z = plain_kernel(model)
    beta = np.asarray(model.dual_coef_, dtype=np.float64)
    X, typical = rows.X, rows.typical
    if isinstance(kernel, FeatureScaled):
        Z, X, typical = Z * kernel.scales, X * kernel.scales, typical * kernel.scales
        kernel = kernel.kernel
    is_radial = isinstance(kernel, Gaussian | Laplace)
    is_product = isinstance(kernel, Linear | Polynomial)
    pulls, effects = np.empty((len(X), len(beta))), np.empty((len(X), len(rows.groups)))
    size = max(1, _ENTRIES // max(1, len(beta)))
    for part in (slice(first, first + size) for first in range(0, len(X), size)):
        own = X[part]
        between = cdist(own, Z, "sqeuclidean") if is_radial else own @ Z.T
        K = _value(kernel, between) if is_radial or is_product else kernel.block(own, Z)
        scores, pulls[part] = K @ beta, K * beta
        for k, group in enumerate(rows.groups):
            if is_radial:
                moved = cdist(typical[None, group], Z[:, group], "sqeuclidean")
                moved = between - cdist(own[:, group], Z[:, group], "sqeuclidean") + moved
                changed = _value(kernel, np.maximum(moved, 0.0))
            elif is_product:
                changed = _value(kernel, between + (typical[group] - own[:, group]) @ Z[:, group].T)
            else:
                replaced = own.copy()
                replaced[:, group] = typical[group]
                changed = kernel.block(replaced, Z)
            effects[part, k] = scores - changed @ beta
    return KernelExplanation(
        pulls.sum(axis=1),
        effects,
        rows.columns,
        pulls=pulls,
        landmark_rows=vars(model).get("landmark_rows_"),
    )


def plain_kernel(model: KernelRanking) -> tuple[Any, Floats]:
    """Return the kernel, and the landmarks in float64."""
    expansion = model._expansion()
    Z = expansion.landmarks
    Z = Z.toarray() if sparse.issparse(Z) else Z
    return expansion.kernel, np.asarray(Z, dtype=np.float64)


def _value(kernel: Any, between: Floats) -> Floats:
    """Return the kernel from squared distances, or from inner products."""
    if isinstance(kernel, Gaussian):
        return np.exp(-between / kernel.width**2)
    if isinstance(kernel, Laplace):
        return np.exp(-np.sqrt(between) / kernel.width)
    if isinstance(kernel, Polynomial):
        return np.asarray((between / kernel.width**2 + kernel.offset) ** kernel.degree)
    return between


def explain_ball(model: Any, rows: ExplainedRows) -> Explanation:
    """Return ``R^2`` and minus each group's part of the squared distance: they add up to the depth.

    For a round ball in the space of the features: no feature raises a depth, and the row is most
    like the centre in the features nearest to 0. Raises `ValueError` for another ball.
    """
    center, radius = np.asarray(model.center_, dtype=np.float64), float(model.radius_)
    if center.shape != rows.typical.shape:
        raise ErrorKind.UNSUPPORTED.error(
            "A ball in the space of a kernel has no distance by feature.",
            "Fit RACH without a kernel to have one.",
        )
    parts = (rows.X - center) ** 2
    effects = -np.stack([parts[:, group].sum(axis=1) for group in rows.groups], axis=1)
    depth = radius**2 + effects.sum(axis=1)
    if not np.allclose(depth, model.score_samples(rows.X), rtol=1e-6, atol=1e-6 * (1 + radius**2)):
        raise ErrorKind.UNSUPPORTED.error(
            "An ellipsoid has no distance that is a sum over features.",
            "Fit RACH with a round ball to have one.",
        )
    return Explanation(depth, effects, rows.columns, radius**2)


def explain_class(model: CombinedRanking, X: Any) -> Explanation:
    """Return why each row is of its most probable class, of several rare ones.

    Contributions as of `_by_column`, to the log-odds of the class were the row rare,
    ``ln p / (1 - p)`` with ``p = P(k | rare, x)``. Raises `AttributeError` where one class is rare.
    """
    table = model._typed(X)
    likely = model.class_probabilities(table).argmax(axis=1)

    def log_odds(rows: TypedTable) -> Floats:
        _, shares = model.score_and_classes(rows)
        times = rows.n_rows // max(1, len(likely))
        chosen = shares[np.arange(rows.n_rows), np.tile(likely, times)]
        chosen = np.clip(chosen, _LEAST_SHARE, 1.0 - _LEAST_SHARE)
        return np.log(chosen) - np.log1p(-chosen)

    return _by_column(model, table, log_odds)


def _by_column(
    model: CombinedRanking, table: TypedTable, value_of: Callable[[TypedTable], Floats]
) -> Explanation:
    """Return by how much a value of each row falls as each of its columns becomes typical, exactly.

    Typical is the median of a number, the commonest word of a category (or code), and an empty cell
    for dates and texts. Time: a scoring of the rows for each column, a batch of columns at a time.
    """
    value = value_of(table)
    effects = np.empty((table.n_rows, len(table.columns)))
    if table.n_rows:
        at_once = max(1, _SCORED_ROWS // table.n_rows)
        for first in range(0, len(table.columns), at_once):
            chosen = range(first, min(first + at_once, len(table.columns)))
            changed = value_of(_replaced(table, model.statistics_, chosen))
            effects[:, chosen] = value[:, None] - changed.reshape(len(chosen), -1).T
    return Explanation(value, effects, table.names)


def _replaced(table: TypedTable, statistics: TableStatistics, chosen: range) -> TypedTable:
    """Return the table once for each of some columns, with that column typical."""
    n_rows = table.n_rows
    stacked = table.take(np.tile(np.arange(n_rows), len(chosen)))
    columns = list(stacked.columns)
    for k, place in enumerate(chosen):
        column, cell = columns[place], typical_cell(statistics, place)
        levels: Any = column.levels
        if levels is None:
            code: Any = np.nan if cell is None else cell
        else:
            known: Any = np.flatnonzero(levels == cell) if cell is not None else [-1]
            if not len(known):
                known, levels = [len(levels)], np.append(levels, np.array([cell], dtype=object))
            code = known[0]
        values = column.values.copy()
        values[k * n_rows : (k + 1) * n_rows] = code
        columns[place] = replace(column, values=values, levels=levels)
    return replace(stacked, columns=tuple(columns))


def typical_cell(statistics: TableStatistics, place: int) -> float | str | None:
    """Return the usual cell of a column: a number, a word, or None for an empty cell."""
    _, kind = statistics.columns_[place]
    sources = statistics.category_sources_
    if kind == "category":
        category = sources.index(place)
        commonest = int(np.argmax(statistics.level_weights_[category]))
        known = statistics.known_[category]
        return None if commonest >= known.n_known else known.name(commonest)
    if kind == "number":
        number = statistics.number_sources_[: statistics.n_plain_].index(place)
        median = float(statistics.summaries.median[number])
        return median if np.isfinite(median) else None
    return None
