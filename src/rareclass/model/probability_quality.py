"""How good probabilities are beside the labels that came."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ProbabilityQuality:
    """Probabilities of rows beside their labels; smaller losses are better.

    The losses of giving every row the true share say what probabilities are worth.
    """

    mean: float
    share: float  # of rare rows
    log_loss: float  # mean of -ln of the probability of the row's own class
    brier: float  # mean of (probability - label)^2
    log_loss_of_share: float  # of the true share for every row
    brier_of_share: float


def probability_quality(
    rare: NDArray[np.bool_], probability: NDArray[np.float64]
) -> ProbabilityQuality:
    r"""Log loss ``-mean(y ln p + (1 - y) ln(1 - p))`` and Brier score ``mean (p - y)^2``.

    `probability` lies strictly between 0 and 1, and both classes are there. O(n).
    """
    share = float(rare.mean())
    return ProbabilityQuality(
        float(probability.mean()),
        share,
        -float(np.log(np.where(rare, probability, 1.0 - probability)).mean()),
        float(np.square(probability - rare).mean()),
        -float(share * np.log(share) + (1.0 - share) * np.log(1.0 - share)),
        share * (1.0 - share),
    )
