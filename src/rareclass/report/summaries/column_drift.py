"""How far the cells of a column have moved since training: the population stability index."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
MOVED, MOVED_FAR = 0.1, 0.25
"""Indices that practice reads as "moved somewhat" and "moved far" (Siddiqi 2006, ch. 6)."""


@dataclass(frozen=True)
class ColumnDrift:
    """A column of new rows beside the same of training.

    Attributes
    ----------
    name, kind : str
    treatment : str
        What the model does with it.
    missing_before, missing_now : float or None
        Share of empty cells.
    n_distinct : int or None
        Of training.
    outside : float
        Share of the new cells beyond the range of training, or of words that it did not have.
    stability_index : float or None
        ``sum_b (q_b - p_b) log(q_b / p_b)`` over tenths of the training values (or words), with p
        their shares in training and q in the new rows; None where the model file does not know
        how the training values lay.
    importance : float or None
    """

    name: str
    kind: str
    treatment: str = ""
    missing_before: float | None = None
    missing_now: float | None = None
    n_distinct: int | None = None
    outside: float = 0.0
    stability_index: float | None = None
    importance: float | None = None

    @property
    def verdict(self) -> str:
        """In a word, as `MOVED` and `MOVED_FAR` have it."""
        if self.stability_index is None:
            return ""
        if self.stability_index < MOVED:
            return "steady"
        return "moved" if self.stability_index < MOVED_FAR else "moved far"


def stability_index(before: ArrayLike, now: ArrayLike, n_now: float) -> float:
    r"""Population stability index of two rows of shares.

    .. math:: \mathrm{PSI} = \sum_b (q_b - p_b) \log(q_b / p_b)

    An empty bin counts as half a row of the new ones, so that the index stays finite.

    >>> stability_index([0.5, 0.5], [0.5, 0.5], 100)
    0.0
    >>> round(stability_index([0.5, 0.5], [0.9, 0.1], 100), 3)
    0.879
    """
    least = 0.5 / max(n_now, 1.0)
    p = np.maximum(np.asarray(before, float), least)
    q = np.maximum(np.asarray(now, float), least)
    return float(np.sum((q / q.sum() - p / p.sum()) * np.log((q / q.sum()) / (p / p.sum()))))


def tenths(knots: Floats, ranks: Floats, n_bins: int = 10) -> tuple[Floats, Floats]:
    """Inner edges of about equal shares of a training column, and the share of each bin.

    `knots` are values in increasing order, `ranks` the share of the rows below each plus half of
    those equal to it. Edges lie midway between knots; a value that many rows have makes for fewer
    bins, and is in one of them as a whole.

    >>> edges, shares = tenths(np.array([0.0, 1.0]), np.array([0.45, 0.95]))
    >>> edges.tolist(), shares.round(6).tolist()
    ([0.5], [0.9, 0.1])
    """
    if len(knots) < 2:
        return np.empty(0), np.ones(1)
    below = _shares_below(ranks)
    middles = (knots[1:] + knots[:-1]) / 2.0
    wanted = np.arange(1, n_bins) / n_bins
    places = np.unique(np.abs(below[:, None] - wanted).argmin(axis=0))
    edges, shares = middles[places], below[places]
    return edges, np.diff(np.concatenate([[0.0], shares, [1.0]]))


def _shares_below(ranks: Floats) -> Floats:
    """Share of the rows up to each knot but the last."""
    # Where every distinct value is a knot: twice the rank, less the share below the knot.
    signs = np.where(np.arange(len(ranks)) % 2, -1.0, 1.0)
    exact = signs * np.cumsum(2.0 * signs * ranks)
    if abs(exact[-1] - 1.0) < 1e-9 and (np.diff(np.append(0.0, exact)) > -1e-12).all():
        return exact[:-1]
    # A knot that many rows have is far in rank from both neighbours: by half of its share.
    gaps = np.diff(np.concatenate([[0.0], ranks, [1.0]]))
    half = np.minimum(gaps[:-1], gaps[1:])
    to_next = half[:-1] / np.maximum(half[:-1] + half[1:], 1e-300)
    return ranks[:-1] + np.diff(ranks) * to_next


def worst_first(columns: Sequence[ColumnDrift]) -> list[ColumnDrift]:
    """By index, then by the share outside of training; those not known last."""
    return sorted(
        columns,
        key=lambda each: (
            -1.0 if each.stability_index is None else -each.stability_index - 1.0,
            -each.outside,
        ),
    )
