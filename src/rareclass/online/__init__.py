"""Online bipartite ranking: learners that see a row once and hold a bounded part of the stream."""

from typing import TYPE_CHECKING

from rareclass.lazy_names import lazy_names

if TYPE_CHECKING:
    from rareclass.online.cbr import CBR
    from rareclass.online.mixture import OnlineMixture
    from rareclass.online.oam import OAM
    from rareclass.online.opauc import OPAUC, AdaOAM
    from rareclass.online.ranker import OnlineRanker
    from rareclass.online.river_adapter import as_river
    from rareclass.online.univariate import OnlineLogistic, UniExp

__all__ = [
    "CBR",
    "OAM",
    "OPAUC",
    "AdaOAM",
    "OnlineLogistic",
    "OnlineMixture",
    "OnlineRanker",
    "UniExp",
    "as_river",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".cbr": ["CBR"],
        ".mixture": ["OnlineMixture"],
        ".oam": ["OAM"],
        ".opauc": ["OPAUC", "AdaOAM"],
        ".ranker": ["OnlineRanker"],
        ".river_adapter": ["as_river"],
        ".univariate": ["OnlineLogistic", "UniExp"],
    },
)
