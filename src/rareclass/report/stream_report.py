"""A report of a stream: what its folder knows of how it went."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rareclass.errors import InputError
from rareclass.metrics import average_precision_interval, roc_auc_interval
from rareclass.report.model_report import made
from rareclass.report.page.document import Facts, Figure, Report, Section
from rareclass.report.page.wording import percent, whole
from rareclass.report.sections.card import settings_section
from rareclass.report.sections.ranking import ranking_section
from rareclass.report.sections.stream import (
    AlertRow,
    LogRow,
    alerts_over_time_section,
    drift_over_time_section,
    measures_over_time_section,
)
from rareclass.report.sections.threshold import threshold_section
from rareclass.report.summaries.threshold_table import ThresholdTable
from rareclass.stream.checkpoint import SavedStream, load_newest
from rareclass.stream.log import read_log


def report_on_stream(folder: Path) -> tuple[Report, dict[str, Any]]:
    """A report, and its numbers as plain data.

    Raises `InputError` where the folder has no checkpoint, or the stream has not come to a report.
    """
    loaded = load_newest(folder)
    if loaded is None:
        raise InputError(f"{folder} has no checkpoint.", "rareclass stream makes one.")
    state = loaded.state
    log = _log(folder)
    if not log:
        raise InputError(
            f"The stream in {folder} has not come to a report yet.",
            "Let it go on, or give it a smaller --report-every.",
        )
    window = state.window
    scores, rare = window.rows()
    sections = [measures_over_time_section(log, window.size, window.top)]
    figures = [
        Figure("Rows so far", whole(log[-1].rows), f"{whole(log[-1].rare)} of them rare"),
    ]
    verdict = f"After {whole(log[-1].rows)} rows"
    if 0 < rare.sum() < len(rare):
        auc = roc_auc_interval(rare, scores)
        precision = average_precision_interval(rare, scores)
        figures += [
            Figure("AUC of the window", f"{auc.value:.3f}", f"{auc.low:.3f} to {auc.high:.3f}"),
            Figure(
                "Average precision of the window", f"{precision.value:.3f}",
                f"{precision.low:.3f} to {precision.high:.3f}",
            ),
        ]  # fmt: skip
        verdict += (
            f" the last {whole(len(rare))} with a class, {whole(int(rare.sum()))} of them rare, "
            f"were ranked with an average precision of {precision.value:.3f} "
            f"({precision.low:.3f} to {precision.high:.3f}, 95\u00a0% interval)"
        )
    verdict += _state_of(log)
    sections.append(drift_over_time_section(log))
    if state.alerts is not None:
        alerts, budget = state.alerts.n_alerts, state.alerts.threshold.budget.words
        figures.append(Figure("Alerts", whole(alerts), f"at most {budget}"))
        sections.append(_alerts(state, log[-1].rows, alerts, budget))
    if 0 < rare.sum() < len(rare) and not (scores == scores[0]).all():
        sections += _of_window(folder, state, scores, rare)
    sections += [_data(state, log), settings_section(_settings(folder, state))]
    target = state.options["target"]
    report = Report(
        f"Stream for {target} = {state.labels.rare}",
        f"{folder}: {whole(log[-1].rows)} rows so far, last report of {log[-1].time}",
        verdict,
        tuple(figures),
        tuple(sections),
        made(),
    )
    return report, {"reports": [_plain(each) for each in log]}


def _state_of(log: list[LogRow]) -> str:
    last = log[-1]
    fell = f"; {', '.join(last.falls)} fell beyond chance" if last.falls else ""
    moved = f"; {len(last.moved)} columns had moved" if last.moved else ""
    return f"{fell}{moved}."


def _log(folder: Path) -> list[LogRow]:
    return [
        LogRow(
            row["rows"],
            row["rare"],
            row["auc"],
            row["average_precision"],
            row["precision_at_k"],
            tuple(
                (each["column"], each["stability_index"], each["outside"])
                for each in row["moved"] or ()
            ),
            tuple(each["measure"] for each in row["falls"] or ()),
            row["time"].strftime("%Y-%m-%d %H:%M UTC"),
        )
        for row in read_log(folder).to_pylist()
    ]


def _alerts(state: SavedStream, n_rows: int, count: int, budget: str) -> Section:
    """From the file of alerts, where it is still there."""
    given = state.options.get("alerts")
    path = None if given is None else Path(given)
    if path is None or not path.is_file():
        named = "" if path is None else f" {path}"
        missing = f"The file of alerts{named} is not there: only their number is known."
        return alerts_over_time_section(count, budget, [], n_rows, missing)
    names = ["row", "score", "threshold"]
    if path.suffix.lower() == ".csv":
        frame = pl.read_csv(path, columns=names)
    else:
        frame = pl.read_ndjson(path, infer_schema_length=None).select(names)
    alerts = [AlertRow(*each) for each in frame.head(count).iter_rows()]
    return alerts_over_time_section(count, budget, alerts, n_rows, "")


def _of_window(
    folder: Path, state: SavedStream, scores: np.ndarray, rare: np.ndarray
) -> list[Section]:
    table = ThresholdTable.of(rare, scores)
    target, labels = state.options["target"], state.labels
    command = (
        f"rareclass score {shlex.quote(str(folder))} NEW_ROWS.csv --threshold {{threshold}} "
        "--out scores.csv"
    )
    return [
        threshold_section(
            table, f"{target} = {labels.rare}", f"{target} = {labels.rest}", "", command
        ),
        ranking_section(
            table, roc_auc_interval(rare, scores), average_precision_interval(rare, scores)
        ),
    ]


def _data(state: SavedStream, log: list[LogRow]) -> Section:
    counters = state.counters
    n_labelled = max(counters.labelled, 1)
    share = percent(counters.rare / n_labelled)
    facts = (
        ("Records", whole(counters.rows)),
        ("With a class, learned from", whole(counters.labelled)),
        ("Rare", f"{whole(counters.rare)} ({share})"),
        ("Without a class, scored only", whole(counters.unlabelled)),
        ("Reports", whole(len(log))),
    )
    return Section("data", "The data", "What has come so far.", (Facts(facts),))


def _settings(folder: Path, state: SavedStream) -> list[tuple[str, str]]:
    options = state.options
    facts = [("Folder", str(folder)), ("Source", str(options["source"]))]
    facts.append(("Learner", str(options["learner"])))
    parameters = options.get("parameters") or {}
    facts.append(("Parameters", ", ".join(f"{name} {value}" for name, value in parameters.items())))
    if options.get("drop"):
        facts.append(("Columns left out", ", ".join(options["drop"])))
    return facts


def _plain(row: LogRow) -> dict[str, Any]:
    return {
        "rows": row.rows,
        "rare": row.rare,
        "auc": row.auc,
        "average_precision": row.average_precision,
        "precision_at_k": row.precision_at_k,
        "moved": [name for name, _, _ in row.moved],
        "falls": list(row.falls),
    }
