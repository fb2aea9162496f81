"""RankRC for rows that do not fit: the majority in mini-batches, only the rare rows held."""

from rareclass.ranking.stochastic.stochastic_rankrc import StochasticRankRC

__all__ = ["StochasticRankRC"]
