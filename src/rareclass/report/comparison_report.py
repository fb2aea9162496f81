"""A report of two models, or of files of scores, beside each other."""

from pathlib import Path
from typing import Any

import numpy as np

from rareclass.compare import compare_scores
from rareclass.compare.score_files import ReadScores, ScoreFiles, read_score_files
from rareclass.errors import InputError
from rareclass.model.model import open_model
from rareclass.report.model_report import made
from rareclass.report.page.document import Facts, Figure, Report, Section
from rareclass.report.page.wording import percent, whole
from rareclass.report.reading import Asked, read_rows
from rareclass.report.sections.card import settings_section
from rareclass.report.sections.comparison import (
    agreement_section,
    curves_section,
    figures_of,
    measures_section,
)
from rareclass.report.summaries.agreement import Agreement
from rareclass.report.summaries.threshold_table import ThresholdTable
from rareclass.tables.table_file import TablePlace

_TOPS = (10, 100, 1000)


def report_on_models(
    models: list[Path], data: TablePlace, asked: Asked
) -> tuple[Report, dict[str, Any]]:
    """Compare models on the same rows of a file.

    Raises `InputError` as `read_rows`, and where the models have other targets.
    """
    contents = [open_model(path) for path in models]
    targets = {(each.metadata["target"], each.metadata.get("rare_label")) for each in contents}
    if len(targets) > 1:
        named = " and ".join(f"{target} = {label}" for target, label in sorted(targets))
        raise InputError(
            f"The models are of different classes: {named}.", "Compare models of one class."
        )
    read = [read_rows(content, data, asked) for content in contents]
    columns = dict(zip(_names(models), [each.scores for each in read], strict=True))
    groups = read[0].groups
    target, label = targets.pop()
    scores = ReadScores(columns, {}, str(label), read[0].y, groups)
    own = {
        name: float(content.model.offset_) for name, content in zip(columns, contents, strict=True)
    }
    paths = zip(columns, models, strict=True)
    facts = [("Rows", str(data)), *((name, str(path)) for name, path in paths)]
    return _page(scores, f"{target} = {label}", data.name, facts, own)


def report_on_scores(files: ScoreFiles) -> tuple[Report, dict[str, Any]]:
    """Compare files of scores; raises `InputError` as `read_score_files`."""
    scores = read_score_files(files)
    if len(scores.columns) < 2:
        raise InputError(
            "There is one column of scores: nothing to compare it with.",
            "Give two files of scores.",
        )
    facts = [
        (name, f"{home['file']}, column {home['column']}") for name, home in scores.homes.items()
    ]
    finding = f"{files.target} = {scores.rare_label}"
    return _page(scores, finding, "files of scores", facts, {})


def _page(
    scores: ReadScores,
    finding: str,
    where: str,
    facts: list[tuple[str, str]],
    own: dict[str, float],
) -> tuple[Report, dict[str, Any]]:
    y, columns = scores.y, scores.columns
    comparison = compare_scores(
        y, columns, ("average_precision", "roc_auc", "precision_at_k"), groups=scores.groups
    )
    tables = {
        name: ThresholdTable.of(y, column, own=own.get(name)) for name, column in columns.items()
    }
    sections = [measures_section(comparison), curves_section(tables)]
    names = list(columns)
    if len(names) == 2:
        a, b = (columns[name] for name in names)
        tops = sorted({k for k in (*_TOPS, int(y.sum())) if k <= len(y) / 2})
        found = [Agreement.of(y, a, b, k) for k in tops]
        sections.append(agreement_section((names[0], names[1]), found, int(y.sum())))
    n, n_rare = len(y), int(y.sum())
    sections += [
        Section(
            "data",
            "The data",
            "What was read.",
            (
                Facts(
                    (
                        ("Rows", whole(n)),
                        ("Rare rows", f"{whole(n_rare)} ({percent(n_rare / n)})"),
                        *_groups(scores),
                    )
                ),
            ),
        ),
        settings_section(facts),
    ]
    by_ap = comparison.by("average_precision")
    best = by_ap.best.name
    others = [each.name for each in by_ap.standings[1:]]
    if by_ap.worse == others:
        verdict = f"{best} is better than {_and(others)} by average precision, beyond chance."
    elif by_ap.worse:
        alike = _and(by_ap.not_told_apart)
        verdict = f"{best} has the highest average precision; {alike} may be as good."
    else:
        verdict = (
            f"{best} has the highest average precision, but these rows do not tell it apart from "
            f"{_and(others)}: chance explains the difference."
        )
    report = Report(
        f"Finding {finding}: {' or '.join(names)}",
        f"On {where}: {whole(n)} rows, {whole(n_rare)} of them rare",
        verdict,
        tuple(Figure(*each) for each in figures_of(comparison)),
        tuple(sections),
        made(),
    )
    return report, comparison.to_dict()


def _groups(scores: ReadScores) -> list[tuple[str, str]]:
    if scores.groups is None:
        return []
    return [("Groups of rows that move together", whole(len(np.unique(scores.groups))))]


def _names(models: list[Path]) -> list[str]:
    """The names of files, with folders where they would be the same.

    >>> _names([Path("a/m.skops"), Path("b/m.skops")]), _names([Path("x.skops"), Path("y.skops")])
    (['a/m', 'b/m'], ['x', 'y'])
    """
    short = [path.stem for path in models]
    if len(set(short)) == len(short):
        return short
    longer = [str(path.with_suffix("")) for path in models]
    if len(set(longer)) == len(longer):
        return longer
    return [f"{name} ({number + 1})" for number, name in enumerate(short)]


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
