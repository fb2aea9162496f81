"""The section on the data as it was understood, and on how far it has moved since training."""

from typing import TYPE_CHECKING

from rareclass.metrics.column_drift import MOVED, MOVED_FAR
from rareclass.report.displays.look import BLUE, GREEN, INK, log_axis
from rareclass.report.page.document import Block, Facts, Note, Plot, Plots, Section, Table
from rareclass.report.page.svg import drawn
from rareclass.report.page.wording import percent, percent_with_bounds
from rareclass.report.summaries.column_drift import ColumnDrift, worst_first
from rareclass.report.summaries.score_drift import ScoreDrift

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LISTED = 40


def data_section(
    facts: tuple[tuple[str, str], ...],
    columns: list[ColumnDrift],
    score: ScoreDrift | None,
    notes: list[str],
) -> Section:
    """Facts of the rows, the columns beside training, and the scores beside those held out."""
    blocks: list[Block] = [Facts(facts), *(Note(each) for each in notes)]
    moved = [each for each in columns if (each.stability_index or 0.0) >= MOVED]
    if columns:
        blocks.append(_table(columns))
    if score is not None:
        blocks.append(Plots((_score_plot(score),)))
    known = [each for each in columns if each.stability_index is not None]
    lead = "What was read, and how it was understood."
    if known:
        lead = (
            f"{len(moved) or 'None'} of {len(known)} columns "
            f"{'have' if len(moved) > 1 else 'has'} moved since training, by the stability index."
        )
    return Section("data", "The data", lead, tuple(blocks))


def _table(columns: list[ColumnDrift]) -> Table:
    listed = worst_first(columns)[:_MOST_LISTED]
    known = any(each.stability_index is not None for each in listed)
    now = any(each.missing_now is not None for each in listed)
    head = ["Column", "Holds", "Empty in training"]
    head += ["Empty here", "Unlike training"] if now else []
    head += ["Stability index"] if known else []
    head += ["What is done with it"]
    rows = []
    for each in listed:
        cells = [each.name, each.kind, _share(each.missing_before)]
        cells += [_share(each.missing_now), percent(each.outside)] if now else []
        if known:
            index = each.stability_index
            cells.append("" if index is None else f"{index:.3f} {each.verdict}")
        rows.append((*cells, each.treatment))
    more = len(columns) - len(listed)
    note = f"{more} more columns are not listed. " if more > 0 else ""
    if known:
        note += (
            "Stability index: sum of (q - p) log(q / p) over tenths of the training values, p of "
            f"training and q of these rows; below {MOVED:g} is read as steady, from {MOVED_FAR:g} "
            "on as moved far."
        )
    numeric = tuple(k for k, name in enumerate(head) if name[:5] in ("Empty", "Unlik", "Stabi"))
    return Table("Columns, those that moved most first", tuple(head), tuple(rows), numeric, note)


def _share(share: float | None) -> str:
    return "" if share is None else percent(share)


def _score_plot(score: ScoreDrift) -> Plot:
    title = "Scores here and held out"
    now, before = score.at_threshold.now, score.at_threshold.before
    more = "more" if now.value > before.value else "fewer"
    verdict = f"That is {more} than chance explains: these rows are others, or the share of rare "
    verdict += "ones is." if score.differs else ""
    description = (
        f"Above the threshold are {percent_with_bounds(now)} of these rows, and were "
        f"{percent_with_bounds(before)} of those held out. "
        + (verdict if score.differs else "Chance explains the difference.")
        + " Only the right side decides on alerts."
    )
    threshold = score.at_threshold.score

    def draw(ax: "Axes") -> None:
        ax.stairs(score.before, score.edges, color=GREEN, linestyle="--", label="held out")
        ax.stairs(score.now, score.edges, color=BLUE, linewidth=1.6, label="these rows")
        ax.axvline(threshold, color=INK, linewidth=1.1, linestyle=":", label="threshold")
        log_axis(ax.yaxis, "share of the rows (logarithmic)", percent=True)
        ax.set_xlabel("score")
        ax.legend()

    rows = tuple(
        (
            f"{tail.score:.4g}" + (" (the model's threshold)" if tail.score == threshold else ""),
            percent_with_bounds(tail.before),
            percent_with_bounds(tail.now),
        )
        for tail in sorted({score.at_threshold, *score.tails}, key=lambda tail: -tail.score)
    )
    table = Table(
        "How often scores are high", ("Score above", "Held out", "These rows"), rows, (0, 1, 2)
    )
    svg = drawn(draw, "drift", title, description)
    return Plot("score-drift-plot", title, description, svg, table)
