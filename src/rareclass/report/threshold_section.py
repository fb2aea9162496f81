"""The sections on the threshold: the slider, and the cost of errors at every threshold."""

from rareclass.report.curve_displays import AlertsDisplay, CostDisplay
from rareclass.report.document import PageTable, Plot, Plots, Section, ThresholdChoice
from rareclass.report.drawing import drawn, plot_of
from rareclass.report.formatting import amount_with_bounds, whole
from rareclass.report.threshold_table import ThresholdTable

_SIZE = (7.2, 3.4)
_N_LINES = 9


def threshold_section(
    table: ThresholdTable, rare: str, rest: str, rule: str, command: str
) -> Section:
    """Section with the slider; `command` has ``{threshold}`` where the number goes."""
    title = f"Precision and recall against {table.alert_unit}"
    description = (
        f"As more rows raise alerts, from left to right, recall rises from 0 to 100 % and "
        f"precision ends at {table.n_rare / table.n_rows:.2%}, the share of rare rows. Bands are "
        "exact 95 % intervals of each threshold by itself."
    )
    svg, axis = drawn(AlertsDisplay(table)._draw, "alerts", title, description, _SIZE)
    plot = Plot("alerts-plot", title, description, svg)
    own = f" The triangle below the slider is the model's own: {rule}." if rule else ""
    return Section(
        "threshold",
        "Choose the threshold",
        "Rows that score above it raise an alert. Move it to see what that finds, what it misses "
        f"and how much there is to look at.{own}",
        (ThresholdChoice(table, rare, rest, command, plot, axis),),
    )


def cost_section(table: ThresholdTable) -> Section:
    """Section on the expected cost against the threshold; the table has costs."""
    cost, own = table.cost, table.own
    assert cost is not None
    least = cost.least
    title = "Cost against the number of alerts"

    def at(place: int) -> str:
        return amount_with_bounds(cost.at(place))

    of_model = "" if own is None else f" At the model's own threshold it is {at(own)}."
    description = (
        f"Errors cost least, {at(least)} on these rows, at score > {table.thresholds[least]:.4g}, "
        f"with {whole(float(table.alerts[least]))} alerts.{of_model} Without any alert it would be "
        f"{at(0)}. The least was found on these very rows, and is flattered by that."
    )
    marks = {least: " (the least)"} | ({} if own is None else {own: " (the model's)"})
    rows = tuple(
        (f"{table.thresholds[k]:.4g}{marks.get(k, '')}", whole(float(table.alerts[k])), at(k))
        for k in sorted({*map(int, table.thinned(_N_LINES)), *marks})
    )
    head = ("Score above", "Alerts", "Cost")
    numbers = PageTable(f"Cost of errors: {cost.words}", head, rows, (0, 1, 2))
    plot = plot_of(CostDisplay(table)._draw, "cost", title, description, numbers)
    lead = f"With {cost.words}, as given; fp is a false alert, fn a missed rare row."
    return Section("cost", "What errors cost", lead, (Plots((plot,)),))
