"""How two estimates on the same rows vary together, from what each row says of them."""

import math
from typing import NamedTuple

import numpy as np

from rareclass.metrics.paired_auc import RowInfluences
from rareclass.metrics.scored_classes import FloatArray
from rareclass.metrics.scored_pair import ClassPair, ScoredPair


class JointSpread(NamedTuple):
    """Variances and covariance of two estimates."""

    variance_a: float
    variance_b: float
    covariance: float

    def correlation(self, made_up_a: float, made_up_b: float) -> float:
        """Correlation of the estimates, each variance with a made-up row added to it.

        The made-up rows are those of the intervals of both. Where the estimates have a correlation
        r, theirs is ``max(2 r - 1, 0)``: they differ by twice as much as a row usually does.
        """
        a, b = self.variance_a + made_up_a, self.variance_b + made_up_b
        if not (a > 0.0 and b > 0.0):
            return 0.0
        as_it_is = _correlation(self.covariance, self.variance_a, self.variance_b)
        shared = max(2.0 * as_it_is - 1.0, 0.0) * math.sqrt(made_up_a) * math.sqrt(made_up_b)
        return _correlation(self.covariance + shared, a, b)

    @property
    def of_difference(self) -> float:
        """Variance of the difference, without made-up rows."""
        return max(self.variance_a + self.variance_b - 2.0 * self.covariance, 0.0)


def _correlation(covariance: float, variance_a: float, variance_b: float) -> float:
    if not (variance_a > 0.0 and variance_b > 0.0):
        return 0.0
    return min(max(covariance / math.sqrt(variance_a) / math.sqrt(variance_b), -1.0), 1.0)


def spread_of_rows(pair: ScoredPair, a: RowInfluences, b: RowInfluences) -> JointSpread:
    """``sum_i w_i a_i b_i / W**2`` added over both classes; with groups over sums by group.

    A group's sum has what its rare and its majority rows say, so the classes vary together as the
    groups do; the sum over groups is times ``G / (G - 1)``.
    """
    if pair.n_groups:
        sums = [_by_group(pair, each) for each in (a, b)]
        more = pair.n_groups / max(pair.n_groups - 1, 1)
        return JointSpread(
            *(more * float(x @ y) for x, y in ((sums[0], sums[0]), (sums[1], sums[1]), sums))
        )
    parts = [
        _of_class(pair.rare, a.of_rare, b.of_rare),
        _of_class(pair.majority, a.of_majority, b.of_majority),
    ]
    return JointSpread(*(x + y for x, y in zip(*parts, strict=True)))


def _of_class(rows: ClassPair, a: FloatArray, b: FloatArray) -> tuple[float, ...]:
    own, other = (a, b) if rows.weight is None else (rows.weight * a, rows.weight * b)
    # Two divisions: the square of an extreme weight could overflow.
    return tuple(float(x @ y) / rows.mass / rows.mass for x, y in ((own, a), (other, b), (own, b)))


def _by_group(pair: ScoredPair, of: RowInfluences) -> FloatArray:
    total = np.zeros(pair.n_groups)
    for rows, influence in ((pair.rare, of.of_rare), (pair.majority, of.of_majority)):
        own = influence if rows.weight is None else rows.weight * influence
        total += np.bincount(rows.group, own / rows.mass, pair.n_groups)  # type: ignore[arg-type]
    return total
