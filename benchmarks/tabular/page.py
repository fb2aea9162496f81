"""The comparison as tables: means and mean ranks, tests over tables, every mean, seconds."""

from collections.abc import Callable, Sequence

from benchmarks.ledger import Run
from benchmarks.markdown import table
from benchmarks.tabular import figures, headline
from benchmarks.tabular.estimates import agreement
from benchmarks.tabular.figures import LOWER_IS_BETTER, Results
from benchmarks.tabular.headline import OURS
from benchmarks.tabular.learners import (
    FEW_FOLDS_ROWS,
    LANDMARKS,
    LEARNERS,
    SEARCH_ROWS,
    SVM_ROWS,
    SVM_SEARCH_ROWS,
)
from benchmarks.tabular.search import CANDIDATES
from benchmarks.tabular.sets import SET_PARTS
from benchmarks.tabular.spaces import METHODS, TUNED

TITLES = {
    "chosen": "Development tables: defaults were chosen on them",
    "confirmed": "Validation tables: choices were checked on them",
    "looked_at": "Tables that earlier versions were judged on",
    "judge": "Test tables: nothing was chosen on them, and they were looked at once",
}
ALL = "All tables"
MEASURED = {
    "average_precision": "average precision",
    "auc": "AUC",
    "precision": "precision at m+, as many alerts as there are rare rows",
    "log_loss": "log loss",
}
INTRODUCTION = (
    "Random splits, two thirds of either class to learn from (kdd and fraud_stream have test rows "
    "of their own, and one split); tables as published, one thread. "
    "Tuned methods take the best of random settings by average precision over 5 folds, the "
    "defaults among them, within the seconds that the method is called by (one behind the best on "
    "each of its first two folds is given up there); "
    f"at most {CANDIDATES} settings, tried on at most {SEARCH_ROWS:,} rows "
    f"({SVM_SEARCH_ROWS:,} for the SVM), then a fit on all rows. The SVM learns from at most "
    f"{SVM_ROWS:,} rows, all rare ones (up to half of that) among them; RankRC has at most "
    f"{LANDMARKS:,} landmarks, and 3 folds in place of 10 beyond {FEW_FOLDS_ROWS:,} rows. "
    "Copies of rows may stand in both parts. AutoGluon (best quality) and FLAML search by average "
    "precision within their seconds. Methods without probabilities have no log loss. "
    "Tests are over tables, two-sided at 5 percent: Wilcoxon's signed ranks of the mean difference "
    "of each table, corrected by Holm over the methods."
)


def render(runs: Sequence[Run]) -> str:
    """The parts one after the other."""
    parts = [INTRODUCTION]
    for role, words in TITLES.items():
        text = part_page(runs, role)
        parts += [f"## {words}", text] if text else []
    return "\n\n".join(parts)


def part_page(runs: Sequence[Run], role: str) -> str:
    """One part of the sets; empty where none of them was run."""
    part = figures.results(runs).part(SET_PARTS[role])
    if not part.finished:
        return ""
    texts = [
        *standings(runs, SET_PARTS[role]),
        *_estimates(part),
        *(_means(part, measure, words) for measure, words in MEASURED.items()),
        _seconds(part),
        *_unfinished(part),
    ]
    return "\n\n".join(texts)


def standings(runs: Sequence[Run], sets: Sequence[str]) -> list[str]:
    """Means, mean ranks and tests of the methods that were run on most of the sets."""
    found = headline.headline(runs, sets, METHODS)
    return [
        f"{len(found.sets)} sets, {found.splits_words} each: {', '.join(found.sets)}. Mean, mean "
        "rank in brackets (1 is the best), and after it ↓ where a method is significantly behind "
        "RareClassifier, ↑ where it is ahead.",
        headline.headline_table(found),
        "**Tests over tables**: mean difference, tables on which RareClassifier is better and "
        "worse (in brackets those on which it is significantly so over the splits, by the t-test "
        "corrected for the rows that splits share), p of Wilcoxon's signed ranks, corrected by "
        "Holm over the methods.",
        headline.tests_table(found),
        "**Groups** of methods, in the order of their mean ranks, of which no test over tables "
        "tells two apart (Wilcoxon's signed ranks, Holm over all pairs):",
        "\n".join(f"- {MEASURED[m]}: {headline.groups_words(found, m)}" for m in found.groups),
    ]


def title(label: str, methods: dict[str, str]) -> str:
    """A label in words."""
    method = methods[label]
    tuned = ", tuned" if method.endswith(TUNED) else ""
    budget = label.removeprefix(method)  # ", 60 s" where seconds are a setting
    return LEARNERS[method.removesuffix(TUNED)].title + tuned + budget


def _estimates(found: Results) -> list[str]:
    """Held-out average precision against the one of the test rows, for each of our methods."""
    rows = []
    for label in [one for one in found.methods if found.methods[one].startswith(OURS)]:
        runs = [list(labels.get(label, {}).values()) for labels in found.finished.values()]
        if not any(runs):
            continue
        one = agreement(runs)
        shown = ["-"] * 7
        if one is not None:
            shares = (
                f"{100.0 * share:.1f}" for share in (one.holds, one.expected, one.within_both)
            )
            shown = [
                str(one.tables),
                str(one.splits),
                f"{one.bias:+.2f}",
                f"{one.error:.2f}",
                *shares,
            ]
        rows.append([title(label, found.methods), *shown])
    if not rows:
        return []
    words = (
        "**Estimates**: held-out average precision, as `rareclass fit` prints it, minus that of "
        "the test rows. The printed 95 % interval is for infinitely many new rows. The figure of a "
        "few test rows varies around that one, so even a correct interval contains only the "
        "expected share of these figures. The last column counts pairs that differ by no more "
        "than both intervals allow: 95 % if both are correct."
    )
    header = ["method", "tables", "splits", "bias, points", "its standard error",
              "in the interval, %", "expected, %", "within both, %"]  # fmt: skip
    return [words + "\n\n" + table(header, rows)]


def _means(found: Results, measure: str, words: str) -> str:
    unit = 1.0 if measure in LOWER_IS_BETTER else 100.0
    lead = f"**Mean {words}**" + (", in percent" if unit > 1.0 else "")

    def cell(value: float) -> str:
        return f"{unit * value:.1f}" if unit > 1.0 else f"{value:.4f}"

    return _by_set(found, measure, lead, cell)


def _seconds(found: Results) -> str:
    return _by_set(found, "seconds", "**Mean seconds of a fit**", lambda value: f"{value:.1f}")


def _by_set(found: Results, measure: str, lead: str, cell: Callable[[float], str]) -> str:
    values = figures.means(found, measure)
    best = {name: _best(list(one.values()), measure) for name, one in values.items()}
    run = [m for m in found.methods if any(one.get(m) is not None for one in values.values())]
    rows = []
    for name, one in values.items():
        row = [name]
        for label in run:
            value = one.get(label)
            is_marked = value is not None and value == best[name] and measure != "seconds"
            text = "-" if value is None else cell(value)
            row.append(f"**{text}**" if is_marked else text)
        rows.append(row)
    header = ["set", *(title(label, found.methods) for label in run)]
    return f"{lead}\n\n" + table(header, rows)


def _best(values: list[float | None], measure: str) -> float | None:
    known = [value for value in values if value is not None]
    return (min if measure in LOWER_IS_BETTER else max)(known, default=None)


def _unfinished(found: Results) -> list[str]:
    """Which methods did not finish on which sets, or not every split."""
    lines = []
    for name, labels in found.finished.items():
        splits = max((len(one) for one in labels.values()), default=0)
        fewer = [
            f"{title(label, found.methods)} ({len(one)} of {splits})"
            for label, one in labels.items()
            if len(one) < splits
        ]
        if fewer:
            lines.append(f"- {name}: {'; '.join(fewer)}")
    if not lines:
        return []
    return ["Splits that were finished, where not all were:\n\n" + "\n".join(lines)]
