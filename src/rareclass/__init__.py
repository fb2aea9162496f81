"""Learns the class you have almost none of.

The rare class is held whole, the majority is only ever summed: see ``docs/``.

>>> from rareclass import RankRC
>>> RankRC(lam=0.01).lam
0.01
"""

from typing import TYPE_CHECKING

from rareclass.lazy_names import lazy_names

if TYPE_CHECKING:
    from rareclass.ensemble.rare_classifier import RareClassifier
    from rareclass.hyperball import RACH, RACHCV
    from rareclass.model.onnx import to_onnx
    from rareclass.model.skops_types import SKOPS_TRUSTED
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".ensemble.rare_classifier": ["RareClassifier"],
        ".hyperball": ["RACH", "RACHCV"],
        ".model.skops_types": ["SKOPS_TRUSTED"],
        ".model.onnx": ["to_onnx"],
        ".moments": ["MIBC", "MIBCCV"],
        ".opening": ["load"],
        ".ranking": [
            "OrdinalRankRC",
            "OrdinalRankRCCV",
            "RankRC",
            "RankRCCV",
            "RankSVM",
            "StochasticRankRC",
            "rankrc_path",
        ],
    },
)
