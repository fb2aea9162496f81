"""The report of a model on rows with known classes: of a file, or held out of training."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rareclass.errors import command_line, counted, first_names, left_out_text
from rareclass.folds.dealing import day_of
from rareclass.metrics import CheckedMeasures, Interval
from rareclass.metrics.intervals import WeightedRate, amount_text
from rareclass.model.columns import columns_block
from rareclass.model.drift import ColumnDrift, drift_of
from rareclass.model.evaluate import OF_ALERTS, Promises
from rareclass.model.facts import CombinationFacts, KernelFacts, ModelFacts, MomentFacts
from rareclass.model.model import Model
from rareclass.model.threshold import held_out_of
from rareclass.report import ReportOptions
from rareclass.report.columns_and_rows import (
    data_section,
    features_section,
    moved_section,
    single_rows,
)
from rareclass.report.curves import cost_section, ranking_section, threshold_section
from rareclass.report.model_card import JudgedModel, card_section
from rareclass.report.page import (
    Fact,
    FinishedReport,
    KeyFigure,
    Note,
    ReportPage,
    Section,
    figure_of,
    percent,
    percent_bounds,
    percent_with_bounds,
    rows_facts,
    settings_section,
    whole,
)
from rareclass.report.reading import ReadRows, read_rows
from rareclass.report.scores_section import scores_section
from rareclass.report.subgroups import Subgroups, classes_section, subgroups_section
from rareclass.report.threshold_table import LEVEL
from rareclass.stored import plain_data
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.table_file import TablePlace

_MOST_NAMED, _MOST_COLUMNS = 12, 40


def report_on_model(
    content: Model,
    model: Path,
    data: TablePlace,
    options: ReportOptions,
    text: TextSettings = DETECTED,
) -> FinishedReport:
    """Report on the rows of a file; raises `InputError` as `read_rows`."""
    rows, threshold = read_rows(content, data, options, text), content.threshold
    scored, days, groups = rows.scored, None, None
    at = rows.y, scored.scores, threshold
    own, time = rows.dated.rows.labelled(), rows.time
    if time is not None and rows.time_column is not None:
        names, of_days = day_of(time).astype(str), (own.y == 1, own.scores, threshold)
        days = Subgroups.of(rows.time_column, names, *of_days, in_order=True, groups=own.group)
    if rows.groups is not None and options.groups is not None:
        training = content.facts.training
        is_own = training is not None and options.groups == training.groups
        alike = None if is_own else scored.group  # within a group, rows are independent
        groups = Subgroups.of(options.groups, rows.groups, *at, groups=alike)
    area = None if rows.checked is None else rows.checked.average_precision
    judged = JudgedModel.of(
        content,
        scored,
        rows.dated.cuts(),
        rows.costs,
        average_precision=area,
        columns=drift_of(rows.seen, None).compared,
        rows=rows.name,
        promises=rows.promises,
        n_unlabelled=rows.n_unlabelled,
        days=days,
        groups=groups,
        checked=rows.checked,
    )
    single = single_rows(content, rows, options.rows)
    of_columns: list[Section] = []
    if content.facts.importances or single.reasons:
        importances, reasons = content.facts.importances, single.reasons or {}
        of_columns.append(features_section(importances, reasons, single.n_explained))
    if scored.classes is not None:
        of_columns.append(classes_section(content, scored))
    of_columns += single.sections
    if days is not None or groups is not None:
        of_columns.append(subgroups_section(days, groups))
    facts, notes = _data_facts(rows, options, content.prevalence), _data_notes(content.facts, rows)
    data_part = moved_section(facts, judged.columns, notes)
    return _finished(judged, model, data, f"{model.name} on {rows.name}", [*of_columns, data_part])


def report_on_held_out(content: Model, model: Path, costs: Any = None) -> FinishedReport:
    """Report on the scores of held-out rows that a model file keeps.

    Raises `InputError` where the file keeps none, or the model is of levels.
    """
    _ = content.rare_class  # refuses a model of levels
    facts, held = content.facts, held_out_of(content)
    columns = [ColumnDrift(each.name, each.kind) for each in facts.columns]
    judged = JudgedModel.of(content, held, costs=costs, held_out=True, columns=columns)
    sections = [features_section(facts.importances, {}, 0)] if facts.importances else []
    if held.classes is not None:
        sections.append(classes_section(content, held))
    table = replace(columns_block(facts.columns), title="Columns").shortened(_MOST_COLUMNS)
    sections.append(data_section(_training_data_facts(content), table, []))
    by = str(None if facts.training is None else facts.training.estimated_by)
    how = "by cross-fitting" if by == "cross-fitting" else f"on {by}"
    return _finished(judged, model, None, f"{model.name}, judged {how}", sections)


def _finished(
    judged: JudgedModel,
    model: Path,
    data: TablePlace | None,
    subtitle: str,
    of_rows: Sequence[Section],
) -> FinishedReport:
    """Make the page, with the sections on the rows between those on scores and on the model."""
    table, target, chosen = judged.table, judged.model.rare_class, judged.model.facts.rule
    rule = "the choice of the model itself" if chosen is None else chosen.rule_text()
    out = model.with_name(f"{model.stem}-threshold{model.suffix or '.rareclass'}")
    command = command_line("threshold", model, out=out, threshold=None) + " {threshold}"
    sections = [
        *([] if judged.checked is None else [checked_section(judged.checked)]),
        *([promises_section(judged.promises)] if judged.promises.rows else []),
        threshold_section(table, target.in_words, target.rest_in_words, rule, command),
        ranking_section(table, judged.auc, judged.average_precision),
        scores_section(judged.distribution, judged.reliability),
        *([] if table.cost is None else [cost_section(table)]),
        *of_rows,
        card_section(judged),
        settings_section(_settings(judged, model, data)),
    ]
    numbers = _plain_data(judged)
    if judged.checked is not None:
        numbers["checked_rows"] = judged.checked.as_plain_data()
    return FinishedReport(_page(judged, sections, subtitle), numbers)


def _page(judged: JudgedModel, sections: Sequence[Section], subtitle: str) -> ReportPage:
    target, checked = judged.model.rare_class, judged.checked
    table, unit = judged.table, judged.table.alert_unit
    precision, recall = table.precision.at(judged.own), table.recall.at(judged.own)
    alerts = table.amounts.at(judged.own)
    if checked is not None:
        # Every score is known: alerts are counted, and only what is rare is estimated.
        rate = WeightedRate.counted(checked.n_above, checked.n_rows).interval(LEVEL)
        alerts = Interval(*(each * float(table.amounts.value[-1]) for each in rate))
        precision = checked.precision or precision
        recall = checked.recall or recall
    found = ", and so finds none of the rare rows."
    if not math.isnan(precision.value):
        those = "these" if not judged.n_unlabelled else "those with a class"
        found = (
            f". Of {those} {percent_with_bounds(precision)} are rare, and they are "
            f"{percent_with_bounds(recall)} of all rare rows. Ranges are 95\u00a0% intervals."
        )
    figures = (
        KeyFigure("Rare rows found (recall)", percent(recall.value), percent_bounds(recall)),
        KeyFigure(
            "Alerts that are rare (precision)", percent(precision.value), percent_bounds(precision)
        ),
        KeyFigure(unit.capitalize(), amount_text(alerts.value), alerts.amount_bounds()),
        figure_of("Average precision", judged.average_precision),
        figure_of("AUC", judged.auc),
    )
    return ReportPage(
        f"Finding {target.in_words}",
        f"{subtitle}: {judged.rows_in_words}",
        f"At its threshold the model raises {amount_text(alerts.value)} {unit}{found}",
        figures,
        tuple(sections),
    )


def _data_facts(rows: ReadRows, options: ReportOptions, prevalence: float | None) -> list[Fact]:
    n, n_rare = len(rows.y), int(rows.y.sum())
    facts = [Fact("File", rows.name), *rows_facts(n, n_rare)]
    if rows.seen.n_columns:
        facts.append(Fact("Columns that the model looks at", whole(rows.seen.n_columns)))
    if rows.time is not None:
        days = day_of(rows.time)
        span = f"{days.min()} to {days.max()}, {counted(len(np.unique(days)), 'day')}"
        facts.append(Fact(f"Time ({rows.time_column})", span))
    if prevalence is not None:
        facts.append(Fact("Probabilities are for a share of rare rows of", percent(prevalence)))
    if rows.groups is not None:
        facts.append(Fact(f"Groups ({options.groups})", whole(len(np.unique(rows.groups)))))
    if rows.seen.extra_columns:
        left_out = first_names(rows.seen.extra_columns, _MOST_NAMED)
        facts.append(Fact("Columns left out", left_out))
    return facts


def _data_notes(facts: ModelFacts, rows: ReadRows) -> list[str]:
    notes, training = [], facts.training
    if rows.n_unlabelled:
        notes.append(left_out_text(rows.n_unlabelled, "no class"))
    if rows.dated.n_undated:
        notes.append(left_out_text(rows.dated.n_undated, "no time", OF_ALERTS))
    if training is not None and training.n_copies_collapsed and not training.copies_count:
        notes.append(
            "Training counted duplicate rows once, and here each counts: columns with many "
            "duplicates seem to have moved."
        )
    return notes


def _training_data_facts(content: Model) -> list[Fact]:
    training, n_rare = content.facts.training, content.rare_class.n_rare
    found = [] if training is None else [Fact("Rows learned from", training.learned_text())]
    if training is not None:
        if n_rare is not None:
            share = percent(n_rare / training.n_rows)
            found.append(Fact("Rare rows of the table", f"{whole(n_rare)} ({share})"))
        if copies := training.copies_text():
            found.append(Fact("Duplicates", copies))
        if training.n_rows_without_target:
            n_left = whole(training.n_rows_without_target)
            found.append(Fact("Rows without a class, left out", n_left))
    return [*found, Fact("Columns", whole(len(content.facts.columns)))]


def _settings(judged: JudgedModel, model: Path, data: TablePlace | None) -> list[Fact]:
    facts = judged.model.facts
    training, method = facts.training, facts.method
    named: dict[str, object] = {"Model file": model, "Rows": data, "Method": facts.method_name}
    match method:
        case CombinationFacts():
            members = dict.fromkeys(each.member for each in method.leaderboard if each.weight > 0)
            named |= {
                "Objective": method.objective,
                "Effort": method.effort,
                "Plan": method.plan,
                "Time limit, seconds": method.time_budget,
                "Members": ", ".join(members),
            }
        case KernelFacts():
            named |= {"lam": method.lam, "Kernel width": method.width}
            named["Landmarks"] = method.n_landmarks
        case MomentFacts():
            named |= {"Cost C": method.C, "Covariance": method.covariance}
    named["Threshold"] = f"{judged.table.thresholds[judged.own]:.6g}"
    if training is not None:
        named |= {
            "Trained": training.date,
            "Seed": training.seed,
            "Estimated by": training.estimated_by,
            "Share held out": training.holdout or None,
            "Kept together by": training.groups,
            "Held out by time": training.time,
            "Versions": training.versions_text(),
        }
    return [
        Fact(name, f"{value:g}" if isinstance(value, float) else str(value))
        for name, value in named.items()
        if value not in (None, "")
    ]


def _plain_data(judged: JudgedModel) -> dict[str, Any]:
    table, own = judged.table, judged.own
    numbers = {
        "n_rows": table.n_rows,
        "n_rare": table.n_rare,
        "measures": {"AUC": judged.auc, "average precision": judged.average_precision},
        "threshold": table.thresholds[own],
        "at_threshold": {
            "true_rare": table.hits[own],
            "false_rare": table.false_alerts[own],
            "precision": table.precision.at(own),
            "recall": table.recall.at(own),
        },
        "thresholds": {
            "threshold": table.thresholds,
            "true_rare": table.hits,
            "false_rare": table.false_alerts,
        },
        **judged.promises.as_plain_data(),
        "stability_index": {each.name: each.stability_index for each in judged.columns},
        "worse_parts": {
            parts.by: [each.name for each in parts.worse]
            for parts in (judged.days, judged.groups)
            if parts
        },
    }
    return plain_data(numbers)


def promises_section(promises: Promises) -> Section:
    """Section with what was promised and what these rows show, as ``rareclass evaluate`` has it."""
    table = replace(promises.block(), title="Promises, with 95\u00a0% intervals")
    return Section("promises", "Promised and measured", promises.sentence(), (table,))


def checked_section(found: CheckedMeasures) -> Section:
    """Section with the measures of all rows, as the checked rows estimate them."""
    lead = (
        f"{whole(found.n_checked)} of {whole(found.n_rows)} rows have a known class. "
        + " ".join(found.sentences())
    )
    note = (
        "The slider and the curves count each checked row as the number of rows that it stands "
        "for. The recall and the average precision of this table also allow for few checked rows, "
        "and its intervals are about all rows here."
    )
    table = replace(found.block(), title="Estimates for all rows")
    return Section("checked", "Estimates from the checked rows", lead, (table, Note(note)))
