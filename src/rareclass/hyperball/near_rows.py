"""Algorithm 1: of a million unlabelled rows, those near enough to matter."""

import numpy as np

from rareclass.hyperball.spaces import InputSpace, block_distances
from rareclass.rows import Rows

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
    r"""Which unlabelled rows enter the optimisation.

    1. D = the distance within which the share p of the unlabelled rows falls;
    2. rows within ``reach`` D stay;
    3. of these the ``n_most`` nearest, where there are more.

    Parameters
    ----------
    distances : ndarray of shape (n,)
        Of the unlabelled rows to the centre of the labelled rare rows.
    weight : ndarray of shape (n,) or None
        Of the rows; 0 takes a row out.
    rare_share : float
        p: share of the rare rows among those with a label, in (0, 1].
    reach : float, default=3
        Times D.
    n_most : int or None

    Returns
    -------
    ndarray of int
        Row numbers, increasing.

    Notes
    -----
    Cost: O(n), the distances apart.

    References
    ----------
    .. [1] He, Tong, Carbonell, "Rare category characterization", ICDM 2010, Algorithm 1.

    Examples
    --------
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
