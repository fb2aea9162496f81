"""Prometheus measures: time, rows and errors of requests; scores and inputs of the model."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import polars as pl
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector

from rareclass.serving.live_model import InputDrift, LiveModel, RowScores, ServedModel

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

# Measures of each column: what they mean, and which figure of its drift they are.
_OF_COLUMNS = {
    "stability_index": (
        "Population stability index of a column against training; 0.25 is far.",
        "stability_index",
    ),
    "unlike_training": (
        "Share of a column's cells beyond the range of training, or words it did not have.",
        "outside",
    ),
    "missing": ("Share of a column's cells that are empty.", "missing_now"),
    "missing_in_training": (
        "Share of a column's cells that were empty in training.",
        "missing_before",
    ),
}


class Measures:
    """Counts requests and rows in a registry of its own; asked, it tells of the model as well."""

    def __init__(self, model: LiveModel) -> None:
        self._model = model
        self._registry = CollectorRegistry()
        # Counting the scored rows keeps no request waiting.
        self._looks = ThreadPoolExecutor(1, thread_name_prefix="look")
        self._seconds = Histogram(
            "rareclass_request_seconds",
            "Time from a request's first byte to the end of its answer.",
            ("path", "status"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        counter = partial(Counter, namespace="rareclass", registry=self._registry)
        self._errors = counter("errors", "Requests answered with an error.", ["kind"])
        self._rows = counter("rows", "Rows scored, by what they were called.", ["decision"])
        self._loads = counter("model_loads", "Files that took over, or were refused.", ["outcome"])
        self.in_flight = Gauge(
            "rareclass_requests_in_flight", "Requests being answered.", registry=self._registry
        )
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def request(self, path: str, status: int, seconds: float, kind: str) -> None:
        """Count a request; `kind` is the kind of its error, or empty."""
        self._seconds.labels(path, str(status)).observe(seconds)
        if kind:
            self._errors.labels(kind).inc()

    def scored(self, served: ServedModel, rows: pl.DataFrame, scores: RowScores) -> None:
        """Count scored rows; called from threads."""
        n_called = np.bincount(scores.called, minlength=len(served.classes))
        for name, n_rows in zip(served.classes, n_called.tolist(), strict=True):
            if n_rows:
                self._rows.labels(name).inc(n_rows)
        if served.drift.add(rows, scores.columns["score"].to_numpy()):
            self._looks.submit(served.drift.look)

    def load(self, outcome: str) -> None:
        """Count a file that took over, or was refused."""
        self._loads.labels(outcome).inc()

    def close(self) -> None:
        """Wait until the held rows are counted."""
        self._looks.shutdown()

    def exposed(self) -> bytes:
        """All measures in the text format of Prometheus; counts the rows held first."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """Measures of the model that answers now, gathered when Prometheus asks."""
        served = self._model.now
        info = GaugeMetricFamily(
            "rareclass_model_info", "The model that answers.", labels=("model", "target", "method")
        )
        method = str(served.facts.get("method") or "")
        info.add_metric((served.name, served.target, method), 1.0)
        yield info
        yield GaugeMetricFamily(
            "rareclass_model_since_seconds", "When it took over, in Unix time.", self._model.since
        )
        yield from _drift_measures(served.drift)


def _drift_measures(drift: InputDrift) -> Iterable[Metric]:
    n_rows, found = drift.figures()
    yield GaugeMetricFamily(
        "rareclass_input_window_rows", "Latest rows that the figures of inputs are of.", n_rows
    )
    if not n_rows:
        return
    for name, (meaning, figure) in _OF_COLUMNS.items():
        family = GaugeMetricFamily(f"rareclass_input_{name}", meaning, labels=("column",))
        for column in found.compared:
            if (value := vars(column)[figure]) is not None:
                family.add_metric((column.name,), value)
        yield family
    if (alerts := found.alerts) is not None:
        family = GaugeMetricFamily(
            "rareclass_alert_share", "Share of rows above the threshold.", labels=("of",)
        )
        family.add_metric(("requests",), alerts.found.value)
        family.add_metric(("held out rows",), alerts.expected.value)
        yield family
