"""The section on what errors cost."""

from rareclass.report.displays.curve_displays import CostDisplay
from rareclass.report.page.document import Plot, Plots, Section, Table
from rareclass.report.page.svg import drawn
from rareclass.report.page.wording import amount, whole
from rareclass.report.summaries.threshold_table import ThresholdTable

_LINES = 9


def cost_section(table: ThresholdTable) -> Section:
    """Expected cost against the threshold; the table has costs."""
    cost = table.cost
    assert cost is not None
    least = cost.least
    title = "Cost against the number of alerts"

    def at(k: int) -> str:
        low, high = amount(float(cost.low[k])), amount(float(cost.high[k]))
        return f"{amount(float(cost.value[k]))} ({low} to {high})"

    own = "" if table.own is None else f" At the model's own threshold it is {at(table.own)}."
    description = (
        f"Errors cost least, {at(least)} on these rows, at score > {table.thresholds[least]:.4g}, "
        f"with {whole(float(table.alerts[least]))} alerts.{own} Without any alert it would be "
        f"{at(0)}. The least was found on these very rows, and is flattered by that."
    )
    places = sorted(
        {*map(int, table.thinned(_LINES)), least, *([] if table.own is None else [table.own])}
    )
    marks = {least: " (the least)"} | ({} if table.own is None else {table.own: " (the model's)"})
    rows = tuple(
        (f"{table.thresholds[k]:.4g}{marks.get(k, '')}", whole(float(table.alerts[k])), at(k))
        for k in places
    )
    numbers = Table(
        f"Cost of errors: {cost.words}", ("Score above", "Alerts", "Cost"), rows, (0, 1, 2)
    )
    svg = drawn(CostDisplay(table)._draw, "cost", title, description)
    return Section(
        "cost",
        "What errors cost",
        f"With {cost.words}, as given; fp is a false alert, fn a missed rare row.",
        (Plots((Plot("cost-plot", title, description, svg, numbers),)),),
    )
