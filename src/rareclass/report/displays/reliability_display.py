"""Whether probabilities hold, on logarithmic axes."""

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rareclass.report.displays.look import BLUE, GREY, log_axis
from rareclass.report.displays.ranking_display import RankingDisplay
from rareclass.report.summaries.reliability import Reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ReliabilityDisplay(RankingDisplay):
    """How often rows were rare that were given about the same probability, with exact intervals.

    Both axes are logarithmic, as probabilities of a rare class are. A bin without a rare row is
    an arrow down from its upper bound.

    Parameters
    ----------
    reliability : Reliability
        `Reliability.of` makes one.
    name : str, optional
    """

    of_probabilities: ClassVar[bool] = True

    def __init__(self, reliability: Reliability, *, name: str | None = None) -> None:
        self.reliability, self.name = reliability, name

    @classmethod
    def _of(
        cls,
        rare: NDArray[np.bool_],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        name: str | None,
        **options: Any,
    ) -> Self:
        return cls(Reliability.of(rare, scores, weight, **options), name=name)

    def _draw(self, ax: "Axes", **style: Any) -> None:
        look: dict[str, Any] = {
            "color": BLUE,
            "marker": "o",
            "markersize": 5,
            "linewidth": 1.3,
        } | style
        told = self.reliability
        x = np.maximum(told.foretold, 1e-7)
        found = np.array(told.found).reshape(-1, 3)
        some = found[:, 0] > 0
        value, low, high = found.T
        shown = np.where(some, value, high)
        # Lower ends of intervals may be next to nothing: bars reach out of the axis there.
        lowest = 0.2 * min(x.min(), shown.min())
        below = np.where(some, value - np.maximum(low, lowest), 0.0)
        label = self.name or "found, with 95 % interval"
        ax.errorbar(
            x[some], shown[some], [below[some], (high - value)[some]], capsize=2.5, label=label,
            **(look | {"linestyle": ""}),
        )  # fmt: skip
        if (~some).any():
            empty: dict[str, Any] = look | {"linestyle": "", "marker": "v", "fillstyle": "none"}
            ax.plot(x[~some], high[~some], label="none found: at most", **empty)
        ends = np.array([min(x.min(), lowest * 2), 1.0])
        ax.plot(ends, ends, color=GREY, linestyle=":", linewidth=1.2, label="as foretold")
        log_axis(ax.xaxis, "probability foretold", percent=True)
        log_axis(ax.yaxis, "share that was rare", percent=True)
        ax.set_xlim(0.6 * x.min(), 1.4)
        ax.set_ylim(lowest, 1.6)
        ax.legend()
