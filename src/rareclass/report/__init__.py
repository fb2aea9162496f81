"""Plots in scikit-learn's convention of displays, and the counts that they draw.

``from_estimator``, ``from_predictions`` and ``plot(ax=...)`` draw; the attributes hold what is
drawn. Plots need matplotlib, which `rareclass[cli]` brings. The pages of ``rareclass report`` are
made of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rareclass.report.ball_display import BallDisplay, draw_ball
    from rareclass.report.curve_displays import (
        AlertsDisplay,
        CostDisplay,
        GainsDisplay,
        PrecisionRecallDisplay,
        RocDisplay,
    )
    from rareclass.report.kernel_displays import (
        FeatureScalesDisplay,
        LamPathDisplay,
        LandmarkMapDisplay,
        draw_feature_scales,
    )
    from rareclass.report.ranking_display import RankingDisplay
    from rareclass.report.reliability import Reliability, ReliabilityDisplay
    from rareclass.report.score_distribution import ScoreDistribution, ScoreDistributionDisplay
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

_HOME = {
    "BallDisplay": "ball_display",
    "draw_ball": "ball_display",
    "FeatureScalesDisplay": "kernel_displays",
    "LamPathDisplay": "kernel_displays",
    "LandmarkMapDisplay": "kernel_displays",
    "draw_feature_scales": "kernel_displays",
    "RankingDisplay": "ranking_display",
    "Reliability": "reliability",
    "ReliabilityDisplay": "reliability",
    "ScoreDistribution": "score_distribution",
    "ScoreDistributionDisplay": "score_distribution",
    "ThresholdTable": "threshold_table",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME.get(name, 'curve_displays')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
