"""Displays of a table of thresholds, and their sections: the ranking, the slider, and costs."""

import json
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.errors import ErrorKind
from rareclass.metrics import Interval, interval
from rareclass.metrics.intervals import amount_text
from rareclass.report.drawing import (
    BAND,
    BLUE,
    GREY,
    INK,
    VERMILLION,
    Axes,
    RankingDisplay,
    log_axis,
    plain_number,
    share_axis,
)
from rareclass.report.page import (
    NONE,
    PagePart,
    Plot,
    Plots,
    Section,
    percent,
    percent_bounds,
    percent_with_bounds,
    whole,
)
from rareclass.report.threshold_table import SHARES, Band, ThresholdTable
from rareclass.table_block import TableBlock

# Points of a curve that are drawn.
_MOST_DRAWN = 240
_POINTWISE = "The band is the 95 % interval of each threshold by itself, not of all at once."
_RECALLS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
_RATES = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5)
_SHARES = (-0.02, 1.05)  # limits of an axis of shares
_N_LINES = 9
_N_LISTED = 10


class TableDisplay(RankingDisplay):
    """A plot of a `ThresholdTable`; base of the displays of curves.

    Parameters
    ----------
    table : ThresholdTable
        Counts at every threshold; `ThresholdTable.of` makes one.
    name : str, optional
        Name of the ranking in the legend.
    value : Interval, optional
        Measure that belongs to the curve, for the legend.
    """

    _measure: ClassVar[str | None] = None

    def __init__(
        self, table: ThresholdTable, *, name: str | None = None, value: Interval | None = None
    ) -> None:
        self.table, self.name, self.value = table, name, value

    @classmethod
    def of(
        cls,
        y: ArrayLike,
        scores: ArrayLike,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Count at every threshold; `options` as for `ThresholdTable.of`."""
        table, value = ThresholdTable.of(y, scores, sample_weight, **options), None
        if cls._measure is not None:
            value = interval(cls._measure, y, scores, sample_weight, groups=options.get("groups"))
        return cls(table, name=name, value=value)

    def _value_text(self) -> str:
        return NONE if self.value is None else self.value.text()

    def _label(self, what: str) -> str | None:
        if self.value is None:
            return self.name
        words = f"{what} {self.value.value:.3f}"
        return words if self.name is None else f"{self.name} ({words})"

    def _places(self, alerts: NDArray[np.float64]) -> NDArray[np.intp]:
        """Places of the thresholds that are drawn, all with some of these alerts."""
        kept = self.table.thinned(_MOST_DRAWN)
        return kept[alerts[kept] > 0]

    def _mark_own(self, ax: Axes, x: NDArray[Any], y: NDArray[Any], in_legend: bool = True) -> None:
        own = self.table.own
        if own is not None and np.isfinite(y[own]):
            label = "the model's threshold" if in_legend else "_"
            ax.plot(x[own], y[own], "D", color=INK, markersize=5.5, zorder=5, label=label)


def draw_curve(
    ax: Axes, x: NDArray[Any], band: Band, kept: NDArray[np.intp], label: str | None, style: Any
) -> None:
    """Draw a line within its interval, at the places `kept`."""
    look: dict[str, Any] = {"color": BLUE, "linewidth": 1.8} | style
    value, low, high = (each[kept] for each in band)
    ax.fill_between(x[kept], low, high, color=look["color"], alpha=BAND, linewidth=0)
    ax.plot(x[kept], value, label=label or "_", **look)


class PrecisionRecallDisplay(TableDisplay):
    """Precision against recall, with the exact interval of the precision of each threshold.

    The band is pointwise: it holds for a threshold that was named beforehand, not for the whole
    curve. The dotted line is the share of rare rows, the precision of a random ranking. The table's
    ``own`` threshold, where it has one, is marked.

    Made as `TableDisplay`; `value` is the average precision.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.arange(200) < 10
    >>> display = PrecisionRecallDisplay.from_predictions(y, np.linspace(1, 0, 200), name="ideal")
    >>> display.ax_.get_xlabel(), display.value.value
    ('recall: share of the rare rows found', 1.0)
    """

    key, title = "precision-recall", "Precision and recall"
    _measure = "average_precision"

    def _words(self) -> str:
        table = self.table
        half = percent_with_bounds(table.precision.at(table.at_recall(0.5)))
        return (
            f"Average precision {self._value_text()}; a random order has "
            f"{table.n_rare / table.n_rows:.3f}. Where half of the rare rows are found, {half} of "
            f"the alerts are rare. {_POINTWISE}"
        )

    def rows(self) -> TableBlock:
        """Return the precision at shares of the rare rows."""
        table = self.table
        places = list(dict.fromkeys(table.at_recall(share) for share in _RECALLS))
        return TableBlock.of(
            "Precision where so many rare rows are found",
            {
                "Recall": [percent(float(table.recall.value[k])) for k in places],
                "Precision": [percent_with_bounds(table.precision.at(k)) for k in places],
                "Alerts": [whole(float(table.alerts[k])) for k in places],
                "Score above": [f"{table.thresholds[k]:.4g}" for k in places],
            },
        )

    def _draw(self, ax: Axes, **style: Any) -> None:
        table, kept = self.table, self._places(self.table.alerts)
        precision, recall = table.precision, table.recall.value
        draw_curve(ax, recall, precision, kept, self._label("average precision"), style)
        share = table.n_rare / table.n_rows
        ax.axhline(share, color=GREY, linestyle=":", linewidth=1.2, label="random order")
        self._mark_own(ax, recall, precision.value)
        share_axis(ax.xaxis, "recall: share of the rare rows found", (-0.02, 1.02))
        share_axis(ax.yaxis, "precision: share of alerts that are rare", _SHARES)


class RocDisplay(TableDisplay):
    """Recall against the false-positive rate, with the exact interval of the recall.

    The false-positive rate is on a logarithmic axis unless `log` is False: with a rare class the
    first hundredths matter, and a linear axis puts them on its edge. The band is pointwise, as in
    `PrecisionRecallDisplay`. Made as `TableDisplay`; `value` is the AUC.
    """

    log = True
    key, title = "roc", "ROC curve, its false-positive rate on a logarithmic axis"
    _measure = "roc_auc"

    def _words(self) -> str:
        return (
            f"AUC {self._value_text()}: the chance that a rare row scores higher than one of the "
            f"majority. {_POINTWISE}"
        )

    def rows(self) -> TableBlock:
        """Return the recall at false-positive rates."""
        table, rates = self.table, self.table.false_positive_rate
        places = list(dict.fromkeys(table.at_false_positive_rate(rate) for rate in _RATES))
        return TableBlock.of(
            "Recall at false-positive rates",
            {
                "False-positive rate": [percent_with_bounds(rates.at(k)) for k in places],
                "Recall": [percent_with_bounds(table.recall.at(k)) for k in places],
                "False alerts": [whole(float(table.false_alerts[k])) for k in places],
            },
        )

    def _draw(self, ax: Axes, log: bool | None = None, **style: Any) -> None:
        table, log = self.table, self.log if log is None else log
        rate = table.false_positive_rate.value
        least = 0.5 / table.n_rest
        x = np.maximum(rate, least) if log else rate
        draw_curve(ax, x, table.recall, table.thinned(_MOST_DRAWN), self._label("AUC"), style)
        chance = np.geomspace(least, 1.0, 60) if log else np.array([0.0, 1.0])
        ax.plot(chance, chance, color=GREY, linestyle=":", linewidth=1.2, label="random order")
        self._mark_own(ax, x, table.recall.value)
        label = "false-positive rate: share of the majority that raises alerts"
        if log:
            log_axis(ax.xaxis, label, (least, 1.0), percent=True)
        else:
            share_axis(ax.xaxis, label)
        share_axis(ax.yaxis, "recall: share of the rare rows found", _SHARES)


class GainsDisplay(TableDisplay):
    """Share of the rare rows that the highest rows hold, from .01 percent of all rows to all.

    Made as `TableDisplay`, without a `value`. At every threshold with alerts: the `share` of all
    rows above it, the `gain`, which is the recall, and the `lift`, which is the precision over the
    share of rare rows.
    """

    key, title = "gains", "Gains: what the highest rows hold"

    def __init__(self, table: ThresholdTable, **known: Any) -> None:
        super().__init__(table, **known)
        some, rate = table.alerts > 0, table.n_rare / table.n_rows
        self.share = table.alerts[some] / table.n_rows
        self.gain = Band(*(each[some] for each in table.recall))
        self.lift = Band(*(each[some] / rate for each in table.precision))

    def places(self) -> list[int]:
        """Return the places of the shares nearest to `SHARES` from below, each once."""
        places = np.searchsorted(self.share, SHARES, side="right") - 1
        near = (places >= 0) & (self.share[places] > 0.5 * np.array(SHARES))
        return np.unique(places[near]).tolist()

    def _words(self) -> str:
        table, lift = self.table, self.lift.value
        of_top = percent_with_bounds(table.recall.at(table.at_alerts(0.01 * table.n_rows)))
        top = amount_text(lift[min(len(lift) - 1, max(table.at_alerts(100) - 1, 0))])
        n_top = whole(min(100.0, table.n_rows))
        return (
            f"The highest 1 % of the rows hold {of_top} of the rare ones. Among the {n_top} "
            f"highest rows there are {top} times as many rare ones as among {n_top} drawn "
            "at random. The axis of rows is logarithmic: what matters happens among the first."
        )

    def rows(self) -> TableBlock:
        """Return the share of the rare rows in shares of all."""
        places = self.places()
        return TableBlock.of(
            "What the highest rows hold",
            {
                "Of all rows": [percent(float(self.share[k])) for k in places],
                "Of the rare ones": [percent_with_bounds(self.gain.at(k)) for k in places],
                "Times as many as at random": [self.lift.at(k).amounts() for k in places],
            },
        )

    def _draw(self, ax: Axes, **style: Any) -> None:
        kept = np.unique(np.linspace(0, len(self.share) - 1, _MOST_DRAWN).astype(int))
        draw_curve(ax, self.share, self.gain, kept, self.name, style)
        x = np.geomspace(self.share[0], 1.0, 60)
        ax.plot(x, x, color=GREY, linestyle=":", linewidth=1.2, label="random order")
        rate = self.table.n_rare / self.table.n_rows
        best = np.minimum(x / rate, 1.0)
        ax.plot(x, best, color=GREY, linestyle="--", linewidth=1.0, label="perfect order")
        limits = (max(self.share[0], 1e-5), 1.0)
        log_axis(ax.xaxis, "highest rows, as a share of all", limits, percent=True)
        share_axis(ax.yaxis, "share of the rare rows found", _SHARES)


def ranking_section(table: ThresholdTable, auc: Interval, average_precision: Interval) -> Section:
    """Section with three curves and the numbers behind them."""
    displays = (
        PrecisionRecallDisplay(table, value=average_precision),
        RocDisplay(table, value=auc),
        GainsDisplay(table),
    )
    plots = tuple(display.on_page() for display in displays)
    lead = "Whatever the threshold: do rare rows score higher than the majority?"
    return Section("ranking", "How well it ranks", lead, (Plots(plots),))


class AlertsDisplay(TableDisplay):
    """Precision and recall against the number of alerts, with the exact interval of each.

    Alerts are a day where the table has days, else in 10,000 rows. Made as `TableDisplay`, without
    a `value`.
    """

    key, title = "alerts", "Precision and recall against the number of alerts"
    size = (7.2, 3.4)

    def _words(self) -> str:
        table = self.table
        return (
            "As more rows raise alerts, from left to right, recall rises from 0 to 100 % and "
            f"precision ends at {table.n_rare / table.n_rows:.2%}, the share of rare rows. Bands "
            "are 95 % intervals of each threshold by itself."
        )

    def rows(self) -> TableBlock:
        """Return ten thresholds spread over the logarithm of alerts, the model's own among them."""
        table = self.table
        own, spread = table.own, table.thinned(_N_LISTED)
        if own is not None:
            spread[np.abs(spread - own).argmin()] = own
        places = np.unique(spread).tolist()
        marks = {} if own is None else {own: " (the model's)"}
        rates = table.amounts.value
        columns = {
            "Score above": [f"{table.thresholds[k]:.6g}{marks.get(k, '')}" for k in places],
            "Alerts": [whole(table.alerts[k]) for k in places],
            table.alert_unit.capitalize(): [amount_text(rates[k]) for k in places],
            "Found": [whole(table.hits[k]) for k in places],
            "Missed": [whole(table.n_rare - table.hits[k]) for k in places],
            "Precision": [percent_with_bounds(table.precision.at(k)) for k in places],
            "Recall": [percent_with_bounds(table.recall.at(k)) for k in places],
        }
        if table.cost is not None:
            columns["Cost"] = [amount_text(float(table.cost.value[k])) for k in places]
        return TableBlock.of("Ten thresholds, with 95 % intervals", columns)

    def _draw(self, ax: Axes, **style: Any) -> None:
        x = self.table.amounts.value
        kept = self._places(x)
        for band, label, color, dashes in (
            (self.table.precision, "precision", VERMILLION, "--"),
            (self.table.recall, "recall", BLUE, "-"),
        ):
            name = label if self.name is None else f"{label}, {self.name}"
            draw_curve(ax, x, band, kept, name, {"color": color, "linestyle": dashes} | style)
            self._mark_own(ax, x, band.value, label == "recall")
        log_axis(ax.xaxis, self.table.alert_unit, (x[kept][0], x[kept][-1]))
        share_axis(ax.yaxis, "", _SHARES)


class CostDisplay(TableDisplay):
    """Cost of errors on all the rows together against the number of alerts, with intervals.

    Made as `TableDisplay`, of a table with costs and without a `value`.
    """

    key, title = "cost", "Cost against the number of alerts"

    def _words(self) -> str:
        table, least, own = self.table, self.table.least_cost, self.table.own
        of_model = "" if own is None else f" At the model's own threshold it is {self._at(own)}."
        return (
            f"Errors cost least, {self._at(least)} on these rows, at score > "
            f"{table.thresholds[least]:.4g}, with {whole(float(table.alerts[least]))} alerts."
            f"{of_model} Without any alert it would be {self._at(0)}. The least was found on these "
            "very rows, and is flattered by that. Ranges hold for as many rare rows as here."
        )

    def rows(self) -> TableBlock:
        """Return the cost at thresholds, the one of the least cost among them."""
        table, own = self.table, self.table.own
        marks = {table.least_cost: " (the least)"}
        marks |= {} if own is None else {own: " (the model's)"}
        places = sorted({*map(int, table.thinned(_N_LINES)), *marks})
        columns = {
            "Score above": [f"{table.thresholds[k]:.4g}{marks.get(k, '')}" for k in places],
            "Alerts": [whole(float(table.alerts[k])) for k in places],
            "Cost": map(self._at, places),
        }
        return TableBlock.of(f"Cost of errors: {table.cost_words}", columns)

    def _at(self, place: int) -> str:
        assert self.table.cost is not None
        return self.table.cost.at(place).amounts()

    def _draw(self, ax: Axes, **style: Any) -> None:
        cost = self.table.cost
        if cost is None:
            raise ErrorKind.COMBINATION.error("no costs: give costs={'fp': ..., 'fn': ...}.")
        x = self.table.amounts.value
        kept = self._places(x)
        draw_curve(ax, x, cost, kept, self.name or "cost", style)
        least = self.table.least_cost
        ax.plot(
            max(x[least], x[kept][0]), cost.value[least], "o", color=VERMILLION, markersize=6,
            label="the least", zorder=5,
        )  # fmt: skip
        self._mark_own(ax, x, cost.value)
        log_axis(ax.xaxis, self.table.alert_unit, (x[kept][0], x[kept][-1]))
        ax.set_ylim(0.0, None)
        ax.yaxis.set_major_formatter(plain_number)
        ax.set_ylabel(f"cost on these rows ({self.table.cost_words})")


@dataclass(frozen=True)
class ShownMeasure:
    """A measure at the threshold that is shown."""

    key: str
    label: str
    value: str
    bounds: str
    bar: tuple[float, float] | None = None  # start and width of its interval in percent


@dataclass(frozen=True)
class ThresholdChoice(PagePart):
    """The threshold that the reader drags: how it is before, and the data for all of them."""

    table: ThresholdTable
    rare: str  # name of the rare class
    rest: str  # name of the majority class
    plot: Plot  # precision and recall against alerts; the chosen threshold is marked
    place: int  # in the table
    threshold: str
    counts: dict[str, str]  # rows by what they are and what they are called
    measures: tuple[ShownMeasure, ...]
    command: str
    data: str


def threshold_section(
    table: ThresholdTable, rare: str, rest: str, rule: str, command: str
) -> Section:
    """Section with the slider; `command` has ``{threshold}`` where the number goes."""
    plot = AlertsDisplay(table).on_page()
    place = table.own if table.own is not None else table.at_alerts(table.n_rare)
    hits, false_alerts = table.hits[place], table.false_alerts[place]
    counts = {
        "tp": whole(hits),
        "fn": whole(table.n_rare - hits),
        "fp": whole(false_alerts),
        "tn": whole(table.n_rest - false_alerts),
    }
    threshold = float(table.thresholds[place])
    # As it is typed: all digits, without the ".0" of whole numbers.
    typed = command.replace("{threshold}", repr(threshold).removesuffix(".0"))
    columns = table.for_script() | {"command": command, "axis": plot.axis}
    data = json.dumps(columns, separators=(",", ":"), allow_nan=False)
    data = data.replace("<", "\\u003c")  # JSON that cannot end a script element
    shown, measures = f"{threshold:.6g}", _measures(table, place)
    choice = ThresholdChoice(table, rare, rest, plot, place, shown, counts, measures, typed, data)
    own = f" The triangle below the slider is the model's own: {rule}." if rule else ""
    return Section(
        "threshold",
        "Choose the threshold",
        "Rows that score above it raise an alert. Move it to see what that finds, what it misses "
        f"and how much there is to look at.{own}",
        (choice,),
    )


def _measures(table: ThresholdTable, place: int) -> tuple[ShownMeasure, ...]:
    measures = []
    for key, label, share in (
        ("precision", "Precision: of the alerts are rare", table.precision.at(place)),
        ("recall", "Recall: of the rare rows are found", table.recall.at(place)),
    ):
        bounds = "no alerts" if math.isnan(share.value) else percent_bounds(share)
        bar = (round(100 * share.low, 2), round(100 * (share.high - share.low), 2))
        measures.append(ShownMeasure(key, label, percent(share.value), bounds, bar))
    alerts = table.amounts.at(place)
    bounds = alerts.amount_bounds()
    if table.busiest is not None:
        bounds += f"; at most {whole(float(table.busiest[place]))} on one day"
    label = table.alert_unit.capitalize()
    measures.append(ShownMeasure("alerts", label, amount_text(alerts.value), bounds))
    if table.cost is not None:
        cost, label = table.cost.at(place), f"Cost on these rows ({table.cost_words})"
        measures.append(ShownMeasure("cost", label, amount_text(cost.value), cost.amount_bounds()))
    return tuple(measures)


def cost_section(table: ThresholdTable) -> Section:
    """Section on the expected cost against the threshold; the table has costs."""
    lead = f"With {table.cost_words}, as given; fp is a false alert, fn a missed rare row."
    return Section("cost", "What errors cost", lead, (Plots((CostDisplay(table).on_page(),)),))
