"""The section on scores and probabilities: their distributions, reliability, and drift."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.errors import ErrorKind
from rareclass.metrics.intervals import Interval, exact_interval, trials_of_share
from rareclass.metrics.scored_classes import group_codes
from rareclass.report.drawing import (
    BAND,
    BLUE,
    GREY,
    INK,
    VERMILLION,
    Axes,
    Floats,
    RankingDisplay,
    log_axis,
    share_axis,
)
from rareclass.report.page import (
    Note,
    PageBlock,
    Plots,
    Section,
    percent,
    percent_with_bounds,
    whole,
)
from rareclass.report.threshold_table import LEVEL
from rareclass.table_block import TableBlock

# Bins for a factor of ten of probability, before any are merged.
_A_DECADE = 3
_LOWEST = 1e-6
# A bin of fewer expected rare rows tells little, and one of fewer rows nothing.
_LEAST_EXPECTED, _LEAST_IN_BIN = 2.0, 20.0
_N_BINS = 48
# Scores beyond these quantiles of all rows and of the rare ones are put into the outermost bins.
_OUTER = 0.0005
_N_LINES = 12


@dataclass
class ReliabilityDisplay(RankingDisplay):
    """Share of rows that were rare against their predicted probability, in bins with intervals.

    Both axes are logarithmic, as probabilities of a rare class need. A bin without a rare row is
    an arrow down from its upper bound. Bins are even on the logarithm of the probability (a third
    of a factor of ten): linear bins would put nearly all rare rows into one. Neighbours are merged
    until each bin expects two rare rows or holds two, so that its interval is informative.

    Attributes
    ----------
    foretold : tuple of float
        Lowest bin first: mean probability of the rows of each bin.
    found : tuple of Interval
        Share of rare rows with its exact (Clopper-Pearson) 95 % interval; of groups approximate.
    n_rows, n_rare : tuple of float
        Rows of each bin, and rare rows; sums of weights where there are weights.
    name : str or None
        Name of the ranking in the legend.
    """

    foretold: tuple[float, ...]
    found: tuple[Interval, ...]
    n_rows: tuple[float, ...]
    n_rare: tuple[float, ...]
    name: str | None = None

    of_probabilities: ClassVar[bool] = True
    key, title = "reliability", "Reliability: probabilities and what came of them"

    def _words(self) -> str:
        off = "Each interval holds the predicted probability."
        if self.n_off:
            bins = f"{self.n_off} of {len(self.found)} bins"
            off = f"In {bins} the interval does not hold the predicted probability."
        return (
            f"{off} Rows with about the same probability are a bin, wide enough that it expects "
            "two rare rows; bars are 95 % intervals. Points on the dotted line are right."
        )

    def rows(self) -> TableBlock:
        """Return the bins."""
        columns = {
            "Foretold": map(percent, self.foretold),
            "Was rare": map(percent_with_bounds, self.found),
            "Rows": map(whole, self.n_rows),
            "Rare rows": map(whole, self.n_rare),
        }
        return TableBlock.of("Probabilities and what came of them", columns)

    @property
    def n_off(self) -> int:
        """Number of bins whose interval does not contain the predicted probability."""
        both = zip(self.foretold, self.found, strict=True)
        return sum(not found.low <= foretold <= found.high for foretold, found in both)

    @classmethod
    def of(  # type: ignore[override]
        cls,
        y: ArrayLike,
        probabilities: ArrayLike,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        groups: Any = None,
    ) -> Self:
        """Sort rows into bins; O(n) time. `y` is True or 1 where a row is rare.

        Rows of equal group count together in the intervals.

        Raises `ValueError` where a probability is not between 0 and 1.
        """
        rare, given = np.asarray(y) == 1, np.asarray(probabilities, float)
        outside = ~((given >= 0.0) & (given <= 1.0))
        if outside.any():
            place = int(np.flatnonzero(outside)[0])
            raise ErrorKind.CELL.error(
                f"probabilities[{place}]={given[place]!r} must be between 0 and 1."
            )
        weight = np.ones(len(rare)) if sample_weight is None else np.asarray(sample_weight, float)
        edges = np.logspace(np.log10(_LOWEST), 0.0, int(-np.log10(_LOWEST) * _A_DECADE) + 1)
        bins = np.searchsorted(edges, given, side="right")
        columns = (weight, weight * given, weight * rare)
        sums = np.array([np.bincount(bins, each, len(edges) + 1) for each in columns])
        firsts, kept = _merged(sums)
        n_rows, expected, hits = kept
        bins = np.searchsorted(firsts, bins, side="right") - 1
        group = None if groups is None else group_codes(groups, len(rare))[0]
        trials = (trials_of_share(rare, bins == k, weight, group) for k in range(len(firsts)))
        found = tuple(exact_interval(*each, LEVEL) for each in trials)
        foretold, rows, rare_rows = (tuple(k.tolist()) for k in (expected / n_rows, n_rows, hits))
        return cls(foretold, found, rows, rare_rows, name)

    def _draw(self, ax: Axes, **style: Any) -> None:
        look: dict[str, Any] = {"color": BLUE, "marker": "o", "markersize": 5, "linewidth": 1.3}
        look |= style
        x = np.maximum(self.foretold, 1e-7)
        value, low, high = np.array(self.found).reshape(-1, 3).T
        some = value > 0
        shown = np.where(some, value, high)
        # Lower ends of intervals may be close to 0: bars reach out of the axis there.
        lowest = 0.2 * min(x.min(), shown.min())
        below = np.where(some, value - np.maximum(low, lowest), 0.0)
        label = self.name or "observed, with 95 % interval"
        ax.errorbar(
            x[some], shown[some], [below[some], (high - value)[some]], capsize=2.5, label=label,
            **(look | {"linestyle": ""}),
        )  # fmt: skip
        if (~some).any():
            empty: dict[str, Any] = look | {"linestyle": "", "marker": "v", "fillstyle": "none"}
            ax.plot(x[~some], high[~some], label="no rare row: upper bound", **empty)
        ends = np.array([min(x.min(), lowest * 2), 1.0])
        ax.plot(ends, ends, color=GREY, linestyle=":", linewidth=1.2, label="calibrated")
        log_axis(ax.xaxis, "predicted probability", (0.6 * x.min(), 1.4), percent=True)
        log_axis(ax.yaxis, "observed share of rare rows", (lowest, 1.6), percent=True)


def _merged(sums: Floats) -> tuple[NDArray[np.intp], Floats]:
    """First bins and columns of sums, the lowest first, of neighbours joined until informative."""
    firsts: list[int] = []
    open_to = len(sums.T)
    for place in range(len(sums.T))[::-1]:
        n, expected, hits = sums[:, place:open_to].sum(axis=1)
        if n >= _LEAST_IN_BIN and (expected >= _LEAST_EXPECTED or hits >= _LEAST_EXPECTED):
            firsts.insert(0, place)
            open_to = place
    # The remainder at the bottom is often most of the rows: a bin of its own if it can be.
    if sums[0, :open_to].sum() >= _LEAST_IN_BIN or not firsts:
        firsts.insert(0, 0)
    firsts[0] = 0
    return np.array(firsts), np.add.reduceat(sums, firsts, axis=1)


@dataclass
class ScoreDistributionDisplay(RankingDisplay):
    """Scores of both classes, each as shares of its own rows, on a root axis.

    The square root makes few rows visible next to many: a bin of a hundredth is a tenth as high.

    Attributes
    ----------
    edges : ndarray of shape (b + 1,)
        Of bins of equal width; scores beyond the first and last are counted in the outermost bins.
    rare, rest : ndarray of shape (b,)
        Share of the rows of each class in every bin: both add up to 1.
    threshold : float or None
        Drawn as a line.
    name : str or None
        Name of the ranking.
    """

    edges: Floats
    rare: Floats
    rest: Floats
    threshold: float | None = None
    name: str | None = None

    key, title = "score-distribution", "Scores of both classes"

    def _words(self) -> str:
        return (
            "Each class as shares of its own rows, on a root scale so that small shares are "
            "visible. Rows right of the dotted line raise alerts."
        )

    def rows(self) -> TableBlock:
        """Return the shares in about twelve ranges of scores."""
        n_bins = len(self.rare)
        firsts = np.arange(0, n_bins, max(n_bins // _N_LINES, 1))
        ends = self.edges[np.append(firsts, n_bins)]
        columns = {
            "Score": [f"{low:.3g} to {high:.3g}" for low, high in pairwise(ends)],
            "Of the rare rows": map(percent, np.add.reduceat(self.rare, firsts)),
            "Of the majority": map(percent, np.add.reduceat(self.rest, firsts)),
        }
        return TableBlock.of(self.title, columns)

    @classmethod
    def of(  # type: ignore[override]
        cls,
        y: ArrayLike,
        scores: ArrayLike,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        threshold: float | None = None,
    ) -> Self:
        """Count; O(n log n) time. `y` is True or 1 where a row is rare."""
        is_rare, value = np.asarray(y) == 1, np.asarray(scores, float)
        weight = np.ones(len(value)) if sample_weight is None else np.asarray(sample_weight, float)
        edges = _shared_edges(value, value[is_rare])
        rare, rest = (_shares(value[k], weight[k], edges) for k in (is_rare, ~is_rare))
        return cls(edges, rare, rest, threshold, name)

    def _draw(self, ax: Axes, **style: Any) -> None:
        for shares, label, color, dashes, hatch in (
            (self.rest, "majority", BLUE, "--", ""),
            (self.rare, "rare rows", VERMILLION, "-", "////"),
        ):
            look: dict[str, Any] = {"color": color, "linewidth": 1.4, "linestyle": dashes} | style
            ax.stairs(shares, self.edges, label=label, **look)
            # The hatch takes the colour of the edge, which is not drawn.
            ax.stairs(
                shares, self.edges, fill=True, hatch=hatch, linewidth=0.0,
                facecolor=(color, BAND), edgecolor=(color, 0.4),
            )  # fmt: skip
        if self.threshold is not None and np.isfinite(self.threshold):
            ax.axvline(self.threshold, color=INK, linewidth=1.2, linestyle=":", label="threshold")
        root = (lambda shares: np.sqrt(np.maximum(shares, 0.0)), np.square)
        ax.set_yscale("function", functions=root)
        share_axis(ax.yaxis, "share of the rows of a class (root scale)", (0.0, None))
        ax.set_xlabel("score")


def _shared_edges(*columns: Floats) -> Floats:
    """Edges of bins that hold all but the outermost scores of each column."""
    finite = [column[np.isfinite(column)] for column in columns]
    bounds = [np.quantile(each, (_OUTER, 1.0 - _OUTER)) for each in finite if len(each)]
    if not bounds:
        return np.array([0.0, 1.0])
    low, high = min(pair[0] for pair in bounds), max(pair[1] for pair in bounds)
    if not low < high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, _N_BINS + 1)


def _shares(values: Floats, weight: Floats, edges: Floats) -> Floats:
    """Share of the weight in each bin, values beyond the edges in the outermost."""
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    counts = np.bincount(place, weight, len(edges) - 1)
    return counts / max(float(counts.sum()), 1e-300)


def scores_section(
    distribution: ScoreDistributionDisplay, reliability: ReliabilityDisplay | None
) -> Section:
    """Section on score distributions, and on reliability where the model has probabilities."""
    displays = [each for each in (distribution, reliability) if each is not None]
    blocks: list[PageBlock] = [Plots(tuple(each.on_page() for each in displays))]
    if reliability is None:
        words = "This model has no probabilities: its scores order rows and say no more."
        blocks.append(Note(words))
    return Section(
        "scores",
        "Scores and probabilities",
        "How far apart the classes lie, and whether a probability means what it says.",
        tuple(blocks),
    )
