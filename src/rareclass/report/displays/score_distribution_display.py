"""Scores of both classes."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rareclass.report.displays.look import BAND, BLUE, INK, VERMILLION, share_axis
from rareclass.report.displays.ranking_display import RankingDisplay
from rareclass.report.summaries.score_distribution import ScoreDistribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ScoreDistributionDisplay(RankingDisplay):
    """The scores of both classes, each as shares of its own rows, on a root axis.

    The square root lets few rows be seen beside many: a bin of a hundredth is a tenth as high.

    Parameters
    ----------
    distribution : ScoreDistribution
        `ScoreDistribution.of` makes one.
    threshold : float, optional
        Drawn as a line.
    name : str, optional
    """

    def __init__(
        self,
        distribution: ScoreDistribution,
        *,
        threshold: float | None = None,
        name: str | None = None,
    ) -> None:
        self.distribution, self.threshold, self.name = distribution, threshold, name

    @classmethod
    def _of(
        cls,
        rare: NDArray[np.bool_],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        name: str | None,
        **options: Any,
    ) -> Self:
        return cls(ScoreDistribution.of(rare, scores, weight), name=name, **options)

    def _draw(self, ax: "Axes", **style: Any) -> None:
        told = self.distribution
        for shares, label, color, dashes, hatch in (
            (told.rest, "the rest", BLUE, "--", ""),
            (told.rare, "rare rows", VERMILLION, "-", "////"),
        ):
            look: dict[str, Any] = {"color": color, "linewidth": 1.4, "linestyle": dashes} | style
            ax.stairs(shares, told.edges, label=label, **look)
            # The hatch takes the colour of the edge, which is not drawn.
            ax.stairs(
                shares, told.edges, fill=True, hatch=hatch, linewidth=0.0,
                facecolor=(color, BAND), edgecolor=(color, 0.4),
            )  # fmt: skip
        if self.threshold is not None and np.isfinite(self.threshold):
            ax.axvline(self.threshold, color=INK, linewidth=1.2, linestyle=":", label="threshold")
        ax.set_yscale("function", functions=(_root, np.square))
        share_axis(ax.yaxis, "share of the rows of a class (root scale)")
        ax.set_ylim(0.0, None)
        ax.set_xlabel("score")
        ax.legend()


def _root(values: Any) -> Any:
    return np.sqrt(np.maximum(values, 0.0))
