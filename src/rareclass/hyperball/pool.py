"""The rows of a table that a ball is fitted to, and a sample of the rest to compare with."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.hyperball.ball_problem import Points
from rareclass.hyperball.ball_solver import one_class_center
from rareclass.hyperball.spaces import InputSpace, block_distances
from rareclass.labels.partial_labels import PartialLabels
from rareclass.rows import ArrayRows, Rows, RowSource

# What a row is to a ball.
RARE, MAJORITY, UNLABELLED = 1, -1, 0


class Pool(NamedTuple):
    """Rare, majority and near unlabelled rows, in increasing order of their numbers: n of them."""

    rows: np.ndarray  # their numbers in the table
    kinds: np.ndarray  # int8: RARE, MAJORITY or UNLABELLED
    weight: np.ndarray
    X: Any  # (n, n_features), dense or CSR
    n_unlabelled: int  # before the filter
    weight_unlabelled: float  # of these, together
    n_near: int  # that the filter kept: more than in `rows` where these are the nearest
    n_majority: int  # labelled rows outside the category, in `rows` or not
    rare_share: float  # of the unlabelled rows, taken to be rare (Algorithm 1)

    def which(self, kind: int) -> np.ndarray:
        """Positions in the pool of the rows of a kind."""
        return np.flatnonzero(self.kinds == kind)


def gather(
    source: RowSource,
    labels: PartialLabels,
    label: Any,
    rare: np.ndarray,
    reach: float | None,
    max_kept: int,
    rare_share: float | None = None,
    n_jobs: int | None = None,
) -> Pool:
    """Filter the unlabelled rows by their distance to the centre of the rare ones (Algorithm 1).

    `rare` are the rows to enclose: all of the category, or one group of them. Labelled rows of
    other categories are majority rows. `reach` is that of `near_rows`; None keeps all, however
    many. Of unlabelled and of majority rows the nearest `max_kept` stay. Without a `rare_share`
    that of the labelled rows is taken.

    Cost: one pass over the unlabelled rows and one over the labelled majority; none without `reach`
    where the majority is small.
    """
    others, unlabelled = labels.labelled_but(label), labels.unlabelled()
    X_rare = source.take(rare)
    space = InputSpace(None if source.is_sparse else X_rare.mean(axis=0, dtype=np.float64))
    center, _ = one_class_center(space.points(X_rare), labels.weight_of(rare))
    n_near = n_unlabelled = len(unlabelled)
    weight_unlabelled = float(labels.weight_of(unlabelled).sum())
    if rare_share is None:
        of_rare = labels.weight_of(rare).sum()
        rare_share = float(of_rare / (of_rare + labels.weight_of(others).sum()))
    kept = others
    if len(others) > max_kept:
        kept = others[_nearest(source, others, space, center, max_kept, n_jobs)]
    if reach is not None and len(unlabelled):
        weight = None if labels.weight is None else labels.weight[unlabelled]
        distances = distances_to(ArrayRows(source, unlabelled, n_jobs=n_jobs), space, center)
        near = near_rows(distances, weight, rare_share, reach)
        n_near = len(near)
        if n_near > max_kept:
            near = near_rows(distances, weight, rare_share, reach, max_kept)
        unlabelled = unlabelled[near]
    rows = np.concatenate([rare, kept, unlabelled])
    kinds = np.repeat(
        np.array([RARE, MAJORITY, UNLABELLED], np.int8), [len(rare), len(kept), len(unlabelled)]
    )
    order = np.argsort(rows, kind="stable")
    rows, kinds = rows[order], kinds[order]
    return Pool(
        rows=rows,
        kinds=kinds,
        weight=labels.weight_of(rows),
        X=source.take(rows),
        n_unlabelled=n_unlabelled,
        weight_unlabelled=weight_unlabelled,
        n_near=n_near,
        n_majority=len(others),
        rare_share=rare_share,
    )


def _nearest(
    source: RowSource,
    rows: np.ndarray,
    space: InputSpace,
    center: np.ndarray,
    n_most: int,
    n_jobs: int | None,
) -> np.ndarray:
    distances = distances_to(ArrayRows(source, rows, n_jobs=n_jobs), space, center)
    return np.sort(np.argpartition(distances, n_most - 1)[:n_most])


# Unlabelled rows farther than this many times the threshold are left out: the paper's.
PAPER_REACH = 3.0


def distances_to(rows: Rows, space: InputSpace, center: np.ndarray) -> np.ndarray:
    """Distance of every row to a centre, in one pass: shape (n_rows,)."""
    return np.sqrt(rows.map(block_distances, space, center))


def near_rows(
    distances: np.ndarray,
    weight: np.ndarray | None,
    rare_share: float,
    reach: float = PAPER_REACH,
    n_most: int | None = None,
) -> np.ndarray:
    """Which unlabelled rows enter the optimisation: increasing row numbers.

    1. D = the distance within which the share p of the unlabelled rows falls;
    2. rows within ``reach`` D stay;
    3. of these the ``n_most`` nearest, where there are more.

    `distances` are those to the centre of the labelled rare rows, p is `rare_share`, in (0, 1]; a
    weight of 0 takes a row out. Cost: O(n), the distances apart. He, Tong, Carbonell, "Rare
    category characterization", ICDM 2010, Algorithm 1.

    >>> near_rows(np.array([1.0, 2.0, 3.5, 9.0]), None, 0.25).tolist()
    [0, 1]
    """
    here = np.arange(len(distances)) if weight is None else np.flatnonzero(weight > 0.0)
    if not len(here):
        return here
    # 1.
    threshold = _quantile(distances[here], None if weight is None else weight[here], rare_share)
    # 2.
    kept = here[distances[here] <= reach * threshold]
    # 3.
    if n_most is not None and len(kept) > n_most:
        nearest = np.argpartition(distances[kept], n_most - 1)[:n_most]
        kept = np.sort(kept[nearest])
    return kept


def _quantile(distances: np.ndarray, weight: np.ndarray | None, share: float) -> float:
    """The smallest distance within which the share of the weight falls."""
    if weight is None:
        rank = min(max(int(np.ceil(share * len(distances) - 1e-9)), 1), len(distances))
        return float(np.partition(distances, rank - 1)[rank - 1])
    order = np.argsort(distances, kind="stable")
    reached = np.cumsum(weight[order])
    k = int(np.searchsorted(reached, share * reached[-1] * (1.0 - 1e-12)))
    return float(distances[order[min(k, len(order) - 1)]])


# Quantiles of a feature and shares are known to about one percent from so many.
MOST_ROWS = 5_000


class Background(NamedTuple):
    """A uniform sample of the unlabelled rows and of those with the majority's label."""

    rows: np.ndarray  # their numbers, increasing
    X: Any  # (n, n_features), dense or CSR
    is_labelled: np.ndarray
    weight: np.ndarray


def draw_background(
    source: RowSource, labels: PartialLabels, rng: np.random.RandomState
) -> Background:
    """Draw at most `MOST_ROWS` of the rows without a rare label."""
    rows = labels.not_rare()
    if len(rows) > MOST_ROWS:
        rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
    is_labelled = labels.code[rows] >= 0
    return Background(rows, source.take(rows), is_labelled, labels.weight_of(rows))


def input_spread(X: Any, weight: np.ndarray) -> float:
    """Root mean squared distance of rows to their mean; 0 without rows."""
    if not X.shape[0]:
        return 0.0
    dense = not sparse.issparse(X)
    origin = X.mean(axis=0, dtype=np.float64) if dense else 0.0
    features = X.astype(np.float64) - origin if dense else X.astype(np.float64)
    return spread_of(Points(features, np.zeros(X.shape[0])), weight)


def spread_of(points: Points, weight: np.ndarray) -> float:
    """Root mean squared distance of points to their mean; 0 without points."""
    if not points.n_rows:
        return 0.0
    mean = points.combine(weight / weight.sum())
    return float(np.sqrt(np.average(points.squared_distances(mean), weights=weight)))
