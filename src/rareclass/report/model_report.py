"""A report of a model on rows with known classes."""

import math
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from rareclass.errors import InputError, counted
from rareclass.metrics import Interval, average_precision_interval, roc_auc_interval
from rareclass.model.beside import day_of
from rareclass.model.drift import drift_of
from rareclass.model.model_file import ModelFile
from rareclass.report.model_card import Evidence, meant, not_meant
from rareclass.report.page.choice_view import alerts_interval, rate_words
from rareclass.report.page.document import Figure, Report, Section
from rareclass.report.page.wording import (
    amount,
    percent,
    percent_bounds,
    percent_with_bounds,
    whole,
)
from rareclass.report.reading import Asked, ReadRows, check_rare_class, read_rows
from rareclass.report.sections.card import card_section, settings_section
from rareclass.report.sections.cost import cost_section
from rareclass.report.sections.data import data_section
from rareclass.report.sections.features import features_section
from rareclass.report.sections.parts import parts_section
from rareclass.report.sections.ranking import ranking_section
from rareclass.report.sections.scores import scores_section
from rareclass.report.sections.threshold import threshold_section
from rareclass.report.single_rows import Singled, single_out
from rareclass.report.summaries.column_drift import ColumnDrift
from rareclass.report.summaries.parts import Parts
from rareclass.report.summaries.reliability import Reliability
from rareclass.report.summaries.score_distribution import ScoreDistribution
from rareclass.report.summaries.score_drift import ScoreDrift
from rareclass.report.summaries.threshold_table import ThresholdTable
from rareclass.tables.table_file import TablePlace


@dataclass(frozen=True)
class Judged:
    """What the rows of a report come to, before it is written down."""

    table: ThresholdTable
    auc: Interval
    average_precision: Interval
    distribution: ScoreDistribution
    reliability: Reliability | None

    @property
    def own(self) -> int:
        """The place of the model's threshold."""
        assert self.table.own is not None
        return self.table.own


def report_on_model(
    content: ModelFile, model: Path, data: TablePlace, asked: Asked
) -> tuple[Report, dict[str, Any]]:
    """A report, and its numbers as plain data.

    Raises `InputError` as `read_rows`.
    """
    rows = read_rows(content, data, asked)
    judged = judge(content, rows.y, rows.scores, None, rows.time, rows.costs)
    importances = dict(content.metadata.get("importances") or {})
    outside = {each.name: each.share for each in drift_of(rows.seen, None).columns}
    drifts = [] if rows.columns is None else rows.columns.found(outside, importances)
    score_drift = _score_drift(content, rows)
    singled = single_out(content, rows, judged.table, asked.n_shown)
    days, groups = _parts(content, rows, asked)
    sections = [
        *_sections_of_scores(content, judged, model),
        *([] if judged.table.cost is None else [cost_section(judged.table)]),
        *_features(content, importances, singled),
        *singled.sections,
        *([] if days is None and groups is None else [parts_section(days, groups)]),
        data_section(_data_facts(rows, asked), drifts, score_drift, _data_notes(content, rows)),
    ]
    evidence = Evidence(
        content, judged.table, judged.reliability, drifts, score_drift, days, groups, rows.name
    )
    sections += [
        card_section(meant(evidence), not_meant(evidence)),
        settings_section(settings_of_model(content, model, data)),
    ]
    report = _page(content, judged, sections, f"{model.name} on {rows.name}", rows.name)
    return report, plain_data(judged, drifts, score_drift, days, groups)


def report_on_held_out(
    content: ModelFile, model: Path, costs: Any = None
) -> tuple[Report, dict[str, Any]]:
    """A report from the scores that a model file keeps of rows held out.

    Raises `InputError` where it keeps none, or the model is of levels.
    """
    check_rare_class(content)
    held = content.held_out
    if held is None or len(np.unique(held.y == 1)) < 2:
        raise InputError(
            f"{model} has no scores of rows held out.",
            "Give a file with the target that the model did not learn from.",
        )
    judged = judge(content, held.y == 1, held.scores, held.weight, costs=costs)
    importances = dict(content.metadata.get("importances") or {})
    told = content.metadata["columns"]
    n_rows = content.metadata.get("n_rows") or 1
    columns = [
        ColumnDrift(
            each["name"], each["kind"], each["treatment"], (each.get("n_missing") or 0) / n_rows,
            None, each.get("n_distinct"), importance=importances.get(each["name"]),
        )
        for each in told
    ]  # fmt: skip
    evidence = Evidence(content, judged.table, judged.reliability, columns, None, None, None, None)
    sections = [
        *_sections_of_scores(content, judged, model),
        *([] if judged.table.cost is None else [cost_section(judged.table)]),
        *([features_section(importances, _IMPORTANCE, {}, 0)] if importances else []),
        data_section(_training_facts(content), columns, None, []),
        card_section(meant(evidence), not_meant(evidence)),
        settings_section(settings_of_model(content, model, None)),
    ]
    by = {"cross-fitting": "by cross-fitting"}.get(
        str(content.metadata.get("estimated_by")), f"on {content.metadata.get('estimated_by')}"
    )
    report = _page(content, judged, sections, f"{model.name}, judged {by}", "the rows held out")
    return report, plain_data(judged, columns, None, None, None)


_IMPORTANCE = "How much of the ranking is lost when a column is mixed up, relative to the others"


def judge(
    content: ModelFile, y: Any, scores: Any, weight: Any, time: Any = None, costs: Any = None
) -> Judged:
    """Measure scores at every threshold."""
    own = float(content.model.offset_)
    table = ThresholdTable.of(y, scores, weight, own=own, time=time, costs=costs)
    reliability = None
    if content.calibration is not None:
        reliability = Reliability.of(y, content.calibration(scores), weight)
    return Judged(
        table,
        roc_auc_interval(y, scores, sample_weight=weight),
        average_precision_interval(y, scores, sample_weight=weight),
        ScoreDistribution.of(y, scores, weight),
        reliability,
    )


def _sections_of_scores(content: ModelFile, judged: Judged, model: Path) -> list[Section]:
    metadata = content.metadata
    rule = metadata.get("rule") or {}
    words = rule.get("rule") or "the best balanced accuracy on rows held out"
    out = model.with_name(f"{model.stem}-threshold{model.suffix or '.skops'}")
    command = (
        f"rareclass threshold {shlex.quote(str(model))} --threshold {{threshold}} "
        f"--out {shlex.quote(str(out))}"
    )
    return [
        threshold_section(
            judged.table,
            f"{metadata['target']} = {metadata['rare_label']}",
            f"{metadata['target']} = {metadata['rest_label']}"
            if metadata["rest_label"] != "rest"
            else "the rest",
            words,
            command,
        ),
        ranking_section(judged.table, judged.auc, judged.average_precision),
        scores_section(judged.distribution, float(content.model.offset_), judged.reliability),
    ]


def _features(content: ModelFile, importances: dict[str, float], singled: Singled) -> list[Section]:
    if not importances and not singled.reasons:
        return []
    return [features_section(importances, _IMPORTANCE, singled.reasons, singled.n_explained)]


def _score_drift(content: ModelFile, rows: ReadRows) -> ScoreDrift | None:
    held = content.held_out
    if held is None:
        return None
    return ScoreDrift.of(held.scores, held.weight, rows.scores, float(content.model.offset_))


def _parts(content: ModelFile, rows: ReadRows, asked: Asked) -> tuple[Parts | None, Parts | None]:
    threshold = float(content.model.offset_)
    days = groups = None
    if rows.time is not None and asked.time is not None:
        days = Parts.of(
            asked.time, day_of(rows.time).astype(str), rows.y, rows.scores, threshold,
            in_order=True,
        )  # fmt: skip
    if rows.groups is not None and asked.groups is not None:
        groups = Parts.of(asked.groups, rows.groups, rows.y, rows.scores, threshold)
    return days, groups


def _page(
    content: ModelFile, judged: Judged, sections: list[Section], subtitle: str, on: str
) -> Report:
    table, metadata = judged.table, content.metadata
    own = judged.own
    precision, recall = table.precision.at(own), table.recall.at(own)
    alerts, unit = alerts_interval(table, own), rate_words(table)
    held = f"{whole(table.n_rows)} rows, {whole(table.n_rare)} of them rare"
    rare = f"{metadata['target']} = {metadata['rare_label']}"
    verdict = (
        f"At its threshold the model raises {amount(alerts.value)} {unit}"
        f"{_found(precision, recall)}"
    )
    figures = (
        Figure("Rare rows found (recall)", percent(recall.value), percent_bounds(recall)),
        Figure(
            "Alerts that are rare (precision)", percent(precision.value), percent_bounds(precision)
        ),
        Figure(
            unit.capitalize(), amount(alerts.value),
            f"{amount(alerts.low)} to {amount(alerts.high)}",
        ),
        Figure(
            "Average precision", f"{judged.average_precision.value:.3f}",
            f"{judged.average_precision.low:.3f} to {judged.average_precision.high:.3f}",
        ),
        Figure(
            "AUC", f"{judged.auc.value:.3f}",
            f"{judged.auc.low:.3f} to {judged.auc.high:.3f}",
        ),
    )  # fmt: skip
    return Report(
        f"Finding {rare}",
        f"{subtitle}: {held}",
        verdict,
        figures,
        tuple(sections),
        made(),
    )


def _found(precision: Interval, recall: Interval) -> str:
    if math.isnan(precision.value):
        return ", and so finds none of the rare rows."
    return (
        f". Of these {percent_with_bounds(precision)} are rare, and they are "
        f"{percent_with_bounds(recall)} of all rare rows. Ranges are 95\u00a0% intervals."
    )


def made() -> str:
    """When a page was made, and by what."""
    when = datetime.now(UTC).strftime("%Y-%m-%d at %H:%M UTC")
    return f"Made by rareclass {version('rareclass')} on {when}."


def _data_facts(rows: ReadRows, asked: Asked) -> tuple[tuple[str, str], ...]:
    n, n_rare = len(rows.y), int(rows.y.sum())
    facts = [
        ("File", rows.name),
        ("Rows", whole(n)),
        ("Rare rows", f"{whole(n_rare)} ({percent(n_rare / n)})"),
    ]
    if rows.seen.n_columns:
        facts.append(("Columns that the model looks at", whole(rows.seen.n_columns)))
    if rows.columns is not None and rows.columns.n_copies:
        copies = rows.columns.n_copies
        facts.append(
            ("Exact copies of other rows here", f"{whole(copies)} ({percent(copies / n)})")
        )
    if rows.time is not None:
        days = day_of(rows.time)
        span = f"{days.min()} to {days.max()}, {counted(len(np.unique(days)), 'day')}"
        facts.append((f"Time ({asked.time})", span))
    if rows.groups is not None:
        facts.append((f"Groups ({asked.groups})", whole(len(np.unique(rows.groups)))))
    if rows.seen.extra_columns:
        names = rows.seen.extra_columns
        more = f" and {len(names) - 12} more" if len(names) > 12 else ""
        facts.append(("Columns left out", ", ".join(names[:12]) + more))
    return tuple(facts)


def _data_notes(content: ModelFile, rows: ReadRows) -> list[str]:
    notes = []
    if rows.n_unlabelled:
        left = "was" if rows.n_unlabelled == 1 else "were"
        unlabelled = counted(rows.n_unlabelled, "row has", "rows have")
        notes.append(f"{unlabelled} no class and {left} left out.")
    told = content.metadata
    if told.get("n_copies_collapsed") and not told.get("copies_count"):
        notes.append(
            "Training counted copies of a row once, and here each counts: columns of which many "
            "rows are copies seem to have moved."
        )
    return notes


def _training_facts(content: ModelFile) -> tuple[tuple[str, str], ...]:
    told = content.metadata
    facts = [("Rows learned from", whole(told.get("n_rows") or 0))]
    if told.get("n_rare") is not None and told.get("n_rows"):
        share = percent(told["n_rare"] / told["n_rows"])
        facts.append(("Rare rows", f"{whole(told['n_rare'])} ({share})"))
    if told.get("n_copies_collapsed"):
        how = "counted as often as they are there" if told.get("copies_count") else "counted once"
        facts.append(("Exact copies", f"{whole(told['n_copies_collapsed'])}, {how}"))
    if told.get("n_rows_without_target"):
        facts.append(("Rows without a class, left out", whole(told["n_rows_without_target"])))
    facts.append(("Columns", whole(len(told["columns"]))))
    return tuple(facts)


def settings_of_model(
    content: ModelFile, model: Path, data: TablePlace | None
) -> list[tuple[str, str]]:
    """Settings, versions, seed and date of a model, and the files."""
    told = content.metadata
    facts = [("Model file", str(model))] + ([] if data is None else [("Rows", str(data))])
    names = {
        "date": "Trained", "method": "Method", "objective": "Objective", "seed": "Seed",
        "time_budget": "Time budget, seconds", "estimated_by": "Estimated by",
        "holdout": "Share held out", "groups": "Kept together by", "time": "Held out by time",
        "lam": "lam", "width": "Kernel width", "n_landmarks": "Landmarks", "cost": "Cost C",
        "covariance": "Covariance", "loss": "Loss",
    }  # fmt: skip
    for key, name in names.items():
        value = told.get(key)
        if value not in (None, "", 0.0) or key == "seed":
            facts.append((name, f"{value:g}" if isinstance(value, float) else str(value)))
    facts.append(("Threshold", f"{float(content.model.offset_):.6g}"))
    members = [each["member"] for each in told.get("leaderboard", ()) if each["weight"] > 0]
    if members:
        facts.append(("Members", ", ".join(dict.fromkeys(members))))
    versions = told.get("versions") or {}
    if versions:
        facts.append(
            ("Versions", ", ".join(f"{name} {number}" for name, number in versions.items()))
        )
    return facts


def plain_data(
    judged: Judged,
    drifts: list[ColumnDrift],
    score_drift: ScoreDrift | None,
    days: Parts | None,
    groups: Parts | None,
) -> dict[str, Any]:
    """The numbers of a report for scripts."""
    table, own = judged.table, judged.own
    return {
        "n_rows": table.n_rows,
        "n_rare": table.n_rare,
        "measures": {
            "AUC": judged.auc._asdict(),
            "average precision": judged.average_precision._asdict(),
        },
        "threshold": float(table.thresholds[own]),
        "at_threshold": {
            "true_rare": float(table.hits[own]),
            "false_rare": float(table.false_alerts[own]),
            "precision": table.precision.at(own)._asdict(),
            "recall": table.recall.at(own)._asdict(),
        },
        "thresholds": {
            "threshold": table.thresholds.tolist(),
            "true_rare": table.hits.tolist(),
            "false_rare": table.false_alerts.tolist(),
        },
        "alert_rate": None
        if score_drift is None
        else {
            "here": score_drift.at_threshold.now._asdict(),
            "held_out": score_drift.at_threshold.before._asdict(),
            "differs": score_drift.differs,
        },
        "stability_index": {each.name: each.stability_index for each in drifts},
        "worse_parts": {
            parts.by: [each.name for each in parts.worse] for parts in (days, groups) if parts
        },
    }
