"""The moments of a set of rows: what merges, what can be taken out again, and nothing else."""

from typing import NamedTuple

import numpy as np

# A variance that falls below this share of what it was before rows were taken out is rounding
# error: the rows that are left are constant there.
_GONE = 1e-12


class Moments(NamedTuple):
    r"""Weight, mean and central second moments of rows, and what shrinkage needs of higher ones.

    Two disjoint sets of rows a and b have together

    .. math::

        W = W_a + W_b, \quad \mu = \mu_a + \frac{W_b}{W} \delta, \quad
        S = S_a + S_b + \frac{W_a W_b}{W} \delta \delta', \qquad \delta = \mu_b - \mu_a

    (Chan, Golub, LeVeque 1979): no large numbers are subtracted, whatever the mean is.
    """

    n_rows: int  # with a weight above 0
    weight: float  # W, the sum of their weights
    mean: np.ndarray  # mu
    variance_sum: np.ndarray  # the diagonal of S: sum of w (x - mu)^2 for each feature
    scatter: np.ndarray  # S, the sum of w (x - mu)(x - mu)'; of shape (0, 0) where it is not kept
    third: np.ndarray  # sum of w ||x - mu||^2 (x - mu); of shape (0,) where it is not kept
    fourth: float  # sum of w ||x - mu||^4, kept with it
    sketch: np.ndarray  # S times `probes`, shape (n_features, k); k is 0 where it is not kept
    probes: np.ndarray  # random directions, the same for all sets of rows that are to be merged

    @property
    def variance(self) -> np.ndarray:
        """Variance of each feature (divisor W)."""
        return self.variance_sum / self.weight

    @property
    def covariance(self) -> np.ndarray:
        """Covariance (divisor W), where the scatter is kept."""
        return self.scatter / self.weight


def merge(a: Moments, b: Moments) -> Moments:
    """The moments of two disjoint sets of rows together, exactly.

    >>> from rareclass.moments.summing import moments_of_array
    >>> a, b = moments_of_array([[1.0], [2.0]]), moments_of_array([[6.0]])
    >>> merge(a, b).mean.tolist(), merge(a, b).variance_sum.tolist()
    ([3.0], [14.0])
    """
    if not a.weight:
        return b
    if not b.weight:
        return a
    weight = a.weight + b.weight
    delta = b.mean - a.mean
    mean = a.mean + delta * (b.weight / weight)
    return _sum_about(mean, a, b)._replace(n_rows=a.n_rows + b.n_rows, weight=weight)


def remove(whole: Moments, part: Moments) -> Moments:
    """The moments that are left when a part of the rows is taken out: the inverse of `merge`.

    Where the part holds most of a feature's variance, what is left has as many digits fewer; a
    feature whose variance all but vanishes is taken to be constant in what is left.
    """
    if not part.weight:
        return whole
    weight = whole.weight - part.weight
    mean = whole.mean - (part.mean - whole.mean) * (part.weight / weight)
    at, gone = _about(whole, mean), _about(part, mean)
    variance_sum = at.variance_sum - gone.variance_sum
    constant = variance_sum <= _GONE * at.variance_sum
    variance_sum[constant] = 0.0
    scatter, sketch = at.scatter - gone.scatter, at.sketch - gone.sketch
    sketch[constant] = 0.0
    if scatter.size:
        scatter[constant] = scatter[:, constant] = 0.0
    return whole._replace(
        n_rows=whole.n_rows - part.n_rows,
        weight=weight,
        mean=mean,
        variance_sum=variance_sum,
        scatter=scatter,
        third=at.third - gone.third,
        fourth=max(at.fourth - gone.fourth, 0.0),
        sketch=sketch,
    )


def _sum_about(mean: np.ndarray, a: Moments, b: Moments) -> Moments:
    a, b = _about(a, mean), _about(b, mean)
    return a._replace(
        mean=mean,
        variance_sum=a.variance_sum + b.variance_sum,
        scatter=a.scatter + b.scatter,
        third=a.third + b.third,
        fourth=a.fourth + b.fourth,
        sketch=a.sketch + b.sketch,
    )


def _about(moments: Moments, centre: np.ndarray) -> Moments:
    """The same sums with ``centre`` in place of the mean.

    With y = x - mu, sum of w y = 0 and e = centre - mu: the sums of w (y - e)(y - e)',
    w ||y - e||^2 (y - e) and w ||y - e||^4, multiplied out.
    """
    e, weight = centre - moments.mean, moments.weight
    scatter, third, fourth = moments.scatter, moments.third, moments.fourth
    if third.size:
        length, trace, pulled = float(e @ e), float(np.trace(scatter)), scatter @ e
        fourth += 4.0 * (e @ pulled) + weight * length**2 - 4.0 * (third @ e) + 2.0 * length * trace
        third = third - 2.0 * pulled - (trace + weight * length) * e
    if scatter.size:
        scatter = scatter + weight * np.outer(e, e)
    return moments._replace(
        variance_sum=moments.variance_sum + weight * e**2,
        scatter=scatter,
        third=third,
        fourth=float(fourth),
        sketch=moments.sketch + weight * np.outer(e, e @ moments.probes),
    )
