"""How many times more rare rows the k highest scores hold than any k rows, with an interval."""

from numpy.typing import ArrayLike

from rareclass.metrics.cells_of_columns import cells_of
from rareclass.metrics.interval import Interval, normal_quantile, wilson_interval
from rareclass.metrics.rare_cells import RareCells
from rareclass.metrics.recall_at_k import recall_in_top
from rareclass.parameters import check_number


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
    is what a random order gives.

    Parameters
    ----------
    y : array-like of shape (n,)
        True or 1 where the row is rare.
    scores : array-like of shape (n,)
        Higher means rarer.
    k : float, optional
        How many rows are looked at, more than 0 and at most n; with weights, how much weight.
    sample_weight : array-like of shape (n,), optional
        Copies that each row stands for; 0 leaves the row out.
    share : float, optional
        In place of k: the share of all rows that is looked at, in (0, 1]; 0.1 for the top decile.

    Returns
    -------
    float
        In [0, W / max(k, W+)]; O(n log n) time, O(n) memory.

    Raises
    ------
    ValueError
        Unless one of `k` and `share` is given and in range; else as `precision_at_k`.

    Examples
    --------
    >>> lift_at_k([0, 0, 1, 1, 0], [0.1, 0.4, 0.3, 0.8, 0.2], k=2)
    1.25
    >>> lift_at_k([0, 0, 1, 1, 0], [0.1, 0.4, 0.3, 0.8, 0.2], share=0.2)
    2.5
    """
    cells = cells_of(y, scores, sample_weight)
    looked_at = depth(cells, k, share)
    return recall_in_top(cells, looked_at) * (cells.n_rare + cells.n_majority) / looked_at


def lift_at_k_interval(
    y: ArrayLike,
    scores: ArrayLike,
    k: float | None = None,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
    *,
    share: float | None = None,
) -> Interval:
    """Lift among the k highest scores with a confidence interval: that of recall, over ``k / W``.

    The share of rare rows is taken as given; docs/decisions/0005 has how often the interval of
    precision at k, the same in other units, holds the truth.

    Parameters
    ----------
    y, scores, k, sample_weight, share
        As in `lift_at_k`. Weights are frequencies: a weight of 3 is three independent rows.
    level : float, default 0.95
        Share of samples whose interval is to hold the truth. Greater gives wider.

    Returns
    -------
    Interval
        ``(value, low, high)``; O(n log n) time, O(n) memory.

    Raises
    ------
    ValueError
        As `lift_at_k`, and when `level` is not between 0 and 1.

    Examples
    --------
    >>> interval = lift_at_k_interval([0, 0, 1, 1, 0], [0.1, 0.4, 0.3, 0.8, 0.2], k=2)
    >>> interval.value, 0 < interval.low < interval.value < interval.high < 2.5
    (1.25, True)
    """
    normal_quantile(level)
    cells = cells_of(y, scores, sample_weight)
    looked_at = depth(cells, k, share)
    recall = wilson_interval(recall_in_top(cells, looked_at), cells.n_rare, level)
    times = (cells.n_rare + cells.n_majority) / looked_at
    return Interval(*(bound * times for bound in recall))


def depth(cells: RareCells, k: float | None, share: float | None) -> float:
    """The weight that is looked at: k itself, or that share of all."""
    if (k is None) == (share is None):
        raise ValueError(f"give either k or share, not k={k!r} and share={share!r}.")
    if k is not None:
        return k
    check_number("share", share, "a share of the rows, above 0 and at most 1", 0.0, 1.0, "(]")
    return share * (cells.n_rare + cells.n_majority)  # type: ignore[operator]
