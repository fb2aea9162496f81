"""Single rows of a report: the highest, and the worst misses with what they are like."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import InputError
from rareclass.model.explained import explainer_of
from rareclass.model.model_file import ModelFile
from rareclass.report.page.document import Section
from rareclass.report.reading import ReadRows
from rareclass.report.sections.failures import (
    MissedRow,
    TopRow,
    cases_section,
    failures_section,
    top_section,
)
from rareclass.report.summaries.near_rows import nearest
from rareclass.report.summaries.threshold_table import ThresholdTable

_N_MISSED = 10
_N_REASONS = 3
# Columns whose cells are shown of a row.
_MOST_CELLS = 8


@dataclass(frozen=True)
class Singled:
    """Sections on single rows, and the reasons of the highest ones added up."""

    sections: tuple[Section, ...]
    reasons: dict[str, tuple[int, float]]
    n_explained: int


def single_out(content: ModelFile, rows: ReadRows, table: ThresholdTable, n_shown: int) -> Singled:
    """The worst misses always, by their row numbers; cells and the highest rows where asked for."""
    threshold = float(content.model.offset_)
    if rows.kept is None or rows.kept_rows is None:
        return Singled((), {}, 0)
    told = _reasons(content, rows)
    names = _shown_columns(content, rows.kept) if n_shown else []
    missed = _missed(rows, threshold, names)
    n_missed = int((rows.y & (rows.scores <= threshold)).sum())
    sections = []
    cases = _cases_of(told)
    if cases:
        assert told is not None
        sections.append(cases_section(cases, told.height, content.metadata.get("n_rare")))
    if n_shown:
        sections.append(_top(content, rows, told, names, n_shown))
    sections.append(failures_section(missed, n_missed, int(rows.y.sum()), names))
    return Singled(tuple(sections), _added_up(told), 0 if told is None else told.height)


def _reasons(content: ModelFile, rows: ReadRows) -> pl.DataFrame | None:
    """The reasons of the highest rows; None where the model has none to give."""
    try:
        explain = explainer_of(content, _N_REASONS)
    except InputError:
        return None
    assert rows.kept is not None
    return explain(rows.kept[_top_places(rows)])


def _top_places(rows: ReadRows) -> NDArray[np.intp]:
    """The highest rows among those kept, the highest first."""
    assert rows.kept_rows is not None
    n_top = min(100, len(rows.scores))
    top = np.argsort(-rows.scores, kind="stable")[:n_top]
    return np.searchsorted(rows.kept_rows, top)


def _added_up(told: pl.DataFrame | None) -> dict[str, tuple[int, float]]:
    """Of how many rows each column is the first reason, and its mean effect in these."""
    if told is None:
        return {}
    counts: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    for name, effect in zip(told["reason_1"], told["effect_1"], strict=True):
        if name is not None:
            counts[name] += 1
            sums[name] += effect
    return {name: (count, sums[name] / count) for name, count in counts.items()}


def _cases_of(told: pl.DataFrame | None) -> dict[int, tuple[int, float]]:
    """Of how many rows each rare case of training is the nearest, and its mean distance."""
    if told is None or "case_1" not in told.columns:
        return {}
    counts: Counter[int] = Counter()
    sums: Counter[int] = Counter()
    for case, distance in zip(told["case_1"], told["distance_1"], strict=True):
        if case is not None:
            counts[case] += 1
            sums[case] += distance
    return {case: (count, sums[case] / count) for case, count in counts.items()}


def _shown_columns(content: ModelFile, kept: pl.DataFrame) -> list[str]:
    """The columns that matter most, in the order of the table."""
    importances = content.metadata.get("importances") or {}
    ranked = sorted(kept.columns, key=lambda name: -importances.get(name, 0.0))[:_MOST_CELLS]
    return [name for name in kept.columns if name in ranked]


def _missed(rows: ReadRows, threshold: float, names: list[str]) -> list[MissedRow]:
    """The rare rows of the lowest scores, each with the nearest rare row that was found."""
    assert rows.kept is not None
    assert rows.kept_rows is not None
    scores = rows.scores[rows.kept_rows]
    rare = np.flatnonzero(rows.y[rows.kept_rows])
    frame, scores = rows.kept[rare], scores[rare]
    places = rows.kept_rows[rare]
    missed = np.flatnonzero(scores <= threshold)
    missed = missed[np.argsort(scores[missed], kind="stable")][:_N_MISSED]
    found = np.flatnonzero(scores > threshold)
    numbers, words = _as_arrays(frame)
    rest = np.sort(rows.scores[~rows.y])
    listed = []
    for at in missed:
        like, differs = nearest(numbers, words, int(at), found)
        behind = 1.0 - np.searchsorted(rest, scores[at], side="right") / len(rest)
        listed.append(
            MissedRow(
                int(rows.rows[places[at]]) + 1,
                float(scores[at]),
                float(behind),
                None if like is None else int(rows.rows[places[like]]) + 1,
                differs,
                tuple(_cell(frame[name][int(at)]) for name in names),
            )
        )
    return listed


def _as_arrays(
    frame: pl.DataFrame,
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.int64]]]:
    numbers: dict[str, NDArray[np.float64]] = {}
    words: dict[str, NDArray[np.int64]] = {}
    for column in frame:
        if column.dtype.is_numeric():
            numbers[column.name] = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
        elif column.dtype.is_temporal():
            moments = column.cast(pl.Int64).cast(pl.Float64).fill_null(np.nan)
            numbers[column.name] = moments.to_numpy()
        else:
            text = column.cast(pl.String)
            codes = text.rank("dense").cast(pl.Int64).fill_null(-1)
            words[column.name] = codes.to_numpy()
    return numbers, words


def _top(
    content: ModelFile, rows: ReadRows, told: pl.DataFrame | None, names: list[str], n_shown: int
) -> Section:
    assert rows.kept is not None
    assert rows.kept_rows is not None
    calibration = content.calibration
    listed = []
    for at, place in enumerate(_top_places(rows)[:n_shown]):
        row = int(rows.kept_rows[place])
        score = rows.scores[row]
        reasons: tuple[str, ...] = ()
        if told is not None:
            columns = [told[f"reason_{k + 1}"][at] for k in range(_N_REASONS)]
            reasons = tuple(name for name in columns if name is not None)
        probability = None if calibration is None else float(calibration(np.array([score]))[0])
        listed.append(
            TopRow(
                int(rows.rows[row]) + 1,
                float(score),
                probability,
                bool(rows.y[row]),
                reasons,
                _case(told, at),
                tuple(_cell(rows.kept[name][int(place)]) for name in names),
            )
        )
    with_cases = told is not None and "case_1" in told.columns
    return top_section(listed, names, with_cases)


def _case(told: pl.DataFrame | None, at: int) -> str:
    if told is None or "case_1" not in told.columns or told["case_1"][at] is None:
        return ""
    return f"{told['case_1'][at]:,}"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
