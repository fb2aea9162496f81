"""How far the cells of a column have moved since training: the population stability index."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rareclass.metrics.column_drift import drift_verdict

Floats = NDArray[np.float64]


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
        `population_stability_index` of the new rows against training, over tenths of the training
        values or the commonest words; None where the model file has no summary of these.
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
        """Word for the index, see `drift_verdict`."""
        return drift_verdict(self.stability_index)


def tenths(knots: Floats, ranks: Floats) -> tuple[Floats, Floats]:
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
    wanted = np.arange(1, 10) / 10
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
