"""The report of two or more models on the same rows, or of files of scores, side by side."""

from collections.abc import Mapping, Sequence
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.compare import Comparison, compare_scores
from rareclass.compare.score_files import ReadScores, ScoreFiles, read_score_files
from rareclass.errors import ErrorKind
from rareclass.opening import open_model
from rareclass.report import ReportOptions
from rareclass.report.curves import GainsDisplay, PrecisionRecallDisplay, RocDisplay, TableDisplay
from rareclass.report.drawing import CYCLE, Axes, Display
from rareclass.report.page import (
    Fact,
    FactList,
    FinishedReport,
    Note,
    PageBlock,
    Plots,
    ReportPage,
    Section,
    figure_of,
    percent,
    percent_with_bounds,
    rows_facts,
    settings_section,
    whole,
)
from rareclass.report.reading import read_rows
from rareclass.report.threshold_table import ThresholdTable
from rareclass.table_block import TableBlock
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.table_file import TablePlace

_MEASURES = ("average_precision", "roc_auc", "precision_at_k")
_TOPS = (10, 100, 1000)
_BUDGETS = (10, 30, 100, 300, 1000, 3000, 10_000)
_RECALLS = (0.25, 0.5, 0.75, 0.9, 1.0)
_RATES = (0.001, 0.01, 0.1)
_BANDS = "Bands are 95 % intervals of each threshold by itself; they are not of differences."


def report_on_models(
    models: Sequence[Path], data: TablePlace, options: ReportOptions, text: TextSettings = DETECTED
) -> FinishedReport:
    """Compare models on the same rows of a file.

    Raises `InputError` as `read_rows`, and where the models have different targets.
    """
    contents = [open_model(path) for path in models]
    classes = [each.rare_class for each in contents]
    targets = {each.in_words for each in classes}
    if len(targets) > 1:
        raise ErrorKind.COMBINATION.error(
            f"The models are of different classes: {' and '.join(sorted(targets))}.",
            "Compare models of one class.",
        )
    read = [read_rows(content, data, options, text) for content in contents]
    names = _names(models)
    columns = dict(zip(names, [each.scored.scores for each in read], strict=True))
    scores = ReadScores(columns, {}, classes[0].rare_label, read[0].y, read[0].groups)
    own = [content.threshold for content in contents]
    paths = [Fact(name, str(path)) for name, path in zip(names, models, strict=True)]
    facts = [Fact("Rows", str(data)), *paths]
    return _finished(scores, targets.pop(), data.name, facts, dict(zip(names, own, strict=True)))


def report_on_scores(files: ScoreFiles) -> FinishedReport:
    """Compare files of scores; raises `InputError` as `read_score_files`."""
    scores = read_score_files(files)
    facts = [
        Fact(name, f"{home.file}, column {home.column}") for name, home in scores.homes.items()
    ]
    return _finished(scores, f"{files.target} = {scores.rare_label}", "files of scores", facts, {})


def _names(models: Sequence[Path]) -> list[str]:
    """Names of files, with folders where the names alone are equal.

    >>> _names([Path("a/m.rareclass"), Path("b/m.rareclass")])
    ['a/m', 'b/m']
    """
    short = [path.stem for path in models]
    for names in (short, [str(path.with_suffix("")) for path in models]):
        if len(set(names)) == len(names):
            return names
    return [f"{name} ({number + 1})" for number, name in enumerate(short)]


def _finished(
    scores: ReadScores, finding: str, where: str, facts: list[Fact], own: Mapping[str, float]
) -> FinishedReport:
    y, columns = scores.y, scores.columns
    n, n_rare = len(y), int(y.sum())
    comparison = compare_scores(y, columns, _MEASURES, groups=scores.groups)
    tables = {
        name: ThresholdTable.of(y, column, own=own.get(name)) for name, column in columns.items()
    }
    sections = [_measures_section(comparison), _curves_section(tables)]
    names = list(columns)
    if len(names) == 2:
        sections.append(_agreement_section(y, columns))
    of_rows = rows_facts(n, n_rare)
    if scores.groups is not None:
        n_groups = whole(len(np.unique(scores.groups)))
        of_rows.append(Fact("Groups of rows that move together", n_groups))
    sections += [
        Section("data", "The data", "What was read.", (FactList(tuple(of_rows)),)),
        settings_section(facts),
    ]
    page = ReportPage(
        f"Finding {finding}: {' or '.join(names)}",
        f"On {where}: {whole(n)} rows, {whole(n_rare)} of them rare",
        comparison.by("average_precision").says(),
        tuple(
            figure_of(f"{measure.title}: {each.name}", each.interval)
            for measure in comparison.measures[:2]
            for each in measure.standings
        ),
        tuple(sections),
    )
    return FinishedReport(page, comparison.to_dict())


def _measures_section(comparison: Comparison) -> Section:
    blocks: list[PageBlock] = [measure.block() for measure in comparison.measures]
    blocks.append(Note(comparison.about_verdicts()))
    lead = "By each measure, and whether chance explains it."
    return Section("measures", "Which is better", lead, tuple(blocks))


def _curves_section(tables: Mapping[str, ThresholdTable]) -> Section:
    first = next(iter(tables.values()))
    budgets = sorted({k for k in _BUDGETS if k <= first.n_rows / 2} | {round(first.n_rare)})
    at_recalls = {percent(each): methodcaller("at_recall", each) for each in _RECALLS}
    at_rates = {percent(each): methodcaller("at_false_positive_rate", each) for each in _RATES}
    within = {f"{each:,}": methodcaller("at_alerts", each) for each in budgets}
    caption, fewer = "Where so many rare rows are found", "Fewer alerts where scores are tied."
    goals: dict[type[TableDisplay], TableBlock] = {
        PrecisionRecallDisplay: _points(caption, "Recall, at least", at_recalls, tables),
        RocDisplay: _points("At false-positive rates", "At most", at_rates, tables),
        GainsDisplay: _points("Within the same number of alerts", "At most", within, tables, fewer),
    }
    plots = tuple(CurvesDisplay(tables, kind, points).on_page() for kind, points in goals.items())
    return Section("curves", "Curves", "The same rows, one line a ranking.", (Plots(plots),))


class CurvesDisplay(Display):
    """The curves of one kind of several rankings, with the `points` where each meets some goals."""

    def __init__(
        self, tables: Mapping[str, ThresholdTable], kind: type[TableDisplay], points: TableBlock
    ) -> None:
        self.tables, self.kind, self.points = tables, kind, points
        self.key, self.title = kind.key, kind.title

    def _words(self) -> str:
        return f"{' and '.join(self.tables)}. {_BANDS}"

    def rows(self) -> TableBlock:
        """Return the points."""
        return self.points

    def _draw(self, ax: Axes, **style: Any) -> None:
        for place, (name, table) in enumerate(self.tables.items()):
            color, dashes = CYCLE[place % len(CYCLE)]
            self.kind(table, name=name)._draw(ax, color=color, linestyle=dashes)


def _points(
    caption: str,
    head: str,
    goals: Mapping[str, methodcaller],
    tables: Mapping[str, ThresholdTable],
    note: str = "",
) -> TableBlock:
    """Table of each ranking at the thresholds that meet each of some goals."""
    rows = []
    for goal, place_in in goals.items():
        for name, table in tables.items():
            k = place_in(table)
            shares = (percent_with_bounds(each.at(k)) for each in (table.recall, table.precision))
            rows.append((goal, name, whole(float(table.alerts[k])), *shares))
    heads = (head, "Ranking", "Alerts", "Recall", "Precision")
    return TableBlock(caption, heads, tuple(rows), note)


def _agreement_section(y: NDArray[np.bool_], columns: Mapping[str, NDArray[np.float64]]) -> Section:
    """Section on the rare rows that two rankings find among their highest, together and alone."""
    rare, n_rare = y == 1, int(y.sum())
    orders = [np.argsort(-column, kind="stable") for column in columns.values()]
    tops = sorted({k for k in (*_TOPS, n_rare) if k <= len(y) / 2})
    rows, lead = [], ""
    for k in tops:
        first, second = np.zeros((2, len(y)), dtype=bool)
        first[orders[0][:k]] = second[orders[1][:k]] = True
        both, either = first & second, (first | second) & rare
        by_first, by_second = int((first & rare).sum()), int((second & rare).sum())
        found_by_both = int((both & rare).sum())
        counts = (
            k, int(both.sum()), found_by_both, by_first - found_by_both, by_second - found_by_both,
        )  # fmt: skip
        rows.append(tuple(f"{count:,}" for count in counts))
        if k == n_rare or n_rare not in tops:
            lead = (
                f"Among the {k:,} highest rows of each, the better one has "
                f"{max(by_first, by_second):,} rare rows and both together {int(either.sum()):,}."
            )
    a, b = columns
    head = (
        "Highest rows of each", "The same rows", "Rare, found by both", f"Only by {a}",
        f"Only by {b}",
    )  # fmt: skip
    table = TableBlock("What both find, and what only one does", head, tuple(rows))
    return Section("agreement", "Do they find the same?", lead, (table,))
