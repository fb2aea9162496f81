"""The section with the threshold that is dragged."""

from rareclass.report.displays.curve_displays import AlertsDisplay
from rareclass.report.page.choice_view import rate_words
from rareclass.report.page.document import Plot, Section, ThresholdChoice
from rareclass.report.page.svg import drawn_with_axes
from rareclass.report.summaries.threshold_table import ThresholdTable

_SIZE = (7.2, 3.4)


def threshold_section(
    table: ThresholdTable, rare: str, rest: str, rule: str, command: str
) -> Section:
    """What every threshold comes to; `command` has ``{threshold}`` where the number goes."""
    unit = rate_words(table)
    title = f"Precision and recall against {unit}"
    description = (
        f"As more rows raise alerts, from left to right, recall rises from 0 to 100 % and "
        f"precision ends at {table.n_rare / table.n_rows:.2%}, the share of rare rows. Bands are "
        "exact 95 % intervals of each threshold by itself."
    )
    display = AlertsDisplay(table)
    svg, spans = drawn_with_axes(display._draw, "alerts", title, description, _SIZE)
    plot = Plot("alerts-plot", title, description, svg)
    own = f" The triangle below the slider is the model's own: {rule}." if rule else ""
    return Section(
        "threshold",
        "Choose the threshold",
        "Rows that score above it raise an alert. Move it to see what that finds, what it misses "
        f"and how much there is to look at.{own}",
        (ThresholdChoice(table, rare, rest, rule, command, plot, spans),),
    )
