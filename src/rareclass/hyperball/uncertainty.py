"""How sure an F1 from a few rows is."""

from typing import NamedTuple

from scipy.stats import binomtest


class Counts(NamedTuple):
    """Rows that a classifier got right and wrong: true positives, false positives and negatives."""

    tp: int
    fp: int
    fn: int

    @property
    def f1(self) -> float:
        """``2 tp / (2 tp + fp + fn)``; 0 where nothing is rare and nothing was found."""
        n = 2 * self.tp + self.fp + self.fn
        return 2.0 * self.tp / n if n else 0.0


def f1_interval(counts: Counts, confidence: float = 0.95) -> tuple[float, float]:
    r"""Wilson's interval, carried over from the share of hits to the F1.

    Of the rows that are rare or were called so, :math:`J = tp / (tp + fp + fn)` are both. Given
    how many such rows there are, tp is binomial, and :math:`F_1 = 2 J / (1 + J)` grows with J: the
    limits of J are those of F1.

    Parameters
    ----------
    counts : Counts
        Of rows that were held out.
    confidence : float, default=0.95

    Returns
    -------
    tuple of float
        (0, 1) where no row is rare or was called so.

    Examples
    --------
    >>> low, high = f1_interval(Counts(3, 1, 1))
    >>> round(low, 2), round(high, 2)
    (0.37, 0.94)
    """
    n = counts.tp + counts.fp + counts.fn
    if not n:
        return 0.0, 1.0
    limits = binomtest(counts.tp, n).proportion_ci(confidence, method="wilson")
    low, high = float(limits.low), float(limits.high)
    return 2.0 * low / (1.0 + low), 2.0 * high / (1.0 + high)
