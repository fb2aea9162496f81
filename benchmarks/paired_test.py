"""Paired tests of two methods: on splits of one data set, and across data sets.

`paired` tests splits of one data set. Random splits share rows, so their differences are not
independent and the plain t-test finds too much. Nadeau and Bengio ("Inference for the
generalization error", Machine Learning 52, 2003) replace the variance of the mean, ``s^2 / n``, by
``s^2 (1 / n + n_test / n_train)``. Differences that do not vary, or a single one, say nothing of
how the next one would vary: p is then undefined, and nothing is called significant.

`across_sets` tests mean differences of several data sets by Wilcoxon's signed ranks (Demšar,
"Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006), and `holm` corrects
the p-values of several peers (Holm, Scandinavian Journal of Statistics 6, 1979).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special, stats

# Differences that vary by no more than this part of them are equal: they were rounded.
_ROUNDING = 1e-9


class Paired(NamedTuple):
    """One method minus another one on the same splits.

    Attributes
    ----------
    difference : float
        Mean, in the unit of the sample.
    p : float or None
        Two-sided p-value; None where it is undefined.
    n : int
        Number of pairs.
    """

    difference: float
    p: float | None
    n: int

    @property
    def p_words(self) -> str:
        """The p-value in words."""
        if self.p is None:
            return "p undefined"
        return "p < 0.001" if self.p < 0.001 else f"p = {self.p:.1g}"

    @property
    def p_cell(self) -> str:
        """The p-value in a column of a table."""
        if self.p is None:
            return "-"
        return "<0.001" if self.p < 0.001 else f"{self.p:.3f}"

    def words(self, unit: str = "points", decimals: int = 1) -> str:
        """The difference with its unit, and the p-value in brackets."""
        return f"{self.difference:+.{decimals}f} {unit} ({self.p_words})"

    def verdict(self, level: float = 0.05) -> str:
        """ "above" or "below" where the difference is significant at `level`, else "level"."""
        if self.p is None or self.p >= level:
            return "level"
        return "above" if self.difference > 0.0 else "below"


def paired(
    sample: Sequence[float] | np.ndarray, n_train: float = 1.0, n_test: float = 0.0
) -> Paired | None:
    """Test that the differences have a mean of 0; None without any.

    Parameters
    ----------
    sample : sequence of float
        The difference on each split.
    n_train, n_test : float
        Training and test rows of a random split, or their shares; the defaults are for differences
        that share no rows.

    Examples
    --------
    >>> paired([1.0, 2.0, 3.0], n_train=75, n_test=25).verdict()
    'level'
    >>> paired([1.0, 1.0]).p_words
    'p undefined'
    """
    values = np.asarray(sample, dtype=float)
    n = len(values)
    if n == 0:
        return None
    mean = float(values.mean())
    if n == 1 or np.ptp(values) <= _ROUNDING * np.abs(values).max():
        return Paired(mean, None, n)
    error = np.sqrt(values.var(ddof=1) * (1.0 / n + n_test / n_train))
    return Paired(mean, float(2.0 * special.stdtr(n - 1, -abs(mean / error))), n)


def paired_sets(differences: Sequence[float] | np.ndarray) -> Paired | None:
    """Test mean differences, one of each data set, by `across_sets`; None without any."""
    n = len(differences)
    return Paired(float(np.mean(differences)), across_sets(differences), n) if n else None


def paired_peers(differences: Mapping[str, Sequence[float]]) -> dict[str, Paired]:
    """Test each peer by `paired_sets`, its p-value adjusted by `holm` for the number of peers."""
    tests = {peer: test for peer, own in differences.items() if (test := paired_sets(own))}
    adjusted = holm([test.p for test in tests.values()])
    return {peer: t._replace(p=p) for (peer, t), p in zip(tests.items(), adjusted, strict=True)}


def across_sets(differences: Sequence[float] | np.ndarray) -> float | None:
    """Return the exact two-sided p-value of Wilcoxon's signed-rank test, a difference a data set.

    Differences of 0 are left out and equal ones share their mean rank; p is the share of the
    ``2^n`` choices of signs whose sum of ranks is as far from its mean. None where all are 0.

    Examples
    --------
    >>> across_sets([1.0, 2.0, 0.0, 3.0, 0.5, 0.7])
    0.0625
    """
    values = np.asarray(differences, dtype=float)
    values = values[np.abs(values) > _ROUNDING]
    if len(values) == 0:
        return None
    sizes = np.round(np.abs(values) / _ROUNDING)
    doubled = np.rint(2.0 * stats.rankdata(sizes)).astype(int)
    share = np.eye(1, doubled.sum() + 1)[0]  # of signs, by the doubled sum of the positive ranks
    for rank in doubled:
        share[rank:] += share[:-rank].copy()
        share /= 2.0
    distance = np.abs(2 * np.arange(len(share)) - doubled.sum())
    observed = abs(2 * doubled[values > 0.0].sum() - doubled.sum())
    return min(1.0, float(share[distance >= observed].sum()))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for their number by Holm's step-down method, in the given order.

    An undefined p-value stays undefined, and counts as a test.

    Examples
    --------
    >>> holm([0.01, 0.04, None, 0.03])
    [0.04, 0.09, None, 0.09]
    """
    filled = [1.0 if p is None else p for p in p_values]
    adjusted, largest = list(p_values), 0.0
    for place, which in enumerate(sorted(range(len(filled)), key=filled.__getitem__)):
        largest = max(largest, min(1.0, (len(filled) - place) * filled[which]))
        if adjusted[which] is not None:
            adjusted[which] = largest
    return adjusted
