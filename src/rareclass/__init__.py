"""Learns the class you have almost none of.

The rare class is held whole, the majority is only ever summed: see ``docs/``.

>>> from rareclass import RankRC
>>> RankRC(lam=0.01).lam
0.01
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rareclass.ensemble.rare_classifier import RareClassifier
    from rareclass.hyperball import RACH, RACHCV
    from rareclass.model.kinds import SKOPS_TRUSTED
    from rareclass.model.to_onnx import to_onnx
    from rareclass.moments import MIBC, MIBCCV
    from rareclass.opening import load
    from rareclass.ranking import (
        OrdinalRankRC,
        OrdinalRankRCCV,
        RankRC,
        RankRCCV,
        RankSVM,
        StochasticRankRC,
        rankrc_path,
    )

__version__ = "0.1.0"
__all__ = [
    "MIBC",
    "MIBCCV",
    "RACH",
    "RACHCV",
    "SKOPS_TRUSTED",
    "OrdinalRankRC",
    "OrdinalRankRCCV",
    "RankRC",
    "RankRCCV",
    "RankSVM",
    "RareClassifier",
    "StochasticRankRC",
    "__version__",
    "load",
    "rankrc_path",
    "to_onnx",
]

_HOME = {
    **dict.fromkeys(
        (
            "OrdinalRankRC",
            "OrdinalRankRCCV",
            "RankRC",
            "RankRCCV",
            "RankSVM",
            "StochasticRankRC",
            "rankrc_path",
        ),
        "rareclass.ranking",
    ),
    **dict.fromkeys(("MIBC", "MIBCCV"), "rareclass.moments"),
    **dict.fromkeys(("RACH", "RACHCV"), "rareclass.hyperball"),
    "RareClassifier": "rareclass.ensemble.rare_classifier",
    "load": "rareclass.opening",
    "SKOPS_TRUSTED": "rareclass.model.kinds",
    "to_onnx": "rareclass.model.to_onnx",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that the command line starts quickly."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'rareclass' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
