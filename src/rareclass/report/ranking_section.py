"""The section on how well the rare rows are ranked: precision and recall, ROC, gains and lift."""

from rareclass.metrics.interval import Interval
from rareclass.report.curve_displays import GainsDisplay, PrecisionRecallDisplay, RocDisplay
from rareclass.report.document import PageTable, Plot, Plots, Section
from rareclass.report.drawing import plot_of
from rareclass.report.formatting import (
    amount,
    amount_with_bounds,
    decimal_with_bounds,
    percent,
    percent_with_bounds,
    whole,
)
from rareclass.report.threshold_table import Gains, ThresholdTable

_POINTWISE = "The band is the exact 95 % interval of each threshold by itself, not of all at once."
_RECALLS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
_RATES = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5)


def ranking_section(table: ThresholdTable, auc: Interval, average_precision: Interval) -> Section:
    """Section with four curves and the numbers behind them."""
    gains = Gains.of(table)
    plots = (
        _precision_recall(table, average_precision),
        _roc(table, auc),
        _gains(table, gains),
        _lift(table, gains),
    )
    lead = "Whatever the threshold: do rare rows score higher than the rest?"
    return Section("ranking", "How well it ranks", lead, (Plots(plots),))


def _precision_recall(table: ThresholdTable, value: Interval) -> Plot:
    half = percent_with_bounds(table.precision.at(table.at_recall(0.5)))
    description = (
        f"Average precision {decimal_with_bounds(value)}; no ranking at all has "
        f"{table.n_rare / table.n_rows:.3f}. Where half of the rare rows are found, {half} of the "
        f"alerts are rare. {_POINTWISE}"
    )
    rows = tuple(
        (
            percent(float(table.recall.value[k])),
            percent_with_bounds(table.precision.at(k)),
            whole(float(table.alerts[k])),
            f"{table.thresholds[k]:.4g}",
        )
        for k in dict.fromkeys(table.at_recall(share) for share in _RECALLS)
    )
    caption = "Precision where so many rare rows are found"
    head = ("Recall", "Precision", "Alerts", "Score above")
    numbers = PageTable(caption, head, rows, (0, 1, 2, 3))
    draw = PrecisionRecallDisplay(table, value=value)._draw
    return plot_of(draw, "precision-recall", "Precision and recall", description, numbers)


def _roc(table: ThresholdTable, value: Interval) -> Plot:
    title = "ROC curve, its false-positive rate on a logarithmic axis"
    description = (
        f"AUC {decimal_with_bounds(value)}: the chance that a rare row scores higher than one of "
        f"the rest. {_POINTWISE}"
    )
    rows = tuple(
        (
            percent_with_bounds(table.false_positive_rate.at(k)),
            percent_with_bounds(table.recall.at(k)),
            whole(float(table.false_alerts[k])),
        )
        for k in dict.fromkeys(table.at_false_positive_rate(rate) for rate in _RATES)
    )
    head = ("False-positive rate", "Recall", "False alerts")
    numbers = PageTable("Recall at false-positive rates", head, rows, (0, 1, 2))
    return plot_of(RocDisplay(table, value=value)._draw, "roc", title, description, numbers)


def _gains(table: ThresholdTable, gains: Gains) -> Plot:
    title = "Gains: what the highest rows hold"
    place = table.at_alerts(0.01 * table.n_rows)
    description = (
        f"The highest 1 % of the rows hold {percent_with_bounds(table.recall.at(place))} of the "
        "rare ones. The axis of rows is logarithmic: what matters happens among the first."
    )
    return plot_of(GainsDisplay(table)._draw, "gains", title, description, _gains_table(gains))


def _lift(table: ThresholdTable, gains: Gains) -> Plot:
    title = "Lift: times as many as at random"
    top = float(gains.lift.value[min(len(gains.lift.value) - 1, max(table.at_alerts(100) - 1, 0))])
    n_top = whole(min(100.0, table.n_rows))
    description = (
        f"Among the {n_top} highest rows there are {amount(top)} times as many rare ones as among "
        f"{n_top} drawn at random. Both axes are logarithmic. {_POINTWISE}"
    )
    display = GainsDisplay(table)
    return plot_of(
        lambda ax: display._draw(ax, lift=True), "lift", title, description, _gains_table(gains)
    )


def _gains_table(gains: Gains) -> PageTable:
    rows = tuple(
        (
            percent(float(gains.share[k])),
            percent_with_bounds(gains.gain.at(k)),
            amount_with_bounds(gains.lift.at(k)),
        )
        for k in gains.rows()
    )
    head = ("Of all rows", "Of the rare ones", "Times as many as at random")
    return PageTable("What the highest rows hold", head, rows, (0, 1, 2))
