"""The rows that enter the optimisation of one ball."""

from typing import Any, NamedTuple

import numpy as np

from rareclass.hyperball.near_rows import distances_to, near_rows
from rareclass.hyperball.one_class import one_class_center
from rareclass.hyperball.spaces import InputSpace
from rareclass.labels.partial_labels import PartialLabels
from rareclass.rows import ArrayRows, RowSource

# What a row is to a ball.
RARE, MAJORITY, UNLABELLED = 1, -1, 0


class Pool(NamedTuple):
    """Rare, majority and near unlabelled rows, in increasing order of their numbers.

    Attributes
    ----------
    rows : ndarray of int of shape (n,)
        Their numbers in the table.
    kinds : ndarray of int8 of shape (n,)
        RARE, MAJORITY or UNLABELLED.
    weight : ndarray of shape (n,)
    X : ndarray or CSR of shape (n, n_features)
    n_unlabelled : int
        Unlabelled rows before the filter.
    weight_unlabelled : float
        Of these, together.
    n_near : int
        Those that the filter kept; more than are in ``rows`` where these are the nearest of them.
    n_majority : int
        Labelled rows outside the category, those that are not in ``rows`` included.
    rare_share : float
        Share of the unlabelled rows that is taken to be rare (Algorithm 1).
    """

    rows: np.ndarray
    kinds: np.ndarray
    weight: np.ndarray
    X: Any
    n_unlabelled: int
    weight_unlabelled: float
    n_near: int
    n_majority: int
    rare_share: float

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

    Parameters
    ----------
    source : RowSource
    labels : PartialLabels
    label : label
        The category; labelled rows of other categories are majority rows to it.
    rare : ndarray of int
        The rows to enclose: all rows of the category, or one group of them.
    reach : float or None
        See `near_rows`; None keeps all, however many.
    max_kept : int
        Most unlabelled rows, and most majority rows: the nearest stay.
    rare_share : float or None
        Of the unlabelled rows; None takes that of the labelled ones.
    n_jobs : int or None

    Notes
    -----
    Cost: one pass over the unlabelled rows and one over the labelled majority; none without
    `reach` where the majority is small.
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
