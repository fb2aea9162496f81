"""Losses on pairs of rows, in score space: one a file."""

from rareclass.ranking.losses.pair_loss import NO_LEVELS, BlockTerms, PairLoss, RareTerms
from rareclass.ranking.losses.piecewise_quadratic import RareSide, Zone
from rareclass.ranking.losses.registry import LOSSES, make_loss
from rareclass.ranking.losses.smoothed_hinge import SmoothedHinge

__all__ = [
    "LOSSES",
    "NO_LEVELS",
    "BlockTerms",
    "PairLoss",
    "RareSide",
    "RareTerms",
    "SmoothedHinge",
    "Zone",
    "make_loss",
]
