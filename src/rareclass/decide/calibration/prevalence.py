"""Probabilities at another prevalence than that of the training rows."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rareclass.errors import InputError
from rareclass.metrics.scored_classes import FloatArray
from rareclass.parameters import is_number


def log_odds_shift(
    trained: float, prevalence: Any = None, majority_sampling_rate: Any = None
) -> float:
    r"""What is added to the log-odds of rows learned from to make them those of the true base rate.

    With `prevalence` :math:`\pi` it is :math:`\ln\frac{\pi}{1 - \pi} - \ln\frac{\pi'}{1 - \pi'}`,
    :math:`\pi'` being the prevalence `trained`, by weight. With `majority_sampling_rate` r, the
    share of the majority that was kept, it is :math:`\ln r`. Neither: 0.

    Raises `InputError` where both are given, or one is out of range.
    """
    if prevalence is not None and majority_sampling_rate is not None:
        raise InputError(
            f"prevalence={prevalence!r} and majority_sampling_rate={majority_sampling_rate!r} say "
            "the same thing twice.",
            "Give one of them.",
        )
    if prevalence is not None:
        if not is_number(prevalence, 0.0, 1.0):
            raise InputError(
                f"prevalence={prevalence!r} must be a number between 0 and 1, both left out.",
                "It is the share of rare rows where the model is used, such as 0.002.",
            )
        return float(_logit(float(prevalence)) - _logit(trained))
    if majority_sampling_rate is not None:
        if not is_number(majority_sampling_rate, 0.0, 1.0, "(]"):
            raise InputError(
                f"majority_sampling_rate={majority_sampling_rate!r} must be a number above 0, at "
                "most 1.",
                "It is the share of the majority rows that were kept, such as 0.1.",
            )
        return float(np.log(majority_sampling_rate))
    return 0.0


def at_prevalence(
    probability: ArrayLike,
    *,
    trained: float,
    prevalence: float | None = None,
    majority_sampling_rate: float | None = None,
) -> FloatArray:
    r"""Probabilities of the rare class as they are where the rare class is more or less frequent.

    .. math:: \frac{p}{1 - p} \cdot \frac{\pi}{1 - \pi} \cdot \frac{1 - \pi'}{\pi'}

    are the new odds: those of a model that was learned where a share :math:`\pi'` of the rows was
    rare, used where a share :math:`\pi` is. It holds where rare rows look alike in both, and
    majority rows do: of training rows that were thinned by class, of cases and controls, of a base
    rate that has moved.

    Parameters
    ----------
    probability : array-like
        Of the rare class, in [0, 1], of any shape.
    trained : float
        The share of rare rows that `probability` was learned on, between 0 and 1. Where weights
        put back rows that were left out, the share by weight.
    prevalence : float, optional
        The share of rare rows that is wanted, between 0 and 1.
    majority_sampling_rate : float, optional
        In its place: the share of the majority that was kept for training, in (0, 1].

    Returns
    -------
    ndarray of the same shape

    Raises
    ------
    InputError
        On a probability outside [0, 1] and shares out of range, or where both are given or neither.

    References
    ----------
    Saerens, Latinne, Decaestecker (2002), "Adjusting the outputs of a classifier to new a priori
    probabilities"; King, Zeng (2001), "Logistic regression in rare events data".

    Examples
    --------
    >>> at_prevalence([0.5], trained=0.5, prevalence=0.01).round(3)
    array([0.01])
    """
    p = np.asarray(probability, dtype=np.float64)
    bad = ~((p >= 0.0) & (p <= 1.0))
    if bad.any():
        place = np.unravel_index(int(bad.argmax()), p.shape)
        where = ", ".join(map(str, place))
        raise InputError(
            f"probability[{where}] = {p[place]!r} is not between 0 and 1.",
            "Scores become probabilities by CalibratedRanker.",
        )
    if not is_number(trained, 0.0, 1.0):
        raise InputError(f"trained={trained!r} must be a number between 0 and 1, both left out.")
    if prevalence is None and majority_sampling_rate is None:
        raise InputError("neither prevalence nor majority_sampling_rate is given.", "Give one.")
    factor = np.exp(log_odds_shift(trained, prevalence, majority_sampling_rate))
    return np.asarray(p * factor / (p * factor + (1.0 - p)))


def _logit(share: float) -> float:
    return float(np.log(share) - np.log1p(-share))
