r"""How many rows of one class carry the label of the other, from out-of-fold scores.

Labels alone cannot tell a lost label from an overlap of the classes. Three assumptions bound the
number, each weak enough for one sentence:

- *At random*: a row of the class loses its label whatever its score. The rows that kept it are then
  a sample of the class, and at every score t the other label has at least as many rows above t as
  lost rows would be there: :math:`N \le M(t) / S(t)`, with M the number of rows of the other label
  and S the share of the rows that kept theirs. This gives the upper end of the interval.
- *Rising*: the log-odds of the class rise with the score, by a slope that changes evenly from the
  lowest score to the highest, and rather little. Then the share of the label rises from that of
  wrong labels of the other class to :math:`c = n / (n + N)`, and a share that stops rising below 1
  is a share of lost labels. This gives the number and the lower end.
- *Most are labelled*: N is at most n. A share that stops rising below one half is taken for an
  overlap of the classes, and the number is then not identified: 0, from 0 to the upper end.

Where labels are lost at the border of the class the interval is too low; `WrongLabels.most` counts
the rows of the other label that score like the class at all. `confident_count` counts by another
assumption: probabilities are calibrated, and the same for rows with a right and a wrong label.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError
from rareclass.parameters import is_number

Floats = NDArray[np.float64]
LEVEL = 0.95
# Scores are counted in so many bins of equal width: finer ones change no figure.
_BINS = 400
# Numbers of wrong labels that are tried: from a fifth of a row to four a labelled row.
_LEAST, _MOST_RATIO, _N_NUMBERS = 0.2, 4.0, 40
# Thresholds that bound the number, from the highest twentieth of the labelled rows on.
_N_THRESHOLDS, _LEAST_SHARE, _LEAST_ROWS = 25, 0.05, 3
_LOWEST_SHARE = 0.05  # of the rows of the class, which no row needs to outrank to look like it
_LOG_SLOPES = (-8.0, 5.0)  # of scores in standard deviations
# Weight of half the squared logarithm of the ratio of both slopes: one that doubles costs 0.02.
_BENT = 0.1
_LOG_LEAST, _MOST_AT_BOTTOM = -16.0, 0.3  # share of the label among rows of the other class


@dataclass(frozen=True)
class WrongLabels:
    """Estimated number of rows of a class that carry the label of the other one.

    Attributes
    ----------
    number : float
        Most likely number.
    low, high : float
        Ends of the 95 percent confidence interval, for labels that are wrong at random.
    most : float
        Rows of the other label that score above the lowest twentieth of the class, divided by 0.95:
        an upper end where labels are wrong at the border of the class as well.
    n_labelled : float
        Rows that carry the label of the class.
    """

    number: float
    low: float
    high: float
    most: float
    n_labelled: float

    @property
    def share(self) -> float:
        """Share of the rows of the class whose label is wrong."""
        return self.number / (self.n_labelled + self.number)

    @property
    def are_certain(self) -> bool:
        """Return whether the interval excludes zero."""
        return self.low > 0.0


def check_missed_cases(asked: Any, name: str = "missed_cases") -> None:
    """Raise `InputError` unless the parameter is "auto" or a share between 0 and 1."""
    if (isinstance(asked, str) and asked == "auto") or is_number(asked, 0.0, 1.0):
        return
    raise InputError(
        f"{name}={asked!r} is not a share of the rare rows.",
        "Give auto, or a number above 0 and below 1, such as 0.2.",
        ErrorKind.SETTING,
        value=asked,
    )


def count_missed_cases(
    asked: str | float, is_rare: Any, scores: Any, sample_weight: Any = None
) -> WrongLabels:
    """Return how many majority rows are rare, by a share of all rare rows or by their scores.

    `scores` are of a model that did not learn from the rows. A given share has no interval.
    """
    is_rare, scores = np.asarray(is_rare, dtype=bool), np.asarray(scores, dtype=np.float64)
    weight = np.ones(len(scores)) if sample_weight is None else np.asarray(sample_weight, float)
    n_labelled = float(weight[is_rare].sum())
    if not isinstance(asked, str):
        number = n_labelled * asked / (1.0 - asked)
        return WrongLabels(number, number, number, number, n_labelled)
    if not n_labelled:
        return WrongLabels(0.0, 0.0, float("inf"), float("inf"), 0.0)
    return count_wrong_labels(scores[is_rare], scores[~is_rare], weight[is_rare], weight[~is_rare])


class _Bins(NamedTuple):
    """Scores in standard deviations, the lowest first, with the rows of both labels at each."""

    score: Floats
    own: Floats
    other: Floats


def count_wrong_labels(
    own: Any, other: Any, own_weight: Any = None, other_weight: Any = None
) -> WrongLabels:
    r"""Estimate how many rows of the other label belong to the class.

    Parameters
    ----------
    own : array-like of shape (n,)
        Out-of-fold scores of rows with the label of the class; higher is more like the class.
    other : array-like of shape (m,)
        Out-of-fold scores of rows with the other label.
    own_weight, other_weight : array-like or None
        Rows that each stands for.

    Returns
    -------
    WrongLabels
        The number maximises the likelihood of

        .. math:: P(\text{label} \mid s) = \frac{n}{n + N} \, q(s) + d (1 - q(s)),
            \qquad q(s) = \frac{1}{1 + e^{-h(s)}}

        over h (a parabola that rises between the lowest and the highest score), d (wrong labels of
        the other class) and N. The interval begins where the
        likelihood-ratio interval of N does. It ends where that ends, or at the bound for labels
        that are wrong at random, whichever is larger. O((n + m) log m).

    Raises
    ------
    ValueError
        Where one of the labels has no rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cases, others = rng.normal(4.0, 1.0, 500), rng.normal(0.0, 1.0, 9_500)
    >>> found = count_wrong_labels(cases[:400], np.append(others, cases[400:]))
    >>> found.low < 100 < found.high, found.are_certain
    (True, True)
    """
    own, other = (np.asarray(scores, dtype=np.float64).ravel() for scores in (own, other))
    if not len(own) or not len(other):
        raise ValueError("wrong labels are counted among rows of two labels: one has no rows.")
    of_own, of_other = (
        np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=np.float64)
        for scores, weight in ((own, own_weight), (other, other_weight))
    )
    n_labelled = float(of_own.sum())
    numbers, losses = _profile(_counted(own, other, of_own, of_other))
    best = int(losses.argmin())
    within = np.flatnonzero(losses <= losses[best] + _half_chi_squared())
    number, low = float(numbers[best]), float(numbers[within[0]])
    if number > n_labelled:  # rather an overlap of the classes
        number = low = 0.0
    at_random = most_wrong_at_random(own, other, of_own, of_other)
    high = max(at_random, min(float(numbers[within[-1]]), n_labelled))
    high = min(high, float(of_other.sum()))
    order = np.argsort(own, kind="stable")
    place = np.searchsorted(np.cumsum(of_own[order]), _LOWEST_SHARE * n_labelled, side="right")
    like = of_other[other >= own[order[min(int(place), len(own) - 1)]]].sum()
    most = max(float(like) / (1.0 - _LOWEST_SHARE), high)
    return WrongLabels(number, low, high, most, n_labelled)


def confident_count(
    own: Any, other: Any, own_weight: Any = None, other_weight: Any = None
) -> float:
    r"""Count the rows of the other label that belong to the class, by confident learning.

    .. math:: m \, \frac{C}{C + D}

    with m the rows of the other label, C those of them whose probability of the class is at least
    the mean probability of the rows with its label, and D those whose probability of the other
    class is at least the mean likewise; rows of both count for the more probable class (Northcutt,
    Jiang and Chuang 2021). It assumes that each class has its own mean probability whatever the
    recorded label. `own` and `other` are out-of-fold probabilities of the class. O(n + m).

    >>> confident_count([0.9, 0.7], [0.85, 0.2, 0.1, 0.1])
    1.0
    """
    own, other = (np.asarray(each, dtype=np.float64) for each in (own, other))
    weight = np.ones(len(other)) if other_weight is None else np.asarray(other_weight, float)
    of_class = other >= np.average(own, weights=own_weight)
    of_other = 1.0 - other >= np.average(1.0 - other, weights=weight)
    both = of_class & of_other
    of_class, of_other = of_class & ~(both & (other <= 0.5)), of_other & ~(both & (other > 0.5))
    n_confident = weight[of_class | of_other].sum()
    return float(weight.sum() * weight[of_class].sum() / n_confident) if n_confident else 0.0


def most_wrong_at_random(
    own: Floats, other: Floats, own_weight: Floats, other_weight: Floats
) -> float:
    """Return the upper bound for labels that are wrong at random: the least over 25 thresholds.

    At each, the upper limit of the other rows above it (Poisson) by the lower limit of the share of
    the own rows (Clopper-Pearson). Each of both leaves out a tenth of an end of the interval, as
    the least of bounds at thresholds apart from each other is taken.
    """
    from scipy.special import betaincinv, gammaincinv

    tail = (1.0 - LEVEL) / 2.0 / 10.0
    by_score = np.argsort(-own, kind="stable")
    least = max(_LEAST_ROWS, _LEAST_SHARE * len(own))
    places = np.unique(np.geomspace(min(least, len(own)), len(own), _N_THRESHOLDS).astype(int))
    thresholds = own[by_score][places - 1]
    size = own_weight.sum() ** 2 / np.square(own_weight).sum()  # rows of equal weight
    share = np.cumsum(own_weight[by_score])[places - 1] / own_weight.sum()
    share_low = betaincinv(size * share, size * (1.0 - share) + 1.0, tail)
    order = np.argsort(other, kind="stable")
    first = np.searchsorted(other[order], thresholds, side="left")
    above, squares = (
        np.append(np.cumsum(each[order][::-1])[::-1], 0.0)[first]
        for each in (other_weight, np.square(other_weight))
    )
    of_one = np.where(above > 0.0, squares / np.maximum(above, 1e-300), other_weight.min())
    most = of_one * gammaincinv(above / of_one + 1.0, 1.0 - tail)
    return float((most / share_low).min())


def _half_chi_squared() -> float:
    from scipy.special import chdtri

    return float(chdtri(1, 1.0 - LEVEL)) / 2.0


def _counted(own: Floats, other: Floats, own_weight: Floats, other_weight: Floats) -> _Bins:
    """Count the rows of both labels by score, in bins of equal width."""
    scores, weight = np.append(own, other), np.append(own_weight, other_weight)
    low, high = scores.min(), scores.max()
    width = (high - low) / _BINS or 1.0
    place = np.minimum(((scores - low) / width).astype(int), _BINS - 1)
    n_own, n_other = (
        np.bincount(where, of_row, _BINS).astype(np.float64)
        for where, of_row in ((place[: len(own)], own_weight), (place[len(own) :], other_weight))
    )
    there = n_own + n_other > 0.0
    mean = float(np.average(scores, weights=weight))
    spread = float(np.sqrt(np.average(np.square(scores - mean), weights=weight))) or 1.0
    middles = low + (np.arange(_BINS) + 0.5) * width
    return _Bins((middles[there] - mean) / spread, n_own[there], n_other[there])


def _profile(bins: _Bins) -> tuple[Floats, Floats]:
    """Return numbers of wrong labels, from 0 on, and the least loss of each: -log likelihood."""
    from scipy.optimize import minimize

    n_own = bins.own.sum()
    n_other = bins.other.sum()
    most = max(min(_MOST_RATIO * n_own, n_other), 2.0 * _LEAST)
    numbers = np.append(0.0, np.geomspace(_LEAST, most, _N_NUMBERS))

    def fitted(number: float, start: Floats) -> Any:
        return minimize(
            loss_of_curve,
            start,
            (bins.score, bins.own, bins.other, n_own / (n_own + number)),
            method="L-BFGS-B",
            jac=True,
            bounds=[(None, None), *[_LOG_SLOPES] * 2, (_LOG_LEAST, np.log(_MOST_AT_BOTTOM))],
        )

    odds, few = np.log(n_own / n_other) - 1.0, np.log(0.05 * n_own / n_other)
    starts = [
        np.array([odds + bent, -0.5 * bent, bent, low])
        for low in (_LOG_LEAST, few)
        for bent in (0.0, -2.0)  # alike at both ends, or flat at the top
    ]
    best = min((fitted(0.0, start) for start in starts), key=lambda found: found.fun)
    losses = np.full(len(numbers), np.inf)
    for k in (*range(len(numbers)), *reversed(range(len(numbers)))):
        best = fitted(numbers[k], best.x)
        losses[k] = min(losses[k], best.fun)
    return numbers, losses


def loss_of_curve(
    parameters: Floats, score: Floats, own: Floats, other: Floats, most: float
) -> tuple[float, Floats]:
    r"""Return minus the penalised log likelihood of a share of the label, and its gradient.

    The share is :math:`p = c q + d (1 - q)` with c the `most` and q the chance whose log-odds are

    .. math:: h(s) = a + (s_1 - s_0) (b_0 (t - t^2 / 2) + b_1 t^2 / 2),
        \quad t = \frac{s - s_0}{s_1 - s_0},

    of slope :math:`b_0` at the lowest score and :math:`b_1` at the highest. The `parameters` are a,
    log b_0, log b_1 and log d. A row with the label adds :math:`-\log p`, another
    :math:`-\log (1 - p)`, and slopes that differ :math:`(\log b_1 / b_0)^2 / 20`.
    """
    from scipy.special import expit

    low, high, least = np.exp(parameters[1:])
    width = float(np.ptp(score)) or 1.0
    place = (score - score.min()) / width
    by_high = width * np.square(place) / 2.0
    by_low = width * place - by_high
    odds = parameters[0] + low * by_low + high * by_high
    above, below = expit(odds), expit(-odds)
    share = np.maximum(most * above + least * below, 1e-300)
    none = np.maximum((1.0 - most) * above + (1.0 - least) * below, 1e-300)
    change = parameters[2] - parameters[1]
    loss = -(own @ np.log(share) + other @ np.log(none)) + _BENT * change**2 / 2.0
    by_share = other / none - own / share
    by_odds = by_share * (most - least) * above * below
    of_low, of_high = by_odds @ by_low * low, by_odds @ by_high * high
    of_slopes = of_low - _BENT * change, of_high + _BENT * change
    return float(loss), np.array([by_odds.sum(), *of_slopes, by_share @ below * least])
