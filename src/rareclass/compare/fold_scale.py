"""Scores of the models of several folds on one scale: the false-positive rate within the fold."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.errors import InputError


def on_scale_of_folds(
    y: NDArray[np.bool_],
    scores: NDArray[np.float64],
    folds: ArrayLike,
    sample_weight: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    r"""Minus the share of the fold's majority that scores higher: comparable across folds.

    The model of each fold scores on a scale of its own, and a threshold on pooled scores would call
    more rows of one fold rare than of another for no better reason than that. With
    :math:`w_j` the weights of the majority rows of the fold of row i,

    .. math:: s'_i = -\frac{\sum_j w_j [s_j > s_i] + \tfrac12 \sum_j w_j [s_j = s_i]}{\sum_j w_j}

    which is minus the false-positive rate of a threshold at :math:`s_i`. The AUC of the pooled
    :math:`s'` is the mean of the folds' AUCs by their rare rows, to within half a majority row;
    what is at the top of the list is judged at the same false-positive rate in every fold.

    `y` says which rows are rare, `folds` has one number or name a row. Shape (n,); O(n log n) time.

    Raises `InputError` where a fold has no majority row of positive weight, naming it.
    """
    fold = np.asarray(folds)
    if fold.shape != y.shape:
        raise InputError(
            f"folds has the shape {fold.shape} and y {y.shape}.", "Give one fold a row."
        )
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    scaled = np.empty(len(y))
    for name in np.unique(fold):
        own = fold == name
        majority = own & ~y & (weight > 0)
        if not majority.any():
            raise InputError(
                f"fold {name} has no majority row: its scores have no scale.",
                "Use fewer folds, or those of rareclass.folds.",
            )
        order = np.argsort(scores[majority], kind="stable")
        sorted_scores = scores[majority][order]
        below = np.append(0.0, np.cumsum(weight[majority][order]))
        left = below[np.searchsorted(sorted_scores, scores[own], "left")]
        right = below[np.searchsorted(sorted_scores, scores[own], "right")]
        scaled[own] = 0.5 * (left + right) / below[-1] - 1.0
    return scaled


def stretch_for_training(n_tested: float, n_train: float) -> float:
    """How much farther the interval of a difference of methods reaches than that of their models.

    A paired test of out-of-fold scores has the variance V of which rows were tested. Other training
    rows would have given other models, and the folds' models share most of theirs, so that the luck
    of one is the luck of all. Nadeau and Bengio (2003, "Inference for the generalization error",
    Machine Learning 52) put the variance of the mean of K folds, each of variance K V, at
    ``K V (1 / K + n_test / n_train)``; with ``n_tested = K n_test`` that is
    ``V (1 + n_tested / n_train)``. Its square root is 1.5 for 5 folds, whatever their number of
    rows.

    >>> stretch_for_training(100, 80)
    1.5
    """
    return math.sqrt(1.0 + n_tested / n_train)
