"""Share of the rare rows that the k highest scores find, and its confidence interval."""

from numpy.typing import ArrayLike

from rareclass.metrics.cells_of_columns import cells_of
from rareclass.metrics.interval import Interval, normal_quantile, wilson_interval
from rareclass.metrics.precision_at_k import precision_in_top
from rareclass.metrics.rare_cells import RareCells


def recall_at_k(
    y: ArrayLike, scores: ArrayLike, k: float, sample_weight: ArrayLike | None = None
) -> float:
    """Share of the rare rows that are among the k rows of highest score.

    ``(weight of the rare rows in the top k) / W+``; where the cut falls among rows of equal score,
    the mean over which of them are taken, as in `precision_at_k`.

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
        In [0, 1], never above ``k / n_rare``; O(n log n) time, O(n) memory.

    Raises
    ------
    ValueError
        As `precision_at_k`.

    Examples
    --------
    >>> recall_at_k([0, 0, 1, 1, 0], [0.1, 0.4, 0.3, 0.8, 0.2], k=1)
    0.5
    """
    return recall_in_top(cells_of(y, scores, sample_weight), k)


def recall_at_k_interval(
    y: ArrayLike,
    scores: ArrayLike,
    k: float,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
) -> Interval:
    """Recall among the k highest scores with a confidence interval: Wilson's in n_rare trials.

    It is the interval of `precision_at_k_interval` in other units, so docs/decisions/0005 has how
    often it holds the truth, too.

    Parameters
    ----------
    y, scores, k, sample_weight
        As in `recall_at_k`. Weights are frequencies: a weight of 3 is three independent rows.
    level : float, default 0.95
        Share of samples whose interval is to hold the truth. Greater gives wider.

    Returns
    -------
    Interval
        ``(value, low, high)`` within [0, 1]; O(n log n) time, O(n) memory.

    Raises
    ------
    ValueError
        As `recall_at_k`, and when `level` is not between 0 and 1.

    Examples
    --------
    >>> interval = recall_at_k_interval([0, 0, 1, 1, 0], [0.1, 0.4, 0.3, 0.8, 0.2], k=1)
    >>> interval.value, 0 < interval.low < interval.value < interval.high < 1
    (0.5, True)
    """
    normal_quantile(level)
    cells = cells_of(y, scores, sample_weight)
    return wilson_interval(recall_in_top(cells, k), cells.n_rare, level)


def recall_in_top(cells: RareCells, k: float) -> float:
    """Share of the rare weight that is in the top k."""
    return min(precision_in_top(cells, k) * (k / cells.n_rare), 1.0)
