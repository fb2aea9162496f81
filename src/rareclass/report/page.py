"""A report as one HTML file: no requests, readable without JavaScript, equal for equal reports."""

import json
import math
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from rareclass.metrics.interval import Interval
from rareclass.report.document import PageTable, Plot, ReportPage, ThresholdChoice
from rareclass.report.formatting import (
    amount,
    percent,
    percent_bounds,
    percent_with_bounds,
    whole,
)
from rareclass.report.threshold_table import ThresholdTable

# Bounds are written in ten-thousandths: more digits are noise, and a tenth of the file.
_SCALE = 10_000
_N_LISTED = 10


def rendered(page: ReportPage) -> str:
    """Return the HTML with its style, script and drawings inside.

    Raises `ImportError` without jinja2, which `rareclass[cli]` brings.
    """
    return str(_template().render(report=page, css=_part("page.css"), script=_part("page.js")))


def made_now() -> str:
    """Date, time and version, for the foot of a page."""
    when = datetime.now(UTC).strftime("%Y-%m-%d at %H:%M UTC")
    return f"Made by rareclass {version('rareclass')} on {when}."


@cache
def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("a report needs jinja2: pip install 'rareclass[cli]'.") from error
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["choice_view"] = choice_view
    environment.filters["base64"] = lambda png: b64encode(png).decode("ascii")
    return environment.from_string(_part("page.html.j2"))


@cache
def _part(name: str) -> str:
    return (files("rareclass.report") / "html" / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class ShownMeasure:
    """A measure at the threshold that is shown."""

    key: str
    label: str
    value: str
    bounds: str
    bar: tuple[float, float] | None = None  # start and width of its interval in percent


@dataclass(frozen=True)
class ChoiceView:
    """A choice of thresholds before anything is dragged, and the data for all of them."""

    rare: str
    rest: str
    plot: Plot | None
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
    measures: tuple[ShownMeasure, ...]
    rate_words: str
    command: str
    ten: PageTable
    data: str
    asks_costs: bool  # the costs of errors are not known: the reader may type them


def choice_view(choice: ThresholdChoice) -> ChoiceView:
    """Words and numbers for the template's placeholders."""
    table = choice.table
    place = table.own if table.own is not None else table.at_alerts(table.n_rare)
    last = len(table.thresholds) - 1
    hits, false_alerts = table.hits[place], table.false_alerts[place]
    # As it is typed: all digits, without the ".0" of whole numbers.
    threshold = repr(float(table.thresholds[place])).removesuffix(".0")
    return ChoiceView(
        choice.rare,
        choice.rest,
        choice.plot,
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
        table.alert_unit,
        choice.command.replace("{threshold}", threshold),
        _ten_thresholds(table),
        _data(choice),
        table.cost is None,
    )


def _ten_thresholds(table: ThresholdTable) -> PageTable:
    """Ten thresholds spread over the logarithm of alerts, the model's own among them."""
    own, spread = table.own, list(table.thinned(_N_LISTED))
    if own is not None and own not in spread:
        nearest = min(range(1, len(spread) - 1), key=lambda k: abs(spread[k] - own))
        spread[nearest] = own
    rows = []
    for k in sorted({int(each) for each in spread}):
        name = f"{table.thresholds[k]:.6g}"
        cells = [
            f"{name} (the model's)" if k == own else name,
            whole(table.alerts[k]),
            amount(table.alerts[k] * table.per_alert),
            whole(table.hits[k]),
            whole(table.n_rare - table.hits[k]),
            percent_with_bounds(table.precision.at(k)),
            percent_with_bounds(table.recall.at(k)),
        ]
        if table.cost is not None:
            cells.append(amount(float(table.cost.value[k])))
        rows.append(tuple(cells))
    head = (
        "Score above", "Alerts", table.alert_unit.capitalize(), "Found", "Missed", "Precision",
        "Recall", *(("Cost",) if table.cost is not None else ()),
    )  # fmt: skip
    return PageTable(
        "Ten thresholds, with exact 95 % intervals", head, tuple(rows), tuple(range(len(head)))
    )


def _measures(table: ThresholdTable, place: int) -> tuple[ShownMeasure, ...]:
    alerts = table.alerts_at(place)
    busiest = ""
    if table.busiest is not None:
        busiest = f"; at most {whole(float(table.busiest[place]))} on one day"
    measures = [
        _share("precision", "Precision: of the alerts are rare", table.precision.at(place)),
        _share("recall", "Recall: of the rare rows are found", table.recall.at(place)),
        ShownMeasure(
            "alerts",
            table.alert_unit.capitalize(),
            amount(alerts.value),
            f"{amount(alerts.low)} to {amount(alerts.high)}{busiest}",
        ),
    ]
    if table.cost is not None:
        value, low, high = table.cost.at(place)
        label = f"Cost on these rows ({table.cost.words})"
        bounds = f"{amount(low)} to {amount(high)}"
        measures.append(ShownMeasure("cost", label, amount(value), bounds))
    return tuple(measures)


def _share(key: str, label: str, interval: Interval) -> ShownMeasure:
    bounds = "no alerts" if math.isnan(interval.value) else percent_bounds(interval)
    bar = (round(100 * interval.low, 2), round(100 * (interval.high - interval.low), 2))
    return ShownMeasure(key, label, percent(interval.value), bounds, bar)


def _data(choice: ThresholdChoice) -> str:
    """Columns of the table for the script, as JSON that cannot end a script element."""
    table = choice.table
    unit = table.n_rows * table.per_alert
    columns: dict[str, Any] = {
        "threshold": [_finite(each) for each in table.thresholds.tolist()],
        "hits": [_short(each) for each in table.hits.tolist()],
        "false_alerts": [_short(each) for each in table.false_alerts.tolist()],
        "n_rare": _short(table.n_rare),
        "n_rest": _short(table.n_rest),
        "own": table.own,
        "rate": table.per_alert,
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
        # For costs of errors that the reader types.
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
    """A count, without a decimal point where it is whole."""
    return int(value) if value == int(value) else float(f"{value:.7g}")


def _digits(value: float) -> float | int:
    return _short(float(f"{value:.6g}"))
