"""Plots in scikit-learn's convention of displays; they need matplotlib, as `rareclass[cli]` brings.

``from_estimator``, ``from_predictions`` and ``plot(ax=...)`` draw; what is drawn is in the
attributes. The page of ``rareclass report`` is made of them.
"""

from rareclass.report.displays.ball_display import BallDisplay, draw_ball
from rareclass.report.displays.curve_displays import (
    AlertsDisplay,
    CostDisplay,
    GainsDisplay,
    PrecisionRecallDisplay,
    RocDisplay,
)
from rareclass.report.displays.feature_scales_display import (
    FeatureScalesDisplay,
    draw_feature_scales,
)
from rareclass.report.displays.lam_path_display import LamPathDisplay
from rareclass.report.displays.landmark_map_display import LandmarkMapDisplay
from rareclass.report.displays.ranking_display import RankingDisplay
from rareclass.report.displays.reliability_display import ReliabilityDisplay
from rareclass.report.displays.score_distribution_display import ScoreDistributionDisplay
from rareclass.report.summaries.reliability import Reliability
from rareclass.report.summaries.score_distribution import ScoreDistribution
from rareclass.report.summaries.threshold_table import ThresholdTable

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
