"""Losses on pairs of rows, in score space: one a file.

Losses of each pair's margin alone: `SmoothedHinge`, `SquaredHinge`, `Logistic`, `Exponential`.
Losses that look at the top of the list, built on those: `PNormPush` and `PartialAUC`, outer
functions of each majority row's own sum; `Top`, one of each rare row's own sum.
"""

from rareclass.ranking.losses.logistic import Logistic
from rareclass.ranking.losses.majority_outer import PartialAUC, PNormPush
from rareclass.ranking.losses.margin_losses import Exponential
from rareclass.ranking.losses.pair_loss import NO_LEVELS, BlockTerms, PairLoss, RareTerms
from rareclass.ranking.losses.piecewise_quadratic import RareSide, SmoothedHinge, SquaredHinge, Zone
from rareclass.ranking.losses.rare_outer import Top
from rareclass.ranking.losses.registry import LOSSES, make_loss

__all__ = [
    "LOSSES",
    "NO_LEVELS",
    "BlockTerms",
    "Exponential",
    "Logistic",
    "PNormPush",
    "PairLoss",
    "PartialAUC",
    "RareSide",
    "RareTerms",
    "SmoothedHinge",
    "SquaredHinge",
    "Top",
    "Zone",
    "make_loss",
]
