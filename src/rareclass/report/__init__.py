"""Plots in scikit-learn's convention of displays, and the counts that they draw.

``from_estimator``, ``from_predictions`` and ``plot(ax=...)`` draw; the attributes hold what is
drawn. Plots need matplotlib, which `rareclass[cli]` brings. The pages of ``rareclass report`` are
made of them.
"""

from typing import TYPE_CHECKING

from rareclass.lazy_names import lazy_names

if TYPE_CHECKING:
    from rareclass.report.ball_display import draw_ball
    from rareclass.report.drawing import RankingDisplay
    from rareclass.report.ranking_section import GainsDisplay, PrecisionRecallDisplay, RocDisplay
    from rareclass.report.scores_section import ReliabilityDisplay, ScoreDistributionDisplay
    from rareclass.report.threshold_section import AlertsDisplay, CostDisplay
    from rareclass.report.threshold_table import ThresholdTable

__all__ = [
    "AlertsDisplay",
    "CostDisplay",
    "GainsDisplay",
    "PrecisionRecallDisplay",
    "RankingDisplay",
    "ReliabilityDisplay",
    "RocDisplay",
    "ScoreDistributionDisplay",
    "ThresholdTable",
    "draw_ball",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".ball_display": ["draw_ball"],
        ".drawing": ["RankingDisplay"],
        ".ranking_section": ["GainsDisplay", "PrecisionRecallDisplay", "RocDisplay"],
        ".scores_section": ["ReliabilityDisplay", "ScoreDistributionDisplay"],
        ".threshold_section": ["AlertsDisplay", "CostDisplay"],
        ".threshold_table": ["ThresholdTable"],
    },
)
