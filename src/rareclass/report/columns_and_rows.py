"""The sections on columns and on single rows: what the ranking rests on, and where it fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import selectors

from rareclass.errors import InputError, first_names, setting
from rareclass.metrics.column_drift import MOVED, MOVED_FAR
from rareclass.model.drift import ColumnDrift, drift_block, worst_first
from rareclass.model.explained import explainer_of
from rareclass.model.model import Model
from rareclass.report.drawing import BLUE, Axes, Display, Floats
from rareclass.report.page import (
    NONE,
    Fact,
    FactList,
    Note,
    PageBlock,
    Plots,
    Section,
    Text,
    percent,
    whole,
)
from rareclass.report.reading import MOST_TOP, ReadRows, WholeRows
from rareclass.table_block import TableBlock

_N_MISSED = 10
_N_REASONS = 3
_N_DIFFERING = 3
_N_CASES = 10
# Columns whose cells are shown of a row.
_MOST_CELLS = 8
_MOST_LISTED = 40
_MOST_DRAWN = 15


def data_section(
    facts: Sequence[Fact], columns: TableBlock, notes: Sequence[str], lead: str = ""
) -> Section:
    """Section with facts of the rows, and the columns."""
    blocks: list[PageBlock] = [FactList(tuple(facts)), *map(Note, notes)]
    if columns.rows:
        blocks.append(columns)
    lead = lead or "What was read, and how it was understood."
    return Section("data", "The data", lead, tuple(blocks))


def moved_section(
    facts: Sequence[Fact], columns: Sequence[ColumnDrift], notes: Sequence[str]
) -> Section:
    """Section with facts of the rows, and how far each column has moved since training."""
    known, lead = [each for each in columns if each.verdict], ""
    table = drift_block(worst_first(columns)).shortened(_MOST_LISTED)
    if known:
        n_moved = sum(each.verdict != "steady" for each in known)
        lead = (
            f"{n_moved or 'None'} of {len(known)} columns "
            f"{'have' if n_moved > 1 else 'has'} moved since training, by the stability index."
        )
        note = (
            f"{table.note} PSI, the population stability index: sum of (q - p) log(q / p) over "
            "tenths of the training values, cells unlike these, and empty ones, p of training and "
            f"q of these rows; below {MOVED:g}, or within what chance explains, is read as steady, "
            f"from {MOVED_FAR:g} on as moved far."
        )
        table = replace(table, note=note.strip())
    title = "Columns, those that moved most first"
    return data_section(facts, replace(table, title=title), notes, lead)


class Tally(NamedTuple):
    """Number of rows that name a column or a case first, and the mean of a number in them."""

    n_rows: int
    mean: float


def tallied(
    tallies: Mapping[str, Tally], digits: str, sign: int = -1
) -> tuple[tuple[str, ...], ...]:
    """Cells of the names of most rows, then of the greatest mean; of the least with `sign` 1."""
    ranked = sorted(tallies.items(), key=lambda each: (-each[1].n_rows, sign * each[1].mean))
    return tuple((name, f"{count:,}", f"{mean:{digits}}") for name, (count, mean) in ranked)


def features_section(
    importances: Mapping[str, float], reasons: Mapping[str, Tally], n_explained: int
) -> Section:
    """Section on importances by column, and on the first reasons of the highest rows.

    `reasons` has, for each column, the number of the `n_explained` highest rows whose first reason
    it is, and by how much it raises their scores on average.
    """
    blocks: list[PageBlock] = []
    lead = "Which columns the ranking rests on."
    if importances:
        blocks.append(Plots((ImportanceDisplay(importances).on_page(),)))
        first = sorted(importances, key=lambda name: -importances[name])[:3]
        lead = f"The ranking rests most on {first_names(first, 3)}."
    if reasons:
        table = TableBlock(
            f"Why the {n_explained:,} highest rows score as high as they do",
            ("Column", "First reason of", "Raises their scores by, on average"),
            tallied(reasons, "+.3g"),
            "How much less a row would score with a typical cell in that column.",
        )
        blocks.append(table.shortened(_MOST_DRAWN))
    return Section("features", "Columns that matter", lead, tuple(blocks))


class ImportanceDisplay(Display):
    """A bar for each column, the longest first.

    `importances` are how much of the ranking is lost when a column is mixed up.
    """

    key, title = "importance", "Importance of columns"

    def __init__(self, importances: Mapping[str, float]) -> None:
        self.ranked = sorted(importances.items(), key=lambda each: -each[1])
        self.size = (4.7, max(1.6, 0.55 + 0.24 * len(self.ranked[:_MOST_DRAWN])))

    def _words(self) -> str:
        more = len(self.ranked) - _MOST_DRAWN
        said = "How much of the ranking is lost when a column is mixed up, relative to the others."
        return f"{said} {more} more columns matter less." if more > 0 else said

    def rows(self) -> TableBlock:
        """Return the columns of most importance."""
        rows = tuple((name, f"{value:.3g}") for name, value in self.ranked[:_MOST_LISTED])
        return TableBlock(self.title, ("Column", "Importance"), rows)

    def _draw(self, ax: Axes, **style: Any) -> None:
        shown = self.ranked[:_MOST_DRAWN][::-1]
        short = {name: _both_ends(name) for name, _ in shown}
        names = list(short.values() if len({*short.values()}) == len(short) else short)
        ax.barh(range(len(shown)), [value for _, value in shown], color=BLUE, height=0.65)
        ax.set_yticks(range(len(names)), names, parse_math=False)
        ax.grid(axis="y", visible=False)
        ax.locator_params(axis="x", nbins=6)
        ax.set_xlabel("importance")


def _both_ends(name: str) -> str:
    """Both ends of a long name: the middle tells the least.

    >>> _both_ends("CUSTOMER_ID_NB_TX_30DAY_WINDOW")
    'CUSTOMER_ID_…30DAY_WINDOW'
    """
    return name if len(name) <= 25 else f"{name[:12]}…{name[-12:]}"


@dataclass(frozen=True)
class SingleRows:
    """Sections on single rows, and how often each column is the first reason of a high score."""

    sections: tuple[Section, ...] = ()
    reasons: Mapping[str, Tally] | None = None
    n_explained: int = 0


def single_rows(content: Model, rows: ReadRows, n_shown: int) -> SingleRows:
    """List the worst misses by row number; cells and the highest rows where `n_shown` is set."""
    if rows.whole is None:
        return SingleRows()
    try:  # reasons of the highest rows, where the model has any to give
        explain = explainer_of(content, _N_REASONS)
    except InputError:
        explained = None
    else:
        explained = explain(rows.whole.cells[_top_places(rows, rows.whole)])
    names: list[str] = []
    if n_shown:  # the most important columns, in the order of the table
        known, importances = rows.whole.cells.columns, content.facts.importances
        ranked = sorted(known, key=lambda name: -importances.get(name, 0.0))
        names = [name for name in known if name in ranked[:_MOST_CELLS]]
    n_explained = 0 if explained is None else explained.height
    sections = []
    cases = _tally(explained, "case_1", "distance_1")
    if cases:
        sections.append(_cases_section(cases, n_explained, content.rare_class.n_rare))
    if n_shown:
        sections.append(_top_section(content, rows, rows.whole, explained, names, n_shown))
    sections.append(_failures_section(rows, rows.whole, content.threshold, names))
    return SingleRows(tuple(sections), _tally(explained, "reason_1", "effect_1"), n_explained)


def _top_places(rows: ReadRows, kept: WholeRows) -> NDArray[np.intp]:
    top = np.argsort(-rows.scored.scores, kind="stable")[: min(MOST_TOP, len(rows.scored.scores))]
    return np.searchsorted(kept.places, top)


def _tally(explained: pl.DataFrame | None, key: str, value: str) -> dict[Any, Tally]:
    """For each key: the number of rows with it, and the mean of their values."""
    if explained is None or key not in explained.columns:
        return {}
    found = explained.drop_nulls(key).group_by(key, maintain_order=True).agg(pl.col(value))
    return {name: Tally(len(each), sum(each) / len(each)) for name, each in found.rows()}


def _named(rows: ReadRows, place: int) -> str:
    """Return the number of a row in the file, and its id where the user asked for one."""
    number = f"{rows.rows[place] + 1:,}"
    return number if rows.ids is None else f"{number} ({rows.ids[place]})"


def _case(case: int | str | None) -> str:
    """Return the number of a rare row in the training file, or its name."""
    return f"{case:,}" if isinstance(case, int) else _cell(case)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def comparable(cells: pl.DataFrame) -> dict[str, Floats]:
    """Columns in which two rows are at most 1 apart, or farther where they have nothing in common.

    Numbers and times, which come first, as ranks up to 1; words as whole numbers; empty cells -1.
    """
    numbers = selectors.numeric() | selectors.temporal()
    ranks = cells.select(numbers.to_physical().cast(pl.Float64).fill_nan(None).rank())
    words = (~numbers).cast(pl.String).rank("dense")
    found = {each.name: each.to_numpy() / max(each.count(), 1) for each in ranks}
    found |= {each.name: each.to_numpy() for each in cells.select(words.cast(pl.Float64))}
    return {name: np.nan_to_num(each, nan=-1.0) for name, each in found.items()}


class NearestRow(NamedTuple):
    """The row most like another, and the columns in which the two differ most."""

    row: int | None
    differs: tuple[str, ...]


def nearest(columns: Mapping[str, Floats], a: int, among: NDArray[np.intp]) -> NearestRow:
    """Find the row most like row a among others, of `comparable` columns.

    The distance is the mean over columns of their difference from 0 to 1 (Gower's coefficient,
    1971, with ranks for numbers).
    """
    others = among[among != a]
    if not len(others) or not columns:
        return NearestRow(None, ())
    apart = {name: np.minimum(np.abs(each - each[a]), 1.0) for name, each in columns.items()}
    mean = np.mean([column[others] for column in apart.values()], axis=0)
    found = int(others[int(np.argmin(mean))])
    ranked = sorted(apart, key=lambda name: -apart[name][found])
    differs = tuple(name for name in ranked[:_N_DIFFERING] if apart[name][found] > 0)
    return NearestRow(found, differs)


def _failures_section(
    rows: ReadRows, kept: WholeRows, threshold: float, names: list[str]
) -> Section:
    """Section on the rare rows of the lowest scores, each with the nearest one found."""
    title, n_missed = "Where it fails", int((rows.y & (rows.scored.scores <= threshold)).sum())
    rare = np.flatnonzero(rows.y[kept.places])
    frame, places = kept.cells[rare], kept.places[rare]
    scores = rows.scored.scores[places]
    missed = np.flatnonzero(scores <= threshold)
    if not len(missed):
        return Section("failures", title, "No rare row scores too low to raise an alert.", ())
    missed = missed[np.argsort(scores[missed], kind="stable")][:_N_MISSED]
    found = np.flatnonzero(scores > threshold)
    columns = comparable(frame)
    rest = np.sort(rows.scored.scores[~rows.y])
    lines = []
    for at in map(int, missed):
        like = nearest(columns, at, found)
        behind = 1.0 - np.searchsorted(rest, scores[at], side="right") / len(rest)
        lines.append(
            (
                _named(rows, int(places[at])),
                f"{scores[at]:.4g}",
                percent(float(behind)),
                NONE if like.row is None else _named(rows, int(places[like.row])),
                ", ".join(like.differs) or NONE,
                *(_cell(frame[name][at]) for name in names),
            )
        )
    lead = (
        f"{whole(n_missed)} of {whole(int(rows.y.sum()))} rare rows score too low to raise an "
        "alert."
    )
    head = (
        "Row", "Score", "Majority rows above", "Nearest rare row found",
        "Differs most from it in", *names,
    )  # fmt: skip
    blocks: tuple[PageBlock, ...] = (
        TableBlock("The worst misses", head, tuple(lines)),
        Text(
            "Rows are counted from 1, as they stand in the file. Numbers are compared by their "
            "ranks among the rare rows, other cells by being the same or not."
        ),
    )
    return Section("failures", title, lead, blocks)


def _cases_section(cases: Mapping[Any, Tally], n_alerts: int, n_rare: int | None) -> Section:
    """Section on the rare rows of training that the highest rows are most like."""
    rows = tallied({_case(case): tally for case, tally in cases.items()}, ".3g", 1)
    of_all = "" if n_rare is None else f" of the {n_rare:,} rare rows of training"
    table = TableBlock(
        f"Rare rows of training that the {n_alerts:,} highest rows are most like",
        ("Row in the training file", "Nearest to", "Mean distance"),
        rows,
    ).shortened(_N_CASES)
    lead = f"The {n_alerts:,} highest rows are each most like one of {len(cases):,}{of_all}."
    return Section("cases", "Cases behind the highest rows", lead, (table,))


def _top_section(
    content: Model,
    rows: ReadRows,
    kept: WholeRows,
    explained: pl.DataFrame | None,
    names: Sequence[str],
    n_shown: int,
) -> Section:
    places = _top_places(rows, kept)[:n_shown]
    top = kept.places[places]
    head = {
        "Row": [_named(rows, int(place)) for place in top],
        "Score": [f"{score:.4g}" for score in rows.scored.scores[top]],
    }
    if content.calibration is not None:
        head["Probability"] = list(map(percent, content.calibration(rows.scored.scores[top])))
    head["Rare"] = ["yes" if is_rare else "no" for is_rare in rows.y[top]]
    raised = [NONE] * len(top)
    if explained is not None:
        named = [f"reason_{k + 1}" for k in range(_N_REASONS)]
        joined = pl.concat_str(named, separator=", ", ignore_nulls=True).replace("", NONE)
        raised = explained.head(len(top)).select(joined).to_series().to_list()
    head["Raised most by"] = raised
    if explained is not None and "case_1" in explained.columns:
        cases = explained["case_1"][: len(top)]
        head["Most like the rare case"] = [_case(case) for case in cases]
    cells = [[_cell(kept.cells[name][int(place)]) for place in places] for name in names]
    lines = tuple(zip(*head.values(), *cells, strict=True))
    n_rare = int(rows.y[top].sum())
    return Section(
        "top",
        "The highest rows",
        f"{n_rare} of the {len(top)} highest rows {'is' if n_rare == 1 else 'are'} rare. "
        f"The page shows their cells ({setting('rows')}): mind who gets it.",
        (TableBlock(f"The {len(top)} highest rows", (*head, *names), lines),),
    )
