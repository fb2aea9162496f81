"""What a loss asks of a block, wherever the block's scores are.

A loss that works by the array API is asked where they are. Any other, such as one of somebody's
own, is asked in numpy: scores go there and slopes come back, 24 bytes a row and question.
"""

from collections.abc import Callable
from typing import Any

from rareclass.array_api import is_elsewhere, like, to_numpy
from rareclass.ranking.losses.majority_outer import MajorityOuterLoss
from rareclass.ranking.losses.margin_loss import MarginLoss
from rareclass.ranking.losses.pair_loss import BlockTerms, PairLoss


def block_terms(loss: PairLoss, rare: Any, scores: Any, weight: Any) -> BlockTerms:
    """Value, gradient and rare-side sums of a block of majority rows."""
    if _asked_there(loss, scores):
        return loss.block(rare, scores, weight)
    here = loss.block(_in_numpy(rare), to_numpy(scores), to_numpy(weight))
    gradient, sums = like(here.gradient, scores), like(here.sums, scores)
    return BlockTerms(here.value, gradient, sums, here.zone)


def curvature(
    loss: PairLoss, rare: Any, prefix: Any, zone: Any, direction: Any, weight: Any
) -> tuple[Any, Any]:
    """Hessian times direction of a block: by majority row, and rare-side sums."""
    if _asked_there(loss, direction):
        return loss.curvature(rare, prefix, zone, direction, weight)
    by_row, sums = loss.curvature(
        _in_numpy(rare), _in_numpy(prefix), zone, to_numpy(direction), to_numpy(weight)
    )
    return like(by_row, direction), like(sums, direction)


def rare_sums(loss: MarginLoss, rare: Any, scores: Any, weight: Any) -> Any:
    """What a block adds to the sums that make each rare row's own sum over the majority."""
    return _asked(loss, loss.rare_sums, rare, scores, weight)


def pair_curvature(loss: PairLoss, rare: Any, which: slice, scores: Any) -> Any:
    """Curvature of pairs of some rare rows with majority scores."""
    return _asked(loss, loss.pair_curvature, rare, which, scores)


def pair_slope(loss: MajorityOuterLoss, rare: Any, which: slice, scores: Any) -> Any:
    """Minus the slope of the majority rows' means in the margins of pairs."""
    return _asked(loss, loss.pair_slope, rare, which, scores)


def row_curvatures(loss: MajorityOuterLoss, rare: Any, scores: Any) -> Any:
    """Curvature of every part of the outer function in the majority rows' means."""
    return _asked(loss, loss.row_curvatures, rare, scores)


def _asked(loss: PairLoss, ask: Callable[..., Any], *about: Any) -> Any:
    """One array by row or rare row; the last argument is where it is wanted."""
    if _asked_there(loss, about[-1]):
        return ask(*about)
    return like(ask(*map(_in_numpy, about)), about[-1])


def _asked_there(loss: PairLoss, scores: Any) -> bool:
    # A loss of somebody's own may say nothing about it.
    return not is_elsewhere(scores) or getattr(loss, "by_array_api", False)


def _in_numpy(value: Any) -> Any:
    """What a loss knows of the rare side, with its arrays in numpy's hands."""
    if isinstance(value, tuple | list):
        parts = map(_in_numpy, value)
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return to_numpy(value) if is_elsewhere(value) else value
