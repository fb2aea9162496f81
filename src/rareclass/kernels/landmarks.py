"""Landmarks: the rows whose kernel functions carry the expansion f(x) = sum_r b_r k(x_r, x)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.errors import ErrorKind
from rareclass.kernels.kernels import Kernel, Matrix
from rareclass.labels.two_classes import Labels
from rareclass.machine import size_text
from rareclass.parameters import is_whole
from rareclass.rows import RowSource, as_source
from rareclass.rows.source import canonical, equal_rows, order_of_values

# A residual is a difference of k(x, x) and a sum of squares, each with errors of the kernel's.
_SAFETY = 8.0


def pivoted_cholesky(kernel: Kernel, X: Matrix, n_most: int) -> np.ndarray:
    r"""Pivots of the partial Cholesky factorisation of the kernel matrix of some rows.

    The residual of row i is the squared distance, in the kernel's feature space, from the row to
    the span of the rows picked so far: :math:`d_i = k(x_i, x_i) - \|\ell_i\|^2`, where
    :math:`\ell_i` is its row of the factor. Each step picks the row with the largest:

    1. pivot p = the largest d;
    2. new column of the factor: :math:`(k(X, x_p) - L \ell_p) / \sqrt{d_p}`;
    3. subtract its square from d.

    Row numbers come in the order in which they were picked, the first among equal residuals. There
    are fewer than `n_most` when they span all the others to rounding error (Fine, Scheinberg, JMLR
    2, 2001). n n_most kernel entries, O(n n_most^2) time, 8 n n_most bytes.
    """
    residual = np.array(kernel.diag(X), dtype=np.float64)
    eps = np.finfo(kernel.block(X[:1], X[:1]).dtype).eps
    noise = float(_SAFETY * np.sqrt(n_most) * eps * residual.max(initial=0.0))
    factor = np.empty((len(residual), min(n_most, len(residual))))
    pivots: list[int] = []
    for k in range(factor.shape[1]):
        # 1.
        p = int(residual.argmax())
        if residual[p] <= noise:
            break
        pivots.append(p)
        # 2.
        column = kernel.block(X, X[p : p + 1])[:, 0].astype(np.float64)
        column = (column - factor[:, :k] @ factor[p, :k]) / np.sqrt(residual[p])
        factor[:, k] = column
        # 3.
        residual -= column**2
        residual[pivots] = 0.0
    return np.array(pivots, dtype=int)


_COUNTED = ("rare", "rare+majority")
_SELECTIONS = ("kmeans++", "pivoted_cholesky")
# k-means++ looks at all rows for each one that it takes: of more than so many for each some are
# drawn, which spread out as well.
_ROWS_A_CENTRE = 10


class Landmarks(NamedTuple):
    """Distinct points, and the training rows that sit on them.

    Equal rows have one kernel function between them, so they are one landmark. Points are in
    an order of their own values: it does not depend on the order of the rows or on copies.
    """

    points: Matrix  # shape (n_landmarks, n_features)
    rows: np.ndarray | None  # the chosen training rows; None when the points are not training rows
    point_of: np.ndarray  # for each candidate, its point
    first_rows: np.ndarray | None  # for each point, the first of `rows` on it

    def usable(self, held_out: np.ndarray) -> np.ndarray:
        """Mask of the points that still have a row that is not held out: shape (n_landmarks,)."""
        n_points = self.points.shape[0]
        if self.rows is None:
            return np.ones(n_points, dtype=bool)
        return np.bincount(self.point_of, ~held_out[self.rows], minlength=n_points) > 0


def distinct_landmarks(candidates: Matrix, rows: np.ndarray | None) -> Landmarks:
    """Merge equal candidates, which are the training `rows` if any: O(n log n) comparisons."""
    candidates = canonical(candidates)
    first, group = equal_rows(candidates)
    order = order_of_values(candidates[first])
    first = first[order]
    return Landmarks(
        candidates[first], rows, np.argsort(order)[group], None if rows is None else rows[first]
    )


def choose_landmarks(
    rule: Any,
    kernel: Kernel,
    source: RowSource,
    labels: Labels,
    memory: int,
    rng: np.random.RandomState,
) -> Landmarks:
    """Landmarks that the `landmarks` parameter of an estimator names; see `RankRC`.

    "rare" is the paper's (7), "all" (6), ("rare+majority", k) Corollary 4 of the bounds paper, and
    "random" RANK-RND. `rng` draws; `memory` limits the bytes of the factor of pivoted Cholesky.

    Raises `ValueError` when the rule names nothing, or rows that are not there, or points with
    other columns than the rows.
    """
    if sparse.issparse(rule) or (not isinstance(rule, (str, tuple)) and np.ndim(rule) == 2):
        points = as_source(rule)
        if points.n_features != source.n_features:
            raise ErrorKind.SHAPE.error(
                f"landmarks has {points.n_features} columns, X has {source.n_features}."
            )
        return distinct_landmarks(points.take(slice(None)), None)
    if isinstance(rule, str) and rule == "rare":
        chosen = labels.rare
    elif isinstance(rule, tuple):
        chosen = _counted(rule, kernel, source, labels, memory, rng)
    else:
        chosen = _chosen_rows(rule, labels, rng)
    return distinct_landmarks(source.take(chosen), chosen)


def _chosen_rows(rule: Any, labels: Labels, rng: np.random.RandomState) -> np.ndarray:
    """Numbers of the rows that a rule without a count names, increasing; see `choose_landmarks`."""
    if isinstance(rule, str):
        if rule == "all":
            return labels.kept
        if rule == "random":
            return np.sort(rng.choice(labels.kept, size=len(labels.rare), replace=False))
    elif isinstance(rule, (int, np.integer)) and not isinstance(rule, bool):
        if rule < 1:
            raise ErrorKind.SETTING.error(f"landmarks={rule} must be at least 1.")
        kept = labels.kept
        return np.sort(rng.choice(kept, size=min(int(rule), len(kept)), replace=False))
    elif np.ndim(rule) == 1 and len(rule):
        chosen = np.unique(rule)
        if chosen.dtype.kind not in "iu":
            raise ErrorKind.SETTING.error(f"landmarks holds {chosen.dtype}, not row numbers.")
        missing = np.setdiff1d(chosen, labels.kept)
        if len(missing):
            raise ErrorKind.SETTING.error(
                f"landmarks names row {missing[0]}, which is not a training row of weight > 0."
            )
        return chosen
    raise ErrorKind.SETTING.error(
        f"landmarks={rule!r} is not 'rare', 'all', 'random', ('rare', k), "
        "('rare+majority', k), a number, an array of row numbers, or a matrix of points."
    )


def _counted(
    rule: tuple,
    kernel: Kernel,
    source: RowSource,
    labels: Labels,
    memory: int,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Rows of ("rare", k), ("rare", k, selection) or ("rare+majority", k), increasing."""
    name, k, selection = (*rule, "kmeans++", None, None)[:3]
    if (
        len(rule) > (3 if name == "rare" else 2)
        or name not in _COUNTED
        or selection not in _SELECTIONS
        or not is_whole(k)
    ):
        raise ErrorKind.SETTING.error(
            f"landmarks={rule!r} is not ('rare', k), ('rare', k, 'pivoted_cholesky') or "
            "('rare+majority', k) with k a whole number of at least 1."
        )
    k, rare = int(k), labels.rare
    if selection == "pivoted_cholesky" and 8 * len(rare) * k > memory:
        raise ErrorKind.MEMORY.error(
            f"landmarks={rule!r}: the factor of {len(rare):,} rare rows takes "
            f"{size_text(8 * len(rare) * k)}, memory= allows {size_text(memory)}. Allow more, or "
            f"pass ('rare', {k}), which picks by k-means++."
        )
    if name == "rare+majority":
        majority = np.setdiff1d(labels.kept, rare, assume_unique=True)
        drawn = rng.choice(majority, size=min(k, len(majority)), replace=False)
        return np.sort(np.concatenate([rare, drawn]))
    if len(rare) <= k:
        return rare
    if selection == "pivoted_cholesky":
        return rare[np.sort(pivoted_cholesky(kernel, source.take(rare), k))]
    return spread_out(rare, source.take, k, rng)


def spread_out(
    rows: np.ndarray, take: Callable[[np.ndarray], Matrix], k: int, rng: np.random.RandomState
) -> np.ndarray:
    """At most k of these row numbers, far apart by k-means++, increasing; `take` gives the rows.

    Where there are more than 10 k, k-means++ picks among 10 k of them that are drawn.
    """
    from sklearn.cluster import kmeans_plusplus

    if len(rows) > _ROWS_A_CENTRE * k:
        rows = np.sort(rng.choice(rows, size=_ROWS_A_CENTRE * k, replace=False))
    points = take(rows).astype(np.float64, copy=False)  # float32 is cast for each centre
    return rows[np.unique(kmeans_plusplus(points, k, random_state=rng)[1])]
