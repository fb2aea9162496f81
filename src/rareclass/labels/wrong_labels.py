r"""How many rows of one class carry the label of the other at most, from out-of-fold scores.

Labels alone cannot tell lost labels from an overlap of the classes: rows of the other class that
score like this one look the same as rows of this class that lost their label. So no number above 0
is the least one, and none is the most likely. An upper limit needs one assumption: labels are wrong
*at random*, that is, a row loses its label whatever its score. Rows that lost and rows that kept
their label are then two samples of one class, and among the rows of the other label that score at
least t there are at least the lost ones that belong there: about :math:`N \le M(t) / S(t)`, with M
the number of these rows and S the share of the class. Where rows lose their label more often the
more they resemble the other class, there may be more.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_LEVEL = 0.95
# Thresholds that limit the number, from the highest twentieth of the labelled rows on.
_N_THRESHOLDS, _LEAST_SHARE, _LEAST_ROWS = 10, 0.05, 3
_N_NODES, _N_HALVINGS = 64, 30


@dataclass(frozen=True)
class WrongLabels:
    """Upper limit of the number of rows of a class that carry the label of the other one.

    Attributes
    ----------
    most : float
        With 95 percent confidence there are at most so many, where labels are wrong at random.
    n_labelled : float
        Rows that carry the label of the class.
    """

    most: float
    n_labelled: float

    @property
    def share(self) -> float:
        """Largest share of the rows of the class whose label is wrong."""
        return self.most / (self.n_labelled + self.most)


def limit_wrong_labels(
    own: Any, other: Any, own_weight: Any = None, other_weight: Any = None
) -> WrongLabels:
    r"""Return the 95 percent upper limit of the rows of the other label that belong to the class.

    Parameters
    ----------
    own : array-like of shape (n,)
        Scores of rows with the label of the class, higher for rows more like the class; the label
        of a row has no part in its own score.
    other : array-like of shape (m,)
        Likewise of rows with the other label.
    own_weight, other_weight : array-like or None
        Rows that each stands for.

    Returns
    -------
    WrongLabels
        The limit is the largest N that none of ten thresholds rejects. A threshold is the score of
        the row in place k of the n with the label; the part p of the class above it has a Beta
        distribution whatever the shape of the scores. It rejects N where so few rows of the other
        label as the M above it are improbable:

        .. math:: \int_0^1 P(\mathrm{Bin}(N, p) \le M) \, d\mathrm{Beta}(p; k, n + 1 - k)
            < \frac{0.05}{10}.

        Of weights W on average, a lost label is seen with probability 1 / W. O((n + m) log m).

    Raises
    ------
    ValueError
        Where one of the labels has no rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cases, others = rng.normal(4.0, 1.0, 500), rng.normal(0.0, 1.0, 9_500)
    >>> found = limit_wrong_labels(cases[:400], np.append(others, cases[400:]))
    >>> round(found.most), round(found.share, 2)
    (128, 0.24)
    """
    own, other = (np.asarray(scores, dtype=np.float64).ravel() for scores in (own, other))
    if not len(own) or not len(other):
        raise ValueError("wrong labels are counted among rows of two labels: one has no rows.")
    of_own, of_other = (
        np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=np.float64)
        for scores, weight in ((own, own_weight), (other, other_weight))
    )
    n_labelled, by_score = float(of_own.sum()), np.argsort(-own, kind="stable")
    first = min(max(_LEAST_ROWS, _LEAST_SHARE * len(own)), len(own))
    places = np.unique(np.geomspace(first, len(own), _N_THRESHOLDS).astype(int)) - 1
    n_rows = n_labelled**2 / np.square(of_own).sum()  # rows of equal weight
    kept = n_rows * np.cumsum(of_own[by_score])[places] / n_labelled
    order = np.argsort(-other, kind="stable")
    n_above = np.searchsorted(-other[order], -own[by_score[places]], side="right")
    above = np.append(0.0, np.cumsum(of_other[order]))[n_above]
    total = float(of_other.sum())
    unit = float(np.square(of_other).sum()) / total
    seen, every = above / unit, total / min(unit, 1.0)
    lost = _most_lost(kept, n_rows, seen, every, 1.0 / max(unit, 1.0))
    return WrongLabels(min(lost * min(unit, 1.0), total), n_labelled)


def _most_lost(kept: Floats, n_rows: float, seen: Floats, every: float, is_seen: float) -> float:
    """Return the largest number of lost labels, at most `every`, that no threshold rejects.

    Above a threshold are `kept` of the `n_rows` with the label, and `seen` rows of the other label;
    `is_seen` is the probability that a lost label is among the rows.
    """
    from scipy.special import betainc, betaincinv

    node, weight = np.polynomial.legendre.leggauss(_N_NODES)
    part = betaincinv(kept[:, None], n_rows + 1.0 - kept[:, None], (node + 1.0) / 2.0)
    least, most = seen, np.full(len(seen), every)
    for _ in range(_N_HALVINGS):
        number = (least + most) / 2.0
        others = np.maximum(number - seen, 0.0)[:, None]
        probability = betainc(others, seen[:, None] + 1.0, 1.0 - part * is_seen) @ weight / 2.0
        is_probable = probability >= (1.0 - _LEVEL) / len(seen)
        least, most = np.where(is_probable, number, least), np.where(is_probable, most, number)
    return float(most.min())
