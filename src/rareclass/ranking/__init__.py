"""Kernel ranking machines that maximise the AUC: RankRC, RankSVM and their selection."""

from rareclass.ranking.ordinal_rankrc import OrdinalRankRC, OrdinalRankRCCV
from rareclass.ranking.rankrc import RankRC, RankRCCV, RankSVM, rankrc_path
from rareclass.ranking.stochastic_rankrc import StochasticRankRC

__all__ = [
    "OrdinalRankRC",
    "OrdinalRankRCCV",
    "RankRC",
    "RankRCCV",
    "RankSVM",
    "StochasticRankRC",
    "rankrc_path",
]
