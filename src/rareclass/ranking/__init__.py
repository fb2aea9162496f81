"""Kernel ranking machines that maximise the AUC: RankRC, RankSVM and their selection."""

from rareclass.ranking.ordinal_rankrc import OrdinalRankRC, OrdinalRankRCCV
from rareclass.ranking.rankrc import RankRC, RankSVM, rankrc_path
from rareclass.ranking.rankrc_cv import RankRCCV
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
