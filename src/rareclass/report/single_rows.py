"""The sections on single rows: the highest ones, the worst misses, and cases of training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import rankdata

from rareclass.errors import InputError
from rareclass.model.explained import explainer_of
from rareclass.model.model import Model
from rareclass.report.document import Block, PageTable, Section, Text
from rareclass.report.formatting import NONE, percent, whole
from rareclass.report.reading import MOST_TOP, ReadRows, WholeRows
from rareclass.report.training_facts import ReportFacts

Floats = NDArray[np.float64]
_N_MISSED = 10
_N_REASONS = 3
_N_DIFFERING = 3
_N_CASES = 10
# Columns whose cells are shown of a row.
_MOST_CELLS = 8


class Tally(NamedTuple):
    """Number of rows that name a column or a case first, and the mean of a number in them."""

    n_rows: int
    mean: float


@dataclass(frozen=True)
class SingleRows:
    """Sections on single rows, and how often each column is the first reason of a high score."""

    sections: tuple[Section, ...] = ()
    reasons: Mapping[str, Tally] | None = None
    n_explained: int = 0


def single_rows(content: Model, facts: ReportFacts, rows: ReadRows, n_shown: int) -> SingleRows:
    """List the worst misses by row number; cells and the highest rows where `n_shown` is set."""
    if rows.whole is None:
        return SingleRows()
    threshold = content.threshold
    explained = _explained(content, rows, rows.whole)
    names = _shown_columns(facts, rows.whole.cells) if n_shown else []
    n_missed = int((rows.y & (rows.scores <= threshold)).sum())
    n_explained = 0 if explained is None else explained.height
    sections = []
    cases = _tally(explained, "case_1", "distance_1")
    if cases:
        sections.append(_cases_section(cases, n_explained, facts.n_rare))
    if n_shown:
        top = _top_rows(content, rows, rows.whole, explained, names, n_shown)
        sections.append(_top_section(top, names))
    missed = _missed_rows(rows, rows.whole, threshold, names)
    sections.append(_failures_section(missed, n_missed, int(rows.y.sum()), names))
    return SingleRows(tuple(sections), _tally(explained, "reason_1", "effect_1"), n_explained)


def _explained(content: Model, rows: ReadRows, kept: WholeRows) -> pl.DataFrame | None:
    """Reasons of the highest rows; None where the model has none to give."""
    try:
        explain = explainer_of(content, _N_REASONS)
    except InputError:
        return None
    return explain(kept.cells[_top_places(rows, kept)])


def _top_places(rows: ReadRows, kept: WholeRows) -> NDArray[np.intp]:
    """Places of the highest rows among those kept, the highest first."""
    top = np.argsort(-rows.scores, kind="stable")[: min(MOST_TOP, len(rows.scores))]
    return np.searchsorted(kept.places, top)


def _tally(explained: pl.DataFrame | None, key: str, value: str) -> dict[Any, Tally]:
    """For each key: the number of rows with it, and the mean of their values."""
    if explained is None or key not in explained.columns:
        return {}
    values: dict[Any, list[float]] = {}
    for name, each in zip(explained[key], explained[value], strict=True):
        if name is not None:
            values.setdefault(name, []).append(each)
    return {name: Tally(len(each), sum(each) / len(each)) for name, each in values.items()}


def _shown_columns(facts: ReportFacts, kept: pl.DataFrame) -> list[str]:
    """The most important columns, in the order of the table."""
    ranked = sorted(kept.columns, key=lambda name: -facts.importances.get(name, 0.0))
    return [name for name in kept.columns if name in ranked[:_MOST_CELLS]]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


class MissedRow(NamedTuple):
    """A rare row that scores low."""

    row: int  # in the file, from 1
    score: float
    behind: float  # share of the majority that scores higher
    nearest: int | None  # the nearest rare row that was found
    differs: tuple[str, ...]  # columns in which the two differ most
    cells: tuple[str, ...]


def _missed_rows(
    rows: ReadRows, kept: WholeRows, threshold: float, names: Sequence[str]
) -> list[MissedRow]:
    """The rare rows of the lowest scores, each with the nearest rare row that was found."""
    rare = np.flatnonzero(rows.y[kept.places])
    frame, places = kept.cells[rare], kept.places[rare]
    scores = rows.scores[places]
    missed = np.flatnonzero(scores <= threshold)
    missed = missed[np.argsort(scores[missed], kind="stable")][:_N_MISSED]
    found = np.flatnonzero(scores > threshold)
    numbers, words = _as_arrays(frame)
    rest = np.sort(rows.scores[~rows.y])
    return [
        MissedRow(
            int(rows.rows[places[at]]) + 1,
            float(scores[at]),
            float(1.0 - np.searchsorted(rest, scores[at], side="right") / len(rest)),
            None if like.row is None else int(rows.rows[places[like.row]]) + 1,
            like.differs,
            tuple(_cell(frame[name][int(at)]) for name in names),
        )
        for at, like in ((at, nearest(numbers, words, int(at), found)) for at in missed)
    ]


def _as_arrays(frame: pl.DataFrame) -> tuple[dict[str, Floats], dict[str, NDArray[np.int64]]]:
    """Columns of numbers and times as float64, and columns of words as codes, -1 for empty."""
    numbers: dict[str, Floats] = {}
    words: dict[str, NDArray[np.int64]] = {}
    for column in frame:
        if column.dtype.is_numeric() or column.dtype.is_temporal():
            cells = column.cast(pl.Int64) if column.dtype.is_temporal() else column
            numbers[column.name] = cells.cast(pl.Float64).fill_null(np.nan).to_numpy()
        else:
            codes = column.cast(pl.String).rank("dense").cast(pl.Int64).fill_null(-1)
            words[column.name] = codes.to_numpy()
    return numbers, words


class NearestRow(NamedTuple):
    """The row most like another, and the columns in which the two differ most."""

    row: int | None
    differs: tuple[str, ...]


def nearest(
    numbers: Mapping[str, Floats],
    words: Mapping[str, NDArray[np.int64]],
    a: int,
    among: NDArray[np.intp],
) -> NearestRow:
    """Find the row most like row a among others.

    The distance is the mean over columns of their difference from 0 to 1 (Gower's coefficient,
    1971, with ranks for numbers).
    """
    others = among[among != a]
    if not len(others) or not (numbers or words):
        return NearestRow(None, ())
    apart = _differences(numbers, words, a)
    mean = np.mean([column[others] for column in apart.values()], axis=0)
    found = int(others[int(np.argmin(mean))])
    ranked = sorted(apart, key=lambda name: -apart[name][found])
    differs = tuple(name for name in ranked[:_N_DIFFERING] if apart[name][found] > 0)
    return NearestRow(found, differs)


def _differences(
    numbers: Mapping[str, Floats], words: Mapping[str, NDArray[np.int64]], a: int
) -> dict[str, Floats]:
    """Difference of row a from every row, by column, from 0 to 1.

    Numbers differ by the difference of their ranks, as shares of the rows; words by 0 or 1. An
    empty number differs by 1 from others and by 0 from an empty one.
    """
    found: dict[str, Floats] = {}
    for name, column in numbers.items():
        missing = np.isnan(column)
        ranks = np.zeros(len(column))
        if not missing.all():
            ranks[~missing] = rankdata(column[~missing]) / max((~missing).sum(), 1)
        apart = np.abs(ranks - ranks[a])
        found[name] = np.where(missing | missing[a], (missing != missing[a]).astype(float), apart)
    for name, codes in words.items():
        found[name] = (codes != codes[a]).astype(float)
    return found


def _failures_section(
    missed: Sequence[MissedRow], n_missed: int, n_rare: int, names: Sequence[str]
) -> Section:
    """Section on the worst misses; `names` are the columns whose cells are shown."""
    title = "Where it fails"
    if not missed:
        return Section("failures", title, "No rare row scores too low to raise an alert.", ())
    lead = f"{whole(n_missed)} of {whole(n_rare)} rare rows score too low to raise an alert."
    rows = tuple(
        (
            f"{each.row:,}",
            f"{each.score:.4g}",
            percent(each.behind),
            NONE if each.nearest is None else f"{each.nearest:,}",
            ", ".join(each.differs) or NONE,
            *each.cells,
        )
        for each in missed
    )
    head = (
        "Row", "Score", "Of the rest score higher", "Nearest rare row found",
        "Differs most from it in", *names,
    )  # fmt: skip
    blocks: tuple[Block, ...] = (
        PageTable("The worst misses", head, rows, (0, 1, 2, 3)),
        Text(
            "Rows are counted from 1, as they stand in the file. Numbers are compared by their "
            "ranks among the rare rows, other cells by being the same or not."
        ),
    )
    return Section("failures", title, lead, blocks)


def _cases_section(cases: Mapping[int, Tally], n_alerts: int, n_rare: int | None) -> Section:
    """Section on the rare rows of training that the highest rows are most like.

    `cases` has for each, by its row in the training file, the number of highest rows nearest to it
    and their mean distance.
    """
    ranked = sorted(cases.items(), key=lambda each: (-each[1].n_rows, each[1].mean))
    rows = tuple(
        (f"{case:,}", f"{count:,}", f"{distance:.3g}")
        for case, (count, distance) in ranked[:_N_CASES]
    )
    of_all = "" if n_rare is None else f" of the {n_rare:,} rare rows of training"
    more = len(ranked) - len(rows)
    table = PageTable(
        f"Rare rows of training that the {n_alerts:,} highest rows are most like",
        ("Row in the training file", "Nearest to", "Mean distance"),
        rows,
        (0, 1, 2),
        f"{more:,} more are not listed." if more > 0 else "",
    )
    lead = f"The {n_alerts:,} highest rows are each most like one of {len(cases):,}{of_all}."
    return Section("cases", "Cases behind the highest rows", lead, (table,))


class TopRow(NamedTuple):
    """A row that scores high."""

    row: int
    score: float
    probability: float | None
    is_rare: bool
    reasons: tuple[str, ...]
    case: str | None  # the rare case of training nearest to it; None where the model has no cases
    cells: tuple[str, ...]


def _top_rows(
    content: Model,
    rows: ReadRows,
    kept: WholeRows,
    explained: pl.DataFrame | None,
    names: Sequence[str],
    n_shown: int,
) -> list[TopRow]:
    places = _top_places(rows, kept)[:n_shown]
    scores = rows.scores[kept.places[places]]
    calibration = content.calibration
    probabilities = [None] * len(places) if calibration is None else calibration(scores).tolist()
    found = []
    for at, place in enumerate(places):
        row, reasons, case = int(kept.places[place]), (), None
        if explained is not None:
            columns = (explained[f"reason_{k + 1}"][at] for k in range(_N_REASONS))
            reasons = tuple(name for name in columns if name is not None)
            if "case_1" in explained.columns:
                case = "" if explained["case_1"][at] is None else f"{explained['case_1'][at]:,}"
        cells = tuple(_cell(kept.cells[name][int(place)]) for name in names)
        number, score, is_rare = int(rows.rows[row]) + 1, float(scores[at]), bool(rows.y[row])
        found.append(TopRow(number, score, probabilities[at], is_rare, reasons, case, cells))
    return found


def _top_section(top: Sequence[TopRow], names: Sequence[str]) -> Section:
    """Section on the highest rows, with the cells of some columns."""
    with_probability = bool(top) and top[0].probability is not None
    with_cases = bool(top) and top[0].case is not None
    rows = []
    for each in top:
        cells = [f"{each.row:,}", f"{each.score:.4g}"]
        cells += [] if each.probability is None else [percent(each.probability)]
        cells += ["yes" if each.is_rare else "no", ", ".join(each.reasons) or NONE]
        cells += [] if each.case is None else [each.case]
        rows.append((*cells, *each.cells))
    head = ["Row", "Score", *(["Probability"] if with_probability else [])]
    head += ["Rare", "Raised most by", *(["Most like the rare case"] if with_cases else [])]
    n_rare = sum(each.is_rare for each in top)
    return Section(
        "top",
        "The highest rows",
        f"{n_rare} of the {len(top)} highest rows {'is' if n_rare == 1 else 'are'} rare. "
        "Their cells are here because they were asked for: mind who gets this page.",
        (PageTable(f"The {len(top)} highest rows", (*head, *names), tuple(rows), (0, 1)),),
    )
