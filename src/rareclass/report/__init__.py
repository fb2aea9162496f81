"""Plots in scikit-learn's convention of displays, and the counts that they draw.

``from_estimator``, ``from_predictions`` and ``plot(ax=...)`` draw; the attributes hold what is
drawn. Plots need matplotlib, which `rareclass[cli]` brings. The pages of ``rareclass report`` are
made of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rareclass.lazy_names import lazy_names
from rareclass.parameters import COSTS, opt, read_costs

if TYPE_CHECKING:
    from rareclass.report.ball_display import draw_ball
    from rareclass.report.curves import (
        AlertsDisplay,
        CostDisplay,
        GainsDisplay,
        PrecisionRecallDisplay,
        RocDisplay,
    )
    from rareclass.report.drawing import RankingDisplay
    from rareclass.report.scores_section import ReliabilityDisplay, ScoreDistributionDisplay
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


@dataclass(frozen=True)
class ReportOptions:
    """Columns of the rows of a report, and how much of them is shown."""

    target: str | None = opt("Column with the classes, if it has another name.")
    time: str | None = opt("Column with the time of a row, for alerts a day.")
    groups: str | None = opt("Column of subgroups, each evaluated separately.")
    id_column: str | None = opt("Column with row identifiers, shown with single rows.")
    costs: Mapping[str, float | str] | None = opt(COSTS, reads=read_costs)
    rows: int = opt(
        "Number of rows with the highest scores to show, with their cells.", 0, min=0, max=100
    )
    journal: Path | None = None  # of the rows that were checked


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".ball_display": ["draw_ball"],
        ".drawing": ["RankingDisplay"],
        ".curves": [
            "AlertsDisplay", "CostDisplay", "GainsDisplay", "PrecisionRecallDisplay", "RocDisplay",
        ],
        ".scores_section": ["ReliabilityDisplay", "ScoreDistributionDisplay"],
        ".threshold_table": ["ThresholdTable"],
    },
)  # fmt: skip
