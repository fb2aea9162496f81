"""What `_piecewise_quadratic_jit` loops over, by the array API alone.

What is scattered there row by row is a difference of prefix sums over the rows in the order of
their scores: both ends of a row's zone grow with its score, so that the rows whose zone ends at one
rare row are neighbours.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rareclass.array_api import like, namespace, sums_between
from rareclass.ranking.losses.margin_loss import RowTerms


class OrderedZone(NamedTuple):
    """Rare rows ``low[j]:high[j]`` (sorted) make a pair with curvature with majority row j.

    ``scores`` are centred, ``order`` leads through the rows by score. Of the rows in this order the
    first ``low_ends[i]`` have low at most i, and the first ``high_ends[i]`` high: shape (m+ + 1,).
    """

    low: Any
    high: Any
    scores: Any
    order: Any
    low_ends: Any
    high_ends: Any

    def among(self, there: Any) -> "OrderedZone":
        """The same with empty zones of rows that are not there."""
        xp = namespace(there)
        low, high = (xp.where(there, of, xp.zeros_like(of)) for of in (self.low, self.high))
        return self._replace(low=low, high=high)


def rows(rare: Any, scores: Any, shape: Any) -> RowTerms:
    """Each majority row's sum over the rare rows, its slope, its zones."""
    xp, n = namespace(scores), rare.scores.shape[0]
    t = scores - float(rare.centre)
    order = xp.argsort(t)
    low, high = _zones(xp, rare.scores, t, shape.bound)
    places = like(np.arange(n + 1), scores)
    low_ends, high_ends = (
        xp.searchsorted(xp.take(of, order), places, side="right") for of in (low, high)
    )
    # Sums of one row over its linear zone, and over its quadratic one.
    linear = [xp.take(prefix, low) for prefix in (rare.weight_sum, rare.score_sum)]
    count, s1, s2 = (_over(xp, prefix, low, high) for prefix in rare.prefixes)
    a = 1.0 + t
    squares = a * a * count - 2.0 * a * s1 + s2
    squares = xp.where(squares > 0.0, squares, 0.0)
    total = shape.steep * (linear[0] * (shape.knee + t) - linear[1]) + 0.5 * shape.curve * squares
    slope = shape.steep * linear[0] + shape.curve * (a * count - s1)
    return RowTerms(total, slope, OrderedZone(low, high, t, order, low_ends, high_ends))


def _zones(xp: Any, rare_scores: Any, scores: Any, bound: float) -> tuple[Any, Any]:
    """Where the zones of each majority row end among the sorted rare rows."""
    high = xp.searchsorted(rare_scores, scores + 1.0, side="left")
    if bound == -np.inf:
        return xp.zeros_like(high), high
    return xp.searchsorted(rare_scores, scores + bound, side="left"), high


def _over(xp: Any, prefix: Any, low: Any, high: Any) -> Any:
    """Sum over the rare rows of each zone."""
    return xp.take(prefix, high) - xp.take(prefix, low)


def pull(zone: Sequence[Any], weight: Any) -> Any:
    """Additive rare-side sums of weighted majority rows."""
    a = 1.0 + zone[2]
    return namespace(weight).stack(
        [_linear(zone, weight), _quadratic(zone, weight), _quadratic(zone, weight * a)]
    )


def _linear(zone: Sequence[Any], values: Any) -> Any:
    """Sums of values by where the linear zones of their rows end."""
    _, _, _, order, low_ends, _ = zone
    return sums_between(namespace(values).take(values, order), low_ends)


def _quadratic(zone: Sequence[Any], values: Any) -> Any:
    """What values add at one end of the quadratic zones of their rows less that at the other."""
    _, _, _, order, low_ends, high_ends = zone
    in_order = namespace(values).take(values, order)
    return sums_between(in_order, low_ends) - sums_between(in_order, high_ends)


def row_change(rare: Any, prefix: Any, zone: Sequence[Any], direction: Any, shape: Any) -> Any:
    """Change of each majority row's sum along a direction of all scores."""
    xp, (low, high, t) = namespace(direction), zone[:3]
    a = 1.0 + t
    linear = direction * xp.take(rare.weight_sum, low) - xp.take(prefix.weight_sum, low)
    count, s1, d, ds = (
        _over(xp, sums, low, high)
        for sums in (rare.weight_sum, rare.score_sum, prefix.weight_sum, prefix.score_sum)
    )
    return shape.steep * linear + shape.curve * (direction * (a * count - s1) - (a * d - ds))


def curvature(
    rare: Any, prefix: Any, zone: Sequence[Any], direction: Any, weight: Any, curve: float
) -> tuple[Any, Any]:
    """Hessian-vector product of a block: by row, and additive rare-side sums."""
    xp, (low, high) = namespace(direction), zone[:2]
    count, change = (_over(xp, sums, low, high) for sums in (rare.weight_sum, prefix.weight_sum))
    product = curve * weight * (direction * count - change)
    return product, xp.stack([_quadratic(zone, w) for w in (weight, weight * direction)])


def rare_sums(rare: Any, scores: Any, weight: Any, shape: Any) -> Any:
    """Additive sums of 1, t over the linear zone and 1, 1 + t, (1 + t)^2 over the quadratic."""
    zone = rows(rare, scores, shape).zone
    a = 1.0 + zone.scores
    linear = [_linear(zone, term) for term in (weight, weight * zone.scores)]
    quadratic = [_quadratic(zone, term) for term in (weight, weight * a, weight * a * a)]
    return namespace(scores).stack(linear + quadratic)
