"""Reliability of probabilities: counts, their display, and the plot of a report."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.metrics.interval import Interval, exact_interval
from rareclass.report.document import PageTable, Plot
from rareclass.report.drawing import BLUE, GREY, log_axis, plot_of
from rareclass.report.formatting import percent, percent_with_bounds, whole
from rareclass.report.ranking_display import RankingDisplay
from rareclass.report.threshold_table import LEVEL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
# Bins for a factor of ten of probability, before any are merged.
_A_DECADE = 3
_LOWEST = 1e-6
# A bin of fewer expected rare rows tells little, and one of fewer rows nothing.
_LEAST_EXPECTED, _LEAST_ROWS = 2.0, 20.0


@dataclass(frozen=True)
class Reliability:
    """Predicted probabilities in bins, with the share of rows that were rare; the lowest bin first.

    Bins are even on the logarithm of the probability (a third of a factor of ten), since linear
    bins would put nearly all rare rows into one. Neighbours are merged until each bin expects two
    rare rows or holds two, so that its interval is informative.

    Attributes
    ----------
    foretold : tuple of float
        Mean probability of the rows of each bin.
    found : tuple of Interval
        Share of rare rows with its exact (Clopper-Pearson) 95 % interval.
    n_rows, n_rare : tuple of float
        Rows of each bin, and rare rows; sums of weights where there are weights.
    """

    foretold: tuple[float, ...]
    found: tuple[Interval, ...]
    n_rows: tuple[float, ...]
    n_rare: tuple[float, ...]

    @property
    def n_off(self) -> int:
        """Number of bins whose interval does not contain the predicted probability."""
        both = zip(self.foretold, self.found, strict=True)
        return sum(not found.low <= foretold <= found.high for foretold, found in both)

    @classmethod
    def of(
        cls, y: ArrayLike, probabilities: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Sort rows into bins; O(n) time. `y` is True or 1 where a row is rare.

        Raises `ValueError` where a probability is not between 0 and 1.
        """
        rare, given = np.asarray(y) == 1, np.asarray(probabilities, float)
        outside = ~((given >= 0.0) & (given <= 1.0))
        if outside.any():
            place = int(np.flatnonzero(outside)[0])
            raise ValueError(f"probabilities[{place}]={given[place]!r} must be between 0 and 1.")
        weight = np.ones(len(rare)) if sample_weight is None else np.asarray(sample_weight, float)
        edges = np.logspace(np.log10(_LOWEST), 0.0, int(-np.log10(_LOWEST) * _A_DECADE) + 1)
        bins = np.searchsorted(edges, given, side="right")
        columns = (weight, weight * given, weight * rare, weight**2)
        sums = np.array([np.bincount(bins, each, len(edges) + 1) for each in columns])
        kept = _merged(sums)
        return cls(
            tuple(float(foretold / n) for n, foretold, _, _ in kept),
            tuple(_interval(n, hits, squares) for n, _, hits, squares in kept),
            tuple(float(n) for n, *_ in kept),
            tuple(float(hits) for _, _, hits, _ in kept),
        )


def _merged(sums: Floats) -> list[Floats]:
    """Columns of sums, the lowest first, each joined to lower ones until it is informative."""
    kept: list[Floats] = []
    waiting = np.zeros(len(sums))
    for column in sums.T[::-1]:
        waiting = waiting + column
        n, expected, hits, _ = waiting
        if n >= _LEAST_ROWS and (expected >= _LEAST_EXPECTED or hits >= _LEAST_EXPECTED):
            kept.append(waiting)
            waiting = np.zeros(len(sums))
    if waiting[0] > 0:
        # The remainder at the bottom is often most of the rows: a bin of its own if it can be.
        if waiting[0] >= _LEAST_ROWS or not kept:
            kept.append(waiting)
        else:
            kept[-1] = kept[-1] + waiting
    return kept[::-1]


def _interval(n: float, hits: float, squares: float) -> Interval:
    """Exact interval of a share; weighted rows count as the number of rows of equal variance."""
    trials = n * n / squares if squares > n else n
    return exact_interval(hits / n * trials, trials, LEVEL)


class ReliabilityDisplay(RankingDisplay):
    """Share of rows that were rare against their predicted probability, with exact intervals.

    Both axes are logarithmic, as probabilities of a rare class need. A bin without a rare row is
    an arrow down from its upper bound.

    Parameters
    ----------
    reliability : Reliability
        `Reliability.of` makes one.
    name : str, optional
        Name of the ranking in the legend.
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
        x = np.maximum(self.reliability.foretold, 1e-7)
        value, low, high = np.array(self.reliability.found).reshape(-1, 3).T
        some = value > 0
        shown = np.where(some, value, high)
        # Lower ends of intervals may be close to 0: bars reach out of the axis there.
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


def reliability_plot(reliability: Reliability) -> Plot:
    """Plot of probabilities against the share of rows that were rare, with the numbers."""
    title = "Reliability: probabilities and what came of them"
    n_off, n_bins = reliability.n_off, len(reliability.found)
    off = (
        "Each interval holds what was foretold."
        if not n_off
        else f"In {n_off} of {n_bins} bins the interval does not hold what was foretold."
    )
    description = (
        f"{off} Rows with about the same probability are a bin, wide enough that it expects two "
        "rare rows; bars are exact 95 % intervals. Points on the dotted line are right."
    )
    bins = zip(
        reliability.foretold, reliability.found, reliability.n_rows, reliability.n_rare,
        strict=True,
    )  # fmt: skip
    rows = tuple(
        (percent(foretold), percent_with_bounds(found), whole(n), whole(hits))
        for foretold, found, n, hits in bins
    )
    head = ("Foretold", "Was rare", "Rows", "Rare rows")
    table = PageTable("Probabilities and what came of them", head, rows, (0, 1, 2, 3))
    return plot_of(ReliabilityDisplay(reliability)._draw, "reliability", title, description, table)
