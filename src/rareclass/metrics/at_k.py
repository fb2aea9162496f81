"""Precision, recall and lift among the k highest scores, with one interval for the three.

All three are the share of the rare rows that the top k hold, the recall R, in other units: with W+
the weight of the rare rows and W that of all, precision is ``R W+ / k`` and lift ``R W / k``. So
one interval serves them: Wilson's for R in W+ trials, times the factor.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rareclass.errors import ErrorKind
from rareclass.metrics.intervals import Interval, wilson_interval
from rareclass.metrics.scored_classes import RareCells, cells_of
from rareclass.parameters import check_number


class TopEstimate(NamedTuple):
    """Estimate of what is at k, ``factor R`` and at most `most`, with its interval."""

    value: float
    k: float
    recall: float  # R
    n_trials: float  # independent rare rows
    factor: float
    most: float = 1.0

    def interval(self, level: float) -> Interval:
        """Wilson's interval of R in `n_trials` trials, times the factor."""
        _, low, high = wilson_interval(self.recall, self.n_trials, level)
        low, high = low * self.factor, min(high * self.factor, self.most)
        return Interval(self.value, min(low, self.value), max(high, self.value))


def precision_at_k(
    y: ArrayLike, scores: ArrayLike, k: float, sample_weight: ArrayLike | None = None
) -> float:
    """Share of rare rows among the k rows of highest score.

    ``(weight of the rare rows in the top k) / k``. Where the cut falls among rows of equal score,
    each of them is taken with the same chance, and the answer is the mean over that chance: with
    ``a`` places left for a tied group of weight ``g`` that holds rare weight ``r``, the group
    brings ``r a / g``.

    Parameters
    ----------
    y : array-like of shape (n,)
        True or 1 where the row is rare.
    scores : array-like of shape (n,)
        Higher means rarer.
    k : float
        How many rows are looked at, more than 0 and at most n; with weights, how much weight.
    sample_weight : array-like of shape (n,), optional
        Copies that each row stands for; 0 leaves the row out.

    Returns
    -------
    float
        In [0, 1], never above ``n_rare / k``; O(n log n) time, O(n) memory.

    Raises
    ------
    ValueError
        When k is not in (0, n], on empty or mismatched columns, labels other than 0 and 1, NaN
        scores, negative weights, or a class without rows.

    Examples
    --------
    >>> precision_at_k([0, 0, 1, 1, 0], [0.1, 0.4, 0.3, 0.8, 0.2], k=2)
    0.5
    >>> precision_at_k([0, 1], [0.5, 0.5], k=1)
    0.5
    """
    return precision_in_top(cells_of(y, scores, sample_weight), k)


def recall_at_k(
    y: ArrayLike, scores: ArrayLike, k: float, sample_weight: ArrayLike | None = None
) -> float:
    """Share of the rare rows that are among the k rows of highest score.

    ``(weight of the rare rows in the top k) / W+``, never above ``k / n_rare``; ties, parameters,
    errors and cost as of `precision_at_k`.

    Examples
    --------
    >>> recall_at_k([0, 0, 1, 1, 0], [0.1, 0.4, 0.3, 0.8, 0.2], k=1)
    0.5
    """
    return recall_estimate(cells_of(y, scores, sample_weight), k).value


def lift_at_k(
    y: ArrayLike,
    scores: ArrayLike,
    k: float | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    share: float | None = None,
) -> float:
    """Precision among the k highest scores over the share of rare rows among all.

    ``lift = precision_at_k / (W+ / W) = recall_at_k / (k / W)``, with W the weight of all rows: 1
    is what a random order gives, ``W / max(k, W+)`` the most.

    Parameters
    ----------
    y, scores, k, sample_weight
        As in `precision_at_k`, with the same errors and cost.
    share : float, optional
        In place of k: the share of all rows that is looked at, in (0, 1]; 0.1 for the top decile.

    Examples
    --------
    >>> lift_at_k([0, 0, 1, 1, 0], [0.1, 0.4, 0.3, 0.8, 0.2], k=2)
    1.25
    >>> lift_at_k([0, 0, 1, 1, 0], [0.1, 0.4, 0.3, 0.8, 0.2], share=0.2)
    2.5
    """
    return lift_estimate(cells_of(y, scores, sample_weight), k, share).value


def precision_in_top(cells: RareCells, k: float) -> float:
    """Share of rare weight in the top k; k beyond the rows is refused."""
    total = cells.n_rare + cells.n_majority
    # Weights are added in another order by the caller: their sum may differ in the last digits.
    if not 0 < k <= total * (1.0 + 1e-9):
        raise ErrorKind.SETTING.error(
            f"k = {k!r} must be more than 0 and at most the {total:g} rows there are"
            " (their weight, where weights are given).",
            "Look at fewer rows.",
            value=k,
        )
    group = cells.rare + cells.tied
    ahead = np.append(cells.rare_from()[1:], 0.0) + cells.majority_from() - cells.tied
    taken = cells.rare * np.clip((k - ahead) / group, 0.0, 1.0)
    return float(min(taken.sum() / k, 1.0))


def rare_at_cut(cells: RareCells, k: float) -> float:
    """Share of rare rows as near the cut as k varies by chance, ``sqrt(k (1 - k / W))`` rows."""
    total = cells.n_rare + cells.n_majority
    reach = math.sqrt(max(k * (1.0 - k / total), 0.0))
    low, high = max(k - reach, 0.0), min(k + reach, total)
    if not low < high:
        return cells.n_rare / total
    hits = [at * precision_in_top(cells, at) if at > 0.0 else 0.0 for at in (low, high)]
    return min(max((hits[1] - hits[0]) / (high - low), 0.0), 1.0)


def precision_estimate(cells: RareCells, k: float) -> TopEstimate:
    """Estimate of the precision at k."""
    precision, n_rare = precision_in_top(cells, k), cells.n_rare
    recall = min(precision * (k / n_rare), 1.0)
    return TopEstimate(precision, k, recall, n_rare, n_rare / k)


def recall_estimate(cells: RareCells, k: float) -> TopEstimate:
    """Estimate of the recall at k."""
    found = precision_estimate(cells, k)
    return found._replace(value=found.recall, factor=1.0)


def lift_estimate(
    cells: RareCells, k: float | None = None, share: float | None = None
) -> TopEstimate:
    """Estimate of the lift at k, or at a share of the rows."""
    total = cells.n_rare + cells.n_majority
    if (k is None) == (share is None):
        raise ErrorKind.COMBINATION.error(
            f"k={k!r} and share={share!r} say how many rows are looked at.", "Give one of them."
        )
    if share is not None:
        check_number("share", share, "a share of the rows, above 0 and at most 1", 0.0, 1.0, "(]")
        k = share * total
    assert k is not None
    found = precision_estimate(cells, k)
    return found._replace(value=found.recall * total / k, factor=total / k, most=math.inf)
