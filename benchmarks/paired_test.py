"""The paired t-test of two methods on the same splits, corrected for the rows that splits share.

Random splits of one table share rows, so their differences are not independent and the plain test
finds too much. Nadeau and Bengio ("Inference for the generalization error", Machine Learning 52,
2003) replace the variance of the mean, ``s^2 / n``, by ``s^2 (1 / n + n_test / n_train)``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special


class Paired(NamedTuple):
    """One method minus another one on the same splits.

    Attributes
    ----------
    difference : float
        Mean, in the unit of the sample.
    p : float or None
        Two-sided p-value; None for a single pair.
    n : int
        Number of pairs.
    """

    difference: float
    p: float | None
    n: int

    def verdict(self, level: float = 0.05) -> str:
        """ "above" or "below" where the difference is significant at `level`, else "level"."""
        if self.p is None or self.p >= level:
            return "level"
        return "above" if self.difference > 0.0 else "below"


def paired(sample: Sequence[float] | np.ndarray, test_over_train: float = 0.0) -> Paired | None:
    """Test that the differences have a mean of 0; None without any.

    Parameters
    ----------
    sample : sequence of float
        The difference on each split.
    test_over_train : float
        Test rows divided by training rows of a random split; 0 for independent differences.

    Examples
    --------
    >>> paired([1.0, 2.0, 3.0], test_over_train=1 / 3).verdict()
    'level'
    """
    values = np.asarray(sample, dtype=float)
    n = len(values)
    if n == 0:
        return None
    mean = float(values.mean())
    if n == 1:
        return Paired(mean, None, 1)
    if np.ptp(values) == 0.0:  # t is 0/0, or infinite
        return Paired(mean, 1.0 if mean == 0.0 else 0.0, n)
    error = np.sqrt(values.var(ddof=1) * (1.0 / n + test_over_train))
    return Paired(mean, float(2.0 * special.stdtr(n - 1, -abs(mean / error))), n)
