"""Kernel ranking machines that maximise the AUC: RankRC, RankSVM and their selection."""

from rareclass.ranking.rankrc import RankRC, RankSVM, rankrc_path
from rareclass.ranking.rankrc_cv import RankRCCV

__all__ = ["RankRC", "RankRCCV", "RankSVM", "rankrc_path"]
