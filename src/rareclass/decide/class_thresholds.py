"""Thresholds of several rare classes, one for the probability of each: what a row is called.

1. the classes have weights w_k, which rise with their training rows (`class_weights`)
2. a row's multiple of class k is P(k | x) / w_k; rows rank by the greatest (`greatest_multiples`)
3. the thresholds are t_k = c w_k: c sets how many rows are called any class (`shared_thresholds`)
4. a row is called the class whose P(k | x) is the greatest multiple of t_k, where that is above 1
   (`called_class`)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.decide.threshold import nearest_cut
from rareclass.metrics.held_out_cuts import steps, threshold_of_cut
from rareclass.metrics.scored_classes import FloatArray

# Chosen on six tables of benchmarks.several_classes, from 0, 1/4, 1/2, 3/4 and 1.
_POWER = 0.75
_LEAST = np.finfo(np.float64).tiny


def class_weights(n_rows: Sequence[float] | NDArray[Any]) -> FloatArray:
    """Weights of classes: their training rows to the power 3/4.

    In proportion to the rows the expected mean recall of the classes would be the greatest, were
    probabilities exact; those of classes of few rows are not.

    >>> class_weights([16, 1]).tolist()
    [8.0, 1.0]
    """
    return np.asarray(n_rows, np.float64) ** _POWER


def greatest_multiples(probability: FloatArray, weights: FloatArray) -> FloatArray:
    """Greatest multiple that the probability of a class is of its weight, for every row.

    `probability` has shape (n_rows, n_classes). A class of infinite weight is never the one.
    """
    multiples: FloatArray = (probability / weights).max(axis=1)
    return multiples


def shared_thresholds(
    probability: FloatArray,
    weights: FloatArray,
    n_called: float,
    sample_weight: FloatArray | None = None,
) -> FloatArray:
    """Thresholds in the ratio of `weights` by which as many rows are called a class as wanted.

    As nearly as ties allow; of two cuts that are as near, the one of fewer rows. Rows count by
    `sample_weight`. A class of infinite weight has an infinite threshold.
    O(n_rows (n_classes + log n_rows)).

    >>> P = np.array([[0.9, 0.0], [0.4, 0.1], [0.0, 0.1]])
    >>> shared_thresholds(P, np.array([8.0, 1.0]), 1).round(3).tolist()
    [0.85, 0.106]
    """
    multiple = greatest_multiples(probability, weights)
    scale = threshold_for(multiple, n_called, sample_weight, 0.0)
    thresholds = np.full(len(weights), np.inf)
    return np.multiply(scale, weights, out=thresholds, where=np.isfinite(weights))


def weights_among(n_rows: Sequence[float] | NDArray[Any], which: NDArray[Any]) -> FloatArray:
    """Weights of classes to choose thresholds by rows of them: infinite where no row is of a class.

    `which` has the place of the class of each row, -1 for the majority.
    """
    is_there = np.isin(np.arange(len(n_rows)), which)
    return np.where(is_there, class_weights(n_rows), np.inf)


def thresholds_in_step(
    probability: FloatArray,
    which: NDArray[Any],
    n_rows: Sequence[float] | NDArray[Any],
    is_above: NDArray[np.bool_],
    sample_weight: FloatArray | None = None,
) -> FloatArray:
    """Thresholds of classes that call as many rows as are above the threshold of any rare class.

    `n_rows` are the training rows of each class; see `weights_among` and `shared_thresholds`.
    """
    n_called = float(is_above.sum() if sample_weight is None else sample_weight[is_above].sum())
    return shared_thresholds(probability, weights_among(n_rows, which), n_called, sample_weight)


def threshold_for(
    value: FloatArray,
    n_above: float,
    sample_weight: FloatArray | None = None,
    lowest: float = -np.inf,
) -> float:
    """Threshold that as many rows are above as wanted, as nearly as ties allow.

    Of two cuts that are as near, the one of fewer rows. `lowest` is the threshold that all rows are
    above. O(n log n).

    >>> threshold_for(np.array([3.0, 1.0, 2.0, 1.0]), 2.0)
    1.5
    """
    order = np.argsort(-value, kind="stable")
    value = value[order]
    copies = np.ones(len(value)) if sample_weight is None else sample_weight[order]
    ends = steps(value)
    above = np.concatenate([[0.0], np.cumsum(copies)])[ends]
    return threshold_of_cut(value, int(ends[nearest_cut(above, n_above)]), lowest)


def decades_above(probability: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Common logarithm of the multiple that each probability is of the threshold of its class.

    Above 0 where the probability is above the threshold, and below 0 where it is not: a row at the
    threshold is not of the class, however the logarithm is rounded.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        multiples = np.fmax(probability / thresholds, _LEAST)  # a class that is never called has 0
    decades = np.log10(multiples)
    is_above = probability > thresholds
    return np.where(is_above, np.maximum(decades, _LEAST), np.minimum(decades, -_LEAST))


def called_class(probability: FloatArray, thresholds: FloatArray) -> NDArray[np.intp]:
    """Class that each row is called, -1 for none.

    A row is called a class where its probability is above the threshold of the class; of several
    such classes the one whose probability is the greatest multiple of its threshold.

    >>> called_class(np.array([[0.3, 0.2], [0.1, 0.1]]), np.array([0.25, 0.1])).tolist()
    [1, -1]
    """
    decades = decades_above(probability, thresholds)
    return np.where((decades > 0.0).any(axis=1), decades.argmax(axis=1), -1)
