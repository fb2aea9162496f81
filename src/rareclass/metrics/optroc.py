"""Accuracy at the best operating point of the ROC curve."""

import numpy as np
from numpy.typing import ArrayLike

from rareclass.metrics.rare_cells import collapse
from rareclass.metrics.scored_classes import split_scores


def accuracy_at_optroc(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Largest accuracy that any threshold on the scores gives, equal costs on both errors.

    ``max_t (sum_i w_i [s_i >= t] + sum_j w_j [s_j < t]) / (W+ + W-)`` over rare rows i and
    majority rows j, with ``w`` the weights, ``s`` the scores, ``W+`` and ``W-`` the weight of each
    class, and t any number or infinity. Rows of equal score are called alike. It is the accuracy at
    the point of the ROC curve that the line of slope ``W- / W+`` touches first (OPTROC).

    The threshold is chosen on the rows that it is judged by, so the figure flatters small samples,
    and it is never below the share of the larger class. It compares rankings; what a threshold
    chosen in advance will do, it does not say.

    Parameters
    ----------
    y : array-like of shape (n,)
        True or 1 where the row is rare.
    scores : array-like of shape (n,)
        Higher means rarer.
    sample_weight : array-like of shape (n,), optional
        Copies that each row stands for; 0 leaves the row out.

    Returns
    -------
    float
        At least ``max(W+, W-) / (W+ + W-)``, at most 1; O(n log n) time, O(n) memory.

    Raises
    ------
    ValueError
        On empty or mismatched columns, labels other than 0 and 1, NaN scores, negative weights,
        or a class without rows.

    References
    ----------
    Khalid, Ray and Chitsaz (2016), "Confidence-weighted bipartite ranking", Tables 4 and 6.

    Examples
    --------
    >>> accuracy_at_optroc([0, 0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.8])
    0.8
    >>> accuracy_at_optroc([0, 0, 1], [0.5, 0.5, 0.5]) == 2 / 3
    True
    """
    cells = collapse(split_scores(y, scores, sample_weight))
    # A threshold in a gap or above a tied majority row is no better than one at the next rare
    # score, so the rare scores and "nothing is rare" are all there is to try.
    found = np.append(cells.rare_from(), 0.0)
    below = np.append(0.0, np.cumsum(cells.tied)) + np.cumsum(cells.gaps)
    return float(min((found + below).max() / (cells.n_rare + cells.n_majority), 1.0))
