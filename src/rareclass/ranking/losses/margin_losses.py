"""Losses of a pair's margin by name: what losses that look at the top are made of."""

from collections.abc import Callable

from rareclass.ranking.losses.exponential import Exponential
from rareclass.ranking.losses.logistic import Logistic
from rareclass.ranking.losses.margin_loss import MarginLoss
from rareclass.ranking.losses.piecewise_quadratic import SmoothedHinge, SquaredHinge

MARGIN_LOSSES: dict[str, Callable[..., MarginLoss]] = {
    "smoothed_hinge": SmoothedHinge,
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
    "exponential": Exponential,
}


def make_margin_loss(name: str, eps: float) -> MarginLoss:
    """The loss of a pair that a loss is built on."""
    if not isinstance(name, str) or name not in MARGIN_LOSSES:
        raise ValueError(f"pair_loss={name!r} is not one of {sorted(MARGIN_LOSSES)}.")
    return SmoothedHinge(eps) if name == "smoothed_hinge" else MARGIN_LOSSES[name]()
