"""The sections on the threshold: the slider, and the cost of errors at every threshold."""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rareclass.errors import ErrorKind
from rareclass.metrics.intervals import amount_text
from rareclass.report.drawing import BLUE, VERMILLION, Axes, log_axis, plain_number, share_axis
from rareclass.report.page import (
    PagePart,
    Plot,
    Plots,
    Section,
    percent,
    percent_bounds,
    percent_with_bounds,
    whole,
)
from rareclass.report.ranking_section import TableDisplay, draw_curve
from rareclass.report.threshold_table import ThresholdTable
from rareclass.table_block import TableBlock

_N_LINES = 9
_N_LISTED = 10
# Bounds are written in ten-thousandths: more digits are noise, and a tenth of the file.
_SCALE = 10_000


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
        own, spread = table.own, list(table.thinned(_N_LISTED))
        if own is not None and own not in spread:
            nearest = min(range(len(spread)), key=lambda k: abs(spread[k] - own))
            spread[nearest] = own
        places = sorted({int(each) for each in spread})
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
        log_axis(ax.xaxis, self.table.alert_unit)
        ax.set_xlim(x[kept][0], x[kept][-1])
        share_axis(ax.yaxis, "")
        ax.set_ylim(-0.02, 1.05)


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
        log_axis(ax.xaxis, self.table.alert_unit)
        ax.set_xlim(x[kept][0], x[kept][-1])
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
    columns = _columns(table) | {"command": command, "axis": plot.axis}
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


def _columns(table: ThresholdTable) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "threshold": np.clip(table.thresholds, -1.7e308, 1.7e308).tolist(),  # JSON has no infinity
        "hits": _short(table.hits),
        "false_alerts": _short(table.false_alerts),
        "n_rare": _short([table.n_rare])[0],
        "n_rest": _short([table.n_rest])[0],
        "own": table.own,
        "scale": _SCALE,
    }
    for name, values in zip(("alerts", "alerts_low", "alerts_high"), table.amounts, strict=True):
        columns[name] = _short(values, 6)
    for name, band in (("precision", table.precision), ("recall", table.recall)):
        columns[f"{name}_low"] = [round(_SCALE * each) for each in band.low.tolist()]
        columns[f"{name}_high"] = [round(_SCALE * each) for each in band.high.tolist()]
    if table.cost is None:
        # For costs of errors that the reader types.
        rate = table.false_positive_rate
        columns["false_alerts_low"] = _short(rate.low * table.n_rest, 6)
        columns["false_alerts_high"] = _short(rate.high * table.n_rest, 6)
    else:
        for name, values in zip(("cost", "cost_low", "cost_high"), table.cost, strict=True):
            columns[name] = _short(values, 6)
    if table.busiest is not None:
        columns["busiest"] = _short(table.busiest)
    return columns


def _short(values: Any, digits: int = 7) -> list[float | int]:
    """Numbers to so many digits, counts without a decimal point where they are whole."""
    found: list[float | int] = []
    for value in np.asarray(values, dtype=float).tolist():
        short = float(f"{value:.{digits}g}") if digits < 7 or value != int(value) else value
        found.append(int(short) if short == int(short) else short)
    return found


def cost_section(table: ThresholdTable) -> Section:
    """Section on the expected cost against the threshold; the table has costs."""
    lead = f"With {table.cost_words}, as given; fp is a false alert, fn a missed rare row."
    return Section("cost", "What errors cost", lead, (Plots((CostDisplay(table).on_page(),)),))
