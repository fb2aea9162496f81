"""What a model is and is not for, as far as facts say it."""

from dataclasses import dataclass

from rareclass.errors import counted
from rareclass.metrics.column_drift import MOVED_FAR
from rareclass.model.model_file import ModelFile
from rareclass.report.page.choice_view import rate_words
from rareclass.report.page.wording import percent, whole
from rareclass.report.summaries.column_drift import ColumnDrift
from rareclass.report.summaries.parts import Parts
from rareclass.report.summaries.reliability import Reliability
from rareclass.report.summaries.score_drift import ScoreDrift
from rareclass.report.summaries.threshold_table import ThresholdTable

# Fewer rare rows than this make every interval wide.
_FEW_RARE = 50
_WIDE = 0.2
_MOST_NAMED = 5


@dataclass(frozen=True)
class Evidence:
    """What the lines of a card are derived from."""

    content: ModelFile
    table: ThresholdTable
    reliability: Reliability | None
    columns: list[ColumnDrift]
    score: ScoreDrift | None
    days: Parts | None
    groups: Parts | None
    rows: str | None  # name of the rows judged; None: those held out of the training


def meant(evidence: Evidence) -> list[str]:
    """What the model learned, and what the numbers were counted on."""
    told, table = evidence.content.metadata, evidence.table
    date = f" on {told['date'][:10]}" if told.get("date") else ""
    lines = []
    if told.get("n_rows"):
        rare = f", {whole(told['n_rare'])} of them rare" if told.get("n_rare") is not None else ""
        lines.append(f"Trained{date} on {counted(told['n_rows'], 'row')}{rare}.")
    on = "rows that it did not learn from" if evidence.rows is None else evidence.rows
    lines.append(f"Judged on {whole(table.n_rows)} rows, {whole(table.n_rare)} of them rare: {on}.")
    if evidence.rows is not None:
        lines.append(
            "The numbers hold for rows like these. Whether the model learned from these very rows "
            "cannot be told from its file: if it did, they flatter it."
        )
    elif told.get("trained_on_all_rows") and told.get("estimated_by") == "held-out rows":
        lines.append(
            "The model that was judged learned without these rows; the saved one from all."
        )
    rule = told.get("rule") or {}
    if rule.get("guaranteed"):
        lines.append(f"Its threshold keeps {rule['rule']} at confidence {rule['confidence']:g}.")
    return lines


def not_meant(evidence: Evidence) -> list[str]:
    """What it is not for, by what was found."""
    return [
        *_of_few_rows(evidence),
        *_of_other_rows(evidence),
        *_of_probabilities(evidence),
        *_of_parts(evidence),
    ]


def _of_few_rows(evidence: Evidence) -> list[str]:
    table = evidence.table
    lines = []
    recall = table.recall.at(table.own or 0)
    if table.n_rare < _FEW_RARE:
        lines.append(
            f"Not for fine distinctions: only {whole(table.n_rare)} rare rows were judged, and its "
            f"recall may lie anywhere from {percent(recall.low)} to {percent(recall.high)}."
        )
    elif recall.high - recall.low > _WIDE:
        lines.append(
            f"Not for promises on recall: it may lie anywhere from {percent(recall.low)} to "
            f"{percent(recall.high)}."
        )
    if table.own is not None:
        precision = table.precision.at(table.own)
        if precision.value < 0.5:
            times = (1.0 - precision.value) / max(precision.value, 1e-9)
            lines.append(
                f"Not for acting without a look: of its alerts {percent(1.0 - precision.value)} "
                f"are false, {times:.1f} for each that is right."
            )
        missed = table.n_rare - table.hits[table.own]
        if missed > 0:
            share = percent(missed / table.n_rare)
            lines.append(
                f"Not for clearing rows: {share} of the rare rows raise no alert at its threshold."
            )
    return lines


def _of_other_rows(evidence: Evidence) -> list[str]:
    lines = []
    share = evidence.table.n_rare / evidence.table.n_rows
    lines.append(
        "Not for another share of rare rows without a look: precision and "
        f"{rate_words(evidence.table)} are at {percent(share)} rare."
    )
    moved = [each for each in evidence.columns if (each.stability_index or 0.0) >= MOVED_FAR]
    if moved:
        named = ", ".join(each.name for each in moved[:_MOST_NAMED])
        more = f" and {len(moved) - _MOST_NAMED} more" if len(moved) > _MOST_NAMED else ""
        lines.append(
            f"Not as it was trained: {named}{more} moved far since training; fit again with rows "
            "like these."
        )
    if evidence.score is not None and evidence.score.differs:
        now, before = evidence.score.at_threshold.now, evidence.score.at_threshold.before
        lines.append(
            f"Not by the number of alerts expected at training: here {percent(now.value)} of the "
            f"rows raise one, of those held out it was {percent(before.value)}."
        )
    if evidence.days is None and evidence.content.metadata.get("time") is None:
        lines.append(
            "Not known of later times: neither training nor these numbers went by time (--time)."
        )
    return lines


def _of_probabilities(evidence: Evidence) -> list[str]:
    told = evidence.reliability
    if told is None:
        return ["Not for probabilities: its scores order rows, and say no more."]
    if told.n_off:
        return [
            f"Not for probabilities taken at their word: in {told.n_off} of {len(told.found)} bins "
            "the share of rare rows is not what was foretold."
        ]
    return []


def _of_parts(evidence: Evidence) -> list[str]:
    lines = []
    for parts in (evidence.days, evidence.groups):
        if parts is None or not parts.worse:
            continue
        named = ", ".join(each.name for each in parts.worse[:_MOST_NAMED])
        more = len(parts.worse) - _MOST_NAMED
        lines.append(
            f"Not equally for every {parts.by}: it finds fewer of the rare rows of {named}"
            + (f" and {more} more." if more > 0 else ".")
        )
    return lines
