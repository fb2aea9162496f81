"""Online bipartite ranking: learners that see a row once and hold a bounded part of the stream."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_HOME = {
    "CBR": "cbr",
    "OAM": "oam",
    "OPAUC": "opauc",
    "AdaOAM": "opauc",
    "OnlineLogistic": "univariate",
    "OnlineMixture": "mixture",
    "OnlineRanker": "ranker",
    "UniExp": "univariate",
    "as_river": "river_adapter",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: compiled loops load only when they run."""
    if name in _HOME:
        return getattr(import_module(f"rareclass.online.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rareclass.online' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
