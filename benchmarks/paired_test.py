"""The paired t-test of two methods on the same splits, corrected for the rows that splits share.

Every benchmark that compares methods on splits calls it: on one set with the numbers of rows that a
split trains and tests on; over several sets with the mean difference of each, which share no rows.

Random splits of one table share rows, so their differences are not independent and the plain test
finds too much. Nadeau and Bengio ("Inference for the generalization error", Machine Learning 52,
2003) replace the variance of the mean, ``s^2 / n``, by ``s^2 (1 / n + n_test / n_train)``.

Differences that do not vary, or a single one, say nothing of how the next one would vary: p is then
undefined, and nothing is called significant.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

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
