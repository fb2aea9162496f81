"""Probabilities of several rare classes, learned as codes from 1 on, and what rows are called."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.decide.calibration.calibration import Calibration

# Chosen on six tables of benchmarks.several_classes, from 0, 1/4, 1/2, 3/4 and 1.
_POWER = 0.75


def class_probability(
    estimator: Any,
    calibration: Calibration,
    scores: NDArray[np.float64],
    which: NDArray[np.float64],
    n_classes: int,
) -> NDArray[np.float64]:
    """Return P(k | x) = P(rare | score) P(k | rare, x) of shape (n_rows, n_classes).

    `which` are the shares P(k | rare, x) of the classes that the estimator learned. A class without
    a row among those that it learned from has the probability 0.
    """
    probability = np.zeros((len(scores), n_classes))
    number = [code - 1 for code in class_codes(estimator)]
    probability[:, number] = calibration(scores)[:, None] * which
    return probability


def class_codes(estimator: Any) -> list[int]:
    """Return the codes of the rare classes that an estimator learned, from 1 on."""
    labels = estimator.pos_label_
    return [int(code) for code in (labels if isinstance(labels, tuple) else (labels,))]


def class_weights(n_rows: Sequence[float]) -> NDArray[np.float64]:
    """Return weights of classes: rows rank by the multiple that P(k | x) is of the weight of k.

    Weights are the training rows of a class to the power 3/4. In proportion to the rows the
    expected mean recall of the classes would be the greatest, were probabilities exact; those of
    classes of few rows are not.

    >>> class_weights([16, 1]).tolist()
    [8.0, 1.0]
    """
    return np.asarray(n_rows, np.float64) ** _POWER


def called_class(
    probability: NDArray[np.float64], thresholds: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Return the class that each row is called, -1 for none.

    A row is called a class where its probability is above the threshold of the class; of several
    such classes the one whose probability is the greatest multiple of its threshold.

    >>> called_class(np.array([[0.3, 0.2], [0.1, 0.1]]), np.array([0.25, 0.1])).tolist()
    [1, -1]
    """
    with np.errstate(divide="ignore"):
        multiple = np.where(probability > thresholds, probability / thresholds, 0.0)
    return np.where((multiple > 0.0).any(axis=1), multiple.argmax(axis=1), -1)
