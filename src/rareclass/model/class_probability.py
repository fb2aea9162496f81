"""Probabilities of several rare classes, learned as codes from 1 on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.decide.calibration.calibration import Calibration


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
