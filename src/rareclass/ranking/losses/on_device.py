r"""What a loss asks of a block whose scores an array library has: the array API alone.

Losses of three pieces are worked out where the scores are. What `_piecewise_quadratic_jit` scatters
row by row is a difference of prefix sums over the rows in the order of their scores: both ends of a
row's zone grow with its score, so that the rows whose zone ends at one rare row are neighbours.

Any other loss is worked out in numpy: scores go there and slopes come back, 24 bytes a row and
question.
"""

from typing import Any, NamedTuple

import numpy as np

from rareclass.array_api import is_elsewhere, like, namespace, to_numpy
from rareclass.ranking.losses.margin_loss import MarginLoss
from rareclass.ranking.losses.pair_loss import BlockTerms, PairLoss
from rareclass.ranking.losses.piecewise_quadratic import PiecewiseQuadratic, RareSide
from rareclass.ranking.losses.rare_outer import RareOuterLoss


class OrderedZone(NamedTuple):
    """Rare rows ``low[j]:high[j]`` (sorted) make a pair with curvature with majority row j.

    ``order`` leads through the rows by score. Of the rows in this order the first
    ``low_ends[i]`` have low at most i, and the first ``high_ends[i]`` high: shape (m+ + 1,).
    """

    low: Any
    high: Any
    order: Any
    low_ends: Any
    high_ends: Any


def block_terms(loss: PairLoss, rare: Any, scores: Any, weight: Any) -> BlockTerms:
    """Value, gradient and rare-side sums of a block of majority rows, wherever its scores are."""
    if not is_elsewhere(scores):
        return loss.block(rare, scores, weight)
    loss = _of_pairs(loss)
    if isinstance(loss, PiecewiseQuadratic):
        return _piecewise_block(loss, rare, scores, weight)
    here = loss.block(_in_numpy(rare), to_numpy(scores), to_numpy(weight))
    gradient, sums = like(here.gradient, scores), like(here.sums, scores)
    return BlockTerms(here.value, gradient, sums, here.zone)


def curvature(
    loss: PairLoss, rare: Any, prefix: Any, zone: Any, direction: Any, weight: Any
) -> tuple[Any, Any]:
    """Hessian times direction of a block: by majority row, and rare-side sums."""
    if not is_elsewhere(direction):
        return loss.curvature(rare, prefix, zone, direction, weight)
    loss = _of_pairs(loss)
    if isinstance(loss, PiecewiseQuadratic):
        return _piecewise_curvature(loss, rare, prefix, zone, direction, weight)
    by_row, sums = loss.curvature(
        _in_numpy(rare), _in_numpy(prefix), zone, to_numpy(direction), to_numpy(weight)
    )
    return like(by_row, direction), like(sums, direction)


def curved(loss: PairLoss, zone: Any) -> Any:
    """Which rows of a block have a pair with curvature: bool, shape (n,)."""
    return zone.high > zone.low if isinstance(zone, OrderedZone) else loss.curved(zone)


def rare_sums(loss: MarginLoss, rare: Any, scores: Any, weight: Any) -> Any:
    """What a block adds to the sums that make each rare row's own sum over the majority."""
    if not is_elsewhere(scores):
        return loss.rare_sums(rare, scores, weight)
    here = loss.rare_sums(_in_numpy(rare), to_numpy(scores), to_numpy(weight))
    return like(here, scores)


def _of_pairs(loss: PairLoss) -> PairLoss:
    """The loss that blocks see: one with an outer function over rare rows has that of its pairs."""
    return loss.pair if isinstance(loss, RareOuterLoss) else loss


def _piecewise_block(loss: PiecewiseQuadratic, rare: RareSide, scores: Any, weight: Any) -> Any:
    xp, shape, n = namespace(scores), loss.shape, rare.scores.shape[0]
    t = scores - float(rare.centre)
    order = xp.argsort(t)
    in_order, w = xp.take(t, order), xp.take(weight, order)
    low, high = _zones(xp, rare, in_order, shape.bound)
    ends = like(np.arange(n + 1), scores)
    low_ends, high_ends = (xp.searchsorted(of, ends, side="right") for of in (low, high))
    # Sums of one row over its linear zone, and over its quadratic one.
    linear = [xp.take(prefix, low) for prefix in (rare.weight_sum, rare.score_sum)]
    count, s1, s2 = (xp.take(prefix, high) - xp.take(prefix, low) for prefix in rare.prefixes)
    a = 1.0 + in_order
    squares = a * a * count - 2.0 * a * s1 + s2
    squares = xp.where(squares > 0.0, squares, xp.zeros_like(squares))
    total = shape.steep * (linear[0] * (shape.knee + in_order) - linear[1])
    total = total + 0.5 * shape.curve * squares
    slope = w * (shape.steep * linear[0] + shape.curve * (a * count - s1))
    by_low = _between(xp, w, low_ends)
    quadratic = [
        _between(xp, term, low_ends) - _between(xp, term, high_ends) for term in (w, w * a)
    ]
    back = xp.argsort(order)
    counts = weight != 0.0
    low, high = (xp.where(counts, xp.take(of, back), xp.zeros_like(of)) for of in (low, high))
    return BlockTerms(
        xp.sum(w * total),
        xp.take(slope, back),
        xp.stack([by_low, *quadratic]),
        OrderedZone(low, high, order, low_ends, high_ends),
    )


def _zones(xp: Any, rare: RareSide, scores: Any, bound: float) -> tuple[Any, Any]:
    """Where the zones of each majority row end among the sorted rare rows."""
    high = xp.searchsorted(rare.scores, scores + 1.0, side="left")
    if bound == -np.inf:
        return xp.zeros_like(high), high
    return xp.searchsorted(rare.scores, scores + bound, side="left"), high


def _piecewise_curvature(
    loss: PiecewiseQuadratic,
    rare: RareSide,
    prefix: Any,
    zone: OrderedZone,
    direction: Any,
    weight: Any,
) -> tuple[Any, Any]:
    xp = namespace(direction)
    count, change = (
        xp.take(sums, zone.high) - xp.take(sums, zone.low)
        for sums in (rare.weight_sum, prefix.weight_sum)
    )
    product = loss.shape.curve * weight * (direction * count - change)
    sums = []
    for term in (weight, weight * direction):
        in_order = xp.take(term, zone.order)
        sums.append(_between(xp, in_order, zone.low_ends) - _between(xp, in_order, zone.high_ends))
    return product, xp.stack(sums)


def _between(xp: Any, values: Any, ends: Any) -> Any:
    """Sums of values from one end to the next, the first from the beginning."""
    up_to = xp.take(xp.cumulative_sum(values, include_initial=True), ends)
    return xp.concat([up_to[:1], xp.diff(up_to)])


def _in_numpy(value: Any) -> Any:
    """What a loss knows of the rare side, with its arrays in numpy's hands."""
    if isinstance(value, tuple | list):
        parts = map(_in_numpy, value)
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return to_numpy(value) if is_elsewhere(value) else value
