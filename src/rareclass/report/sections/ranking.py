"""The section on how well the rare rows are ranked before the rest."""

from rareclass.metrics.interval import Interval
from rareclass.report.displays.curve_displays import (
    GainsDisplay,
    PrecisionRecallDisplay,
    RocDisplay,
)
from rareclass.report.page.document import Plot, Plots, Section, Table
from rareclass.report.page.svg import drawn
from rareclass.report.page.wording import (
    amount,
    decimal_with_bounds,
    percent,
    percent_with_bounds,
    whole,
)
from rareclass.report.summaries.gains import Gains
from rareclass.report.summaries.threshold_table import ThresholdTable

_POINTWISE = "The band is the exact 95 % interval of each threshold by itself, not of all at once."
_RECALLS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
_RATES = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5)


def ranking_section(table: ThresholdTable, auc: Interval, average_precision: Interval) -> Section:
    """Precision and recall, ROC, gains and lift."""
    return Section(
        "ranking",
        "How well it ranks",
        "Whatever the threshold: do rare rows score higher than the rest?",
        (
            Plots(
                (
                    _precision_recall(table, average_precision),
                    _roc(table, auc),
                    _gains(table),
                    _lift(table),
                )
            ),
        ),
    )


def _precision_recall(table: ThresholdTable, value: Interval) -> Plot:
    title = "Precision and recall"
    at_half = table.at_recall(0.5)
    half = percent_with_bounds(table.precision.at(at_half))
    description = (
        f"Average precision {decimal_with_bounds(value)}; no ranking at all has "
        f"{table.n_rare / table.n_rows:.3f}. Where half of the rare rows are found, {half} of the "
        f"alerts are rare. {_POINTWISE}"
    )
    places = [table.at_recall(share) for share in _RECALLS]
    rows = tuple(
        (
            percent(float(table.recall.value[k])),
            percent_with_bounds(table.precision.at(k)),
            whole(float(table.alerts[k])),
            f"{table.thresholds[k]:.4g}",
        )
        for k in dict.fromkeys(places)
    )
    numbers = Table(
        "Precision where so many rare rows are found",
        ("Recall", "Precision", "Alerts", "Score above"),
        rows,
        (0, 1, 2, 3),
    )
    svg = drawn(
        PrecisionRecallDisplay(table, value=value)._draw, "precision-recall", title, description
    )
    return Plot("precision-recall-plot", title, description, svg, numbers)


def _roc(table: ThresholdTable, value: Interval) -> Plot:
    title = "ROC curve, its false-positive rate on a logarithmic axis"
    description = (
        f"AUC {decimal_with_bounds(value)}: the chance that a rare row scores higher than one of "
        f"the rest. {_POINTWISE}"
    )
    rates = table.false_positive_rate.value
    places = [int((rates <= rate).sum()) - 1 for rate in _RATES]
    rows = tuple(
        (
            percent_with_bounds(table.false_positive_rate.at(k)),
            percent_with_bounds(table.recall.at(k)),
            whole(float(table.false_alerts[k])),
        )
        for k in dict.fromkeys(places)
    )
    numbers = Table(
        "Recall at false-positive rates",
        ("False-positive rate", "Recall", "False alerts"),
        rows,
        (0, 1, 2),
    )
    svg = drawn(RocDisplay(table, value=value)._draw, "roc", title, description)
    return Plot("roc-plot", title, description, svg, numbers)


def _gains(table: ThresholdTable) -> Plot:
    title = "Gains: what the highest rows hold"
    gains = Gains.of(table)
    place = table.at_alerts(0.01 * table.n_rows)
    description = (
        f"The highest 1 % of the rows hold {percent_with_bounds(table.recall.at(place))} of the "
        "rare ones. The axis of rows is logarithmic: what matters happens among the first."
    )
    svg = drawn(GainsDisplay(table)._draw, "gains", title, description)
    return Plot("gains-plot", title, description, svg, _gains_table(gains))


def _gains_table(gains: Gains) -> Table:
    rows = tuple(
        (
            percent(float(gains.share[k])),
            percent_with_bounds(gains.gain.at(k)),
            f"{amount(float(gains.lift.value[k]))} ({amount(float(gains.lift.low[k]))} to "
            f"{amount(float(gains.lift.high[k]))})",
        )
        for k in gains.rows()
    )
    return Table(
        "What the highest rows hold",
        ("Of all rows", "Of the rare ones", "Times as many as at random"),
        rows,
        (0, 1, 2),
    )


def _lift(table: ThresholdTable) -> Plot:
    title = "Lift: times as many as at random"
    gains = Gains.of(table)
    top = float(gains.lift.value[min(len(gains.lift.value) - 1, max(table.at_alerts(100) - 1, 0))])
    n_top = whole(min(100.0, table.n_rows))
    description = (
        f"Among the {n_top} highest rows there are {amount(top)} times as many rare ones as among "
        f"{n_top} drawn at random. Both axes are logarithmic. {_POINTWISE}"
    )

    svg = drawn(lambda ax: GainsDisplay(table)._draw(ax, lift=True), "lift", title, description)
    return Plot("lift-plot", title, description, svg, _gains_table(gains))
