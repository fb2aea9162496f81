"""The sections on the scores of both classes, and on what probabilities are worth."""

from rareclass.report.displays.reliability_display import ReliabilityDisplay
from rareclass.report.displays.score_distribution_display import ScoreDistributionDisplay
from rareclass.report.page.document import Block, Note, Plot, Plots, Section, Table
from rareclass.report.page.svg import drawn
from rareclass.report.page.wording import percent, percent_with_bounds, whole
from rareclass.report.summaries.reliability import Reliability
from rareclass.report.summaries.score_distribution import ScoreDistribution


def scores_section(
    distribution: ScoreDistribution, threshold: float, reliability: Reliability | None
) -> Section:
    """Score distributions, and reliability where the model has probabilities."""
    plots = [distribution_plot(distribution, threshold)]
    notes: list[Block] = []
    if reliability is None:
        notes.append(
            Note("This model has no probabilities: its scores order rows and say no more.")
        )
    else:
        plots.append(reliability_plot(reliability))
    return Section(
        "scores",
        "Scores and probabilities",
        "How far apart the classes lie, and whether a probability means what it says.",
        (Plots(tuple(plots)), *notes),
    )


def distribution_plot(distribution: ScoreDistribution, threshold: float) -> Plot:
    """The scores of both classes."""
    title = "Scores of both classes"
    description = (
        "Each class as shares of its own rows, on a root scale so that few are seen beside many. "
        "What lies right of the dotted line raises alerts."
    )
    step = max(len(distribution.rare) // 12, 1)
    rows = []
    for first in range(0, len(distribution.rare), step):
        last = min(first + step, len(distribution.rare))
        span = f"{distribution.edges[first]:.3g} to {distribution.edges[last]:.3g}"
        shares = (distribution.rare[first:last].sum(), distribution.rest[first:last].sum())
        rows.append((span, *(percent(float(each)) for each in shares)))
    head = ("Score", "Of the rare rows", "Of the rest")
    table = Table("Scores of both classes", head, tuple(rows), (0, 1, 2))
    display = ScoreDistributionDisplay(distribution, threshold=threshold)
    svg = drawn(display._draw, "score-distribution", title, description)
    return Plot("score-distribution-plot", title, description, svg, table)


def reliability_plot(reliability: Reliability) -> Plot:
    """Probabilities beside what came of them."""
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
    both = zip(
        reliability.foretold, reliability.found, reliability.n_rows, reliability.n_rare,
        strict=True,
    )  # fmt: skip
    rows = tuple(
        (percent(foretold), percent_with_bounds(found), whole(n), whole(hits))
        for foretold, found, n, hits in both
    )
    head = ("Foretold", "Was rare", "Rows", "Rare rows")
    table = Table("Probabilities and what came of them", head, rows, (0, 1, 2, 3))
    svg = drawn(ReliabilityDisplay(reliability)._draw, "reliability", title, description)
    return Plot("reliability-plot", title, description, svg, table)
