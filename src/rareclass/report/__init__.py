"""Plots in scikit-learn's convention of displays, and the counts that they draw.

``from_estimator``, ``from_predictions`` and ``plot(ax=...)`` draw; the attributes hold what is
drawn. Plots need matplotlib, which `rareclass[cli]` brings. The pages of ``rareclass report`` are
made of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rareclass.report.ball_display import BallDisplay, draw_ball
    from rareclass.report.drawing import RankingDisplay
    from rareclass.report.kernel_displays import (
        FeatureScalesDisplay,
        LamPathDisplay,
        LandmarkMapDisplay,
        draw_feature_scales,
    )
    from rareclass.report.ranking_section import GainsDisplay, PrecisionRecallDisplay, RocDisplay
    from rareclass.report.scores_section import (
        Reliability,
        ReliabilityDisplay,
        ScoreDistribution,
        ScoreDistributionDisplay,
    )
    from rareclass.report.threshold_section import AlertsDisplay, CostDisplay
    from rareclass.report.threshold_table import ThresholdTable

__all__ = [
    "AlertsDisplay",
    "BallDisplay",
    "CostDisplay",
    "FeatureScalesDisplay",
    "GainsDisplay",
    "LamPathDisplay",
    "LandmarkMapDisplay",
    "PrecisionRecallDisplay",
    "RankingDisplay",
    "Reliability",
    "ReliabilityDisplay",
    "RocDisplay",
    "ScoreDistribution",
    "ScoreDistributionDisplay",
    "ThresholdTable",
    "draw_ball",
    "draw_feature_scales",
]

_HOMES = {
    "ball_display": ("BallDisplay", "draw_ball"),
    "drawing": ("RankingDisplay",),
    "ranking_section": ("GainsDisplay", "PrecisionRecallDisplay", "RocDisplay"),
    "scores_section": (
        "Reliability", "ReliabilityDisplay", "ScoreDistribution", "ScoreDistributionDisplay",
    ),
    "threshold_section": ("AlertsDisplay", "CostDisplay"),
    "threshold_table": ("ThresholdTable",),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((room for room, names in _HOMES.items() if name in names), "kernel_displays")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
