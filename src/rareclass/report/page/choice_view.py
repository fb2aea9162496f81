"""The threshold that is dragged, as the template takes it: the words of one, the data of all."""

import json
import math
from dataclasses import dataclass
from typing import Any

from rareclass.metrics.interval import Interval
from rareclass.report.page.document import Plot, Table, ThresholdChoice
from rareclass.report.page.wording import (
    amount,
    percent,
    percent_bounds,
    percent_with_bounds,
    whole,
)
from rareclass.report.summaries.threshold_table import ThresholdTable

# Bounds are kept as so many parts of 1: digits beyond are noise, and a tenth of the file.
_SCALE = 10_000
_TEN = 10


@dataclass(frozen=True)
class Measure:
    """A measure at the threshold that is shown."""

    key: str
    label: str
    value: str
    bounds: str
    bar: tuple[float, float] | None = None  # where its interval begins and how wide it is, in %


@dataclass(frozen=True)
class Shown:
    """What stands on the page before anything is dragged, and the data for the rest."""

    place: int
    last: int
    own: int | None
    own_share: float  # of the slider's way
    threshold: str
    is_own: str
    tp: str
    fn: str
    fp: str
    tn: str
    measures: tuple[Measure, ...]
    rate_words: str
    command: str
    ten: Table
    data: str
    asks_costs: bool  # what errors cost is not known: the reader may say


@dataclass(frozen=True)
class ChoiceView:
    """A choice of thresholds with what is shown of it."""

    rare: str
    rest: str
    plot: Plot | None
    shown: Shown


def choice_view(choice: ThresholdChoice) -> ChoiceView:
    """Everything that the template puts in its places."""
    table = choice.table
    place = table.own if table.own is not None else table.at_alerts(table.n_rare)
    last = len(table.thresholds) - 1
    hits, false_alerts = table.hits[place], table.false_alerts[place]
    threshold = _typed(float(table.thresholds[place]))
    return ChoiceView(
        choice.rare,
        choice.rest,
        choice.plot,
        Shown(
            place,
            last,
            table.own,
            0.0 if table.own is None else round(table.own / max(last, 1), 5),
            f"{table.thresholds[place]:.6g}",
            ", the model's own threshold" if table.own is not None else "",
            whole(hits),
            whole(table.n_rare - hits),
            whole(false_alerts),
            whole(table.n_rest - false_alerts),
            _measures(table, place),
            rate_words(table),
            choice.command.replace("{threshold}", threshold),
            ten_thresholds(table),
            _data(choice),
            table.cost is None,
        ),
    )


def rate_words(table: ThresholdTable) -> str:
    """What alerts are counted in."""
    return "alerts a day" if table.n_days else "alerts in 10,000 rows"


def per_unit(table: ThresholdTable) -> float:
    """What an alert of these rows comes to in that unit."""
    return 1.0 / table.n_days if table.n_days else 1e4 / table.n_rows


def alerts_interval(table: ThresholdTable, place: int) -> Interval:
    """Alerts in that unit with the bounds of their share of the rows."""
    unit = table.n_rows * per_unit(table)
    return Interval(*(each * unit for each in table.alert_rate.at(place)))


def ten_thresholds(table: ThresholdTable) -> Table:
    """Ten thresholds over the logarithm of alerts, the model's own among them."""
    spread = list(table.thinned(_TEN))
    if table.own is not None and table.own not in spread:
        nearest = min(range(1, len(spread) - 1), key=lambda k: abs(spread[k] - table.own))
        spread[nearest] = table.own
    own = table.own
    cost = ("Cost",) if table.cost is not None else ()
    rows = []
    for k in sorted({int(each) for each in spread}):
        name = f"{table.thresholds[k]:.6g}"
        cells = [
            f"{name} (the model's)" if k == own else name,
            whole(table.alerts[k]),
            amount(table.alerts[k] * per_unit(table)),
            whole(table.hits[k]),
            whole(table.n_rare - table.hits[k]),
            percent_with_bounds(table.precision.at(k)),
            percent_with_bounds(table.recall.at(k)),
        ]
        if table.cost is not None:
            cells.append(amount(float(table.cost.value[k])))
        rows.append(tuple(cells))
    head = (
        "Score above", "Alerts", rate_words(table).capitalize(), "Found", "Missed", "Precision",
        "Recall", *cost,
    )  # fmt: skip
    return Table(
        "Ten thresholds, with exact 95 % intervals", head, tuple(rows), tuple(range(len(head)))
    )


def _measures(table: ThresholdTable, place: int) -> tuple[Measure, ...]:
    precision, recall = table.precision.at(place), table.recall.at(place)
    alerts = alerts_interval(table, place)
    busiest = ""
    if table.busiest is not None:
        busiest = f"; at most {whole(float(table.busiest[place]))} on one day"
    found = [
        _share("precision", "Precision: of the alerts are rare", precision),
        _share("recall", "Recall: of the rare rows are found", recall),
        Measure(
            "alerts",
            rate_words(table).capitalize(),
            amount(alerts.value),
            f"{amount(alerts.low)} to {amount(alerts.high)}{busiest}",
        ),
    ]
    if table.cost is not None:
        low, high = float(table.cost.low[place]), float(table.cost.high[place])
        found.append(
            Measure(
                "cost",
                f"Cost on these rows ({table.cost.words})",
                amount(float(table.cost.value[place])),
                f"{amount(low)} to {amount(high)}",
            )
        )
    return tuple(found)


def _share(key: str, label: str, interval: Interval) -> Measure:
    bounds = "no alerts" if math.isnan(interval.value) else percent_bounds(interval)
    bar = (round(100 * interval.low, 2), round(100 * (interval.high - interval.low), 2))
    return Measure(key, label, percent(interval.value), bounds, bar)


def _typed(threshold: float) -> str:
    """A threshold as it is typed: all of its digits.

    >>> _typed(1.36), _typed(2.0), _typed(1e-7)
    ('1.36', '2', '1e-07')
    """
    return repr(threshold).removesuffix(".0")


def _data(choice: ThresholdChoice) -> str:
    """The columns of the table for the script, as JSON that cannot end a script element."""
    table = choice.table
    unit = table.n_rows * per_unit(table)
    columns: dict[str, Any] = {
        "threshold": [_finite(each) for each in table.thresholds.tolist()],
        "hits": [_short(each) for each in table.hits.tolist()],
        "false_alerts": [_short(each) for each in table.false_alerts.tolist()],
        "n_rare": _short(table.n_rare),
        "n_rest": _short(table.n_rest),
        "own": table.own,
        "rate": per_unit(table),
        "scale": _SCALE,
        "command": choice.command,
        "axis": choice.axis,
        "alerts_low": [_digits(each * unit) for each in table.alert_rate.low.tolist()],
        "alerts_high": [_digits(each * unit) for each in table.alert_rate.high.tolist()],
    }
    for name, band in (("precision", table.precision), ("recall", table.recall)):
        columns[f"{name}_low"] = [round(_SCALE * each) for each in band.low.tolist()]
        columns[f"{name}_high"] = [round(_SCALE * each) for each in band.high.tolist()]
    if table.cost is None:
        # For what the reader says that errors cost.
        rate = table.false_positive_rate
        columns["false_alerts_low"] = [_digits(each * table.n_rest) for each in rate.low.tolist()]
        columns["false_alerts_high"] = [_digits(each * table.n_rest) for each in rate.high.tolist()]
    if table.busiest is not None:
        columns["busiest"] = [_short(each) for each in table.busiest.tolist()]
    if table.cost is not None:
        for name, values in zip(("cost", "cost_low", "cost_high"), table.cost[1:], strict=True):
            columns[name] = [_digits(each) for each in values.tolist()]
    return json.dumps(columns, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.copysign(1.7e308, value)


def _short(value: float) -> float | int:
    """A count without a decimal point, where it is whole."""
    return int(value) if value == int(value) else float(f"{value:.7g}")


def _digits(value: float) -> float | int:
    return _short(float(f"{value:.6g}"))
