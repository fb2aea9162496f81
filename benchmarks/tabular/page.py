"""The comparison as tables: what is best by set, mean ranks, tests, every mean, seconds."""

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.ledger import Run
from benchmarks.markdown import table
from benchmarks.paired_test import Paired
from benchmarks.tabular import figures
from benchmarks.tabular.estimates import agreement
from benchmarks.tabular.figures import LOWER_IS_BETTER, Results
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
from benchmarks.tabular.spaces import TUNED

OURS = "rareclass"
TITLES = {
    "chosen": "Development tables: defaults were chosen on them",
    "confirmed": "Validation tables: choices were checked on them",
    "looked_at": "Tables that earlier versions were judged on",
    "judge": "Test tables: nothing was chosen on them, and they were looked at once",
}
ALL = "All tables"
TESTED = {"average_precision": "average precision", "auc": "AUC"}
MEASURED = TESTED | {
    "precision": "precision at m+, as many alerts as there are rare rows",
    "log_loss": "log loss",
}
RANKED = TESTED | {"log_loss": "log loss", "seconds": "seconds"}
INTRODUCTION = (
    "Random splits, two thirds of either class to learn from (kdd and fraud_stream have test rows "
    "of their own, and one split); tables as published, one thread. "
    "Tuned methods take the best of random settings by average precision over 5 folds, the "
    "defaults among them, within the seconds that RareClassifier has (one behind the best on "
    "each of its first two folds is given up there); "
    f"at most {CANDIDATES} settings, tried on at most {SEARCH_ROWS:,} rows "
    f"({SVM_SEARCH_ROWS:,} for the SVM), then a fit on all rows. The SVM learns from at most "
    f"{SVM_ROWS:,} rows, all rare ones (up to half of that) among them; RankRC has at most "
    f"{LANDMARKS:,} landmarks, and 3 folds in place of 10 beyond {FEW_FOLDS_ROWS:,} rows. "
    "Copies of rows may stand in both parts. AutoGluon (best quality) and FLAML search by average "
    "precision within the same seconds. Methods without probabilities have no log loss. "
    "Tests are two-sided at 5 percent, corrected for overlapping splits (Nadeau and Bengio); where "
    "there is one split they compare disjoint parts of its test rows, which is about these "
    "fits alone."
)


def render(runs: Sequence[Run]) -> str:
    """All tables together, then the parts one after the other."""
    parts = [overview(runs)]
    for role in TITLES:
        text = part_page(runs, role)
        parts += [f"## {TITLES[role]}", text] if text else []
    return "\n\n".join(parts)


def overview(runs: Sequence[Run]) -> str:
    """Ranks and estimates over all tables."""
    found = figures.results(figures.of_all_splits(runs))
    return "\n\n".join([INTRODUCTION, f"## {ALL}", _ranks(found, _ours(found)),
                        *_estimates(found)])  # fmt: skip


def part_page(runs: Sequence[Run], role: str) -> str:
    """Every table of one part of the sets; empty where none of them was run."""
    found = figures.results(figures.of_all_splits(runs))
    first = figures.results([run for run in runs if run["repeat"] == 0])
    part = found.part(SET_PARTS[role])
    if not part.finished:
        return ""
    more = first.part(list(part.finished)) if len(first.methods) > len(found.methods) else None
    return "\n\n".join(part_tables(part, more))


def part_tables(found: Results, first: Results | None = None) -> list[str]:
    """Ranks, estimates, tests, means and seconds of one part of the sets.

    `first` is the first split of each, where some methods were tried on no other.
    """
    ours = _ours(found)
    tables = [_ranks(found, ours)]
    if first is not None:
        words = "**The first split of each set alone**, with methods that were run on no other:"
        tables += [words, _ranks(first, ours)]
    tables += _estimates(found)
    if ours is not None:
        tables += [_best_peers(found, ours, measure) for measure in TESTED]
    tables += [_means(found, measure, title) for measure, title in MEASURED.items()]
    return [*tables, _seconds(found), *_unfinished(found)]


def title(label: str, methods: dict[str, str]) -> str:
    """A label in words."""
    method = methods[label]
    tuned = ", tuned" if method.endswith(TUNED) else ""
    budget = label.removeprefix(method)  # ", 60 s" where seconds are a setting
    return LEARNERS[method.removesuffix(TUNED)].title + tuned + budget


def _ours(found: Results) -> str | None:
    """The label of RareClassifier that was tried on the most sets."""
    labels = [label for label, method in found.methods.items() if method == OURS]
    tried = {label: sum(label in one for one in found.finished.values()) for label in labels}
    best = max(labels, key=tried.__getitem__, default=None)
    return best if best is not None and tried[best] else None


def _peers(found: Results) -> list[str]:
    return [
        label
        for label, method in found.methods.items()
        if LEARNERS[method.removesuffix(TUNED)].is_peer
    ]


def _ranks(found: Results, ours: str | None) -> str:
    """Means over the sets and mean ranks; "-" where a method has no such figure on some set."""
    ranks = {measure: figures.ranks_of(found, measure) for measure in RANKED}
    means = {measure: figures.averages_of(found, measure) for measure in RANKED}
    labels, complete = figures.ranked(found)
    header = ["mean and mean rank"]
    for measure, words in RANKED.items():
        header += [words if measure in LOWER_IS_BETTER else f"{words}, %", "rank"]
    tests = [] if ours is None else [f"RareClassifier above, level, below it: {t}" for t in
                                     ("AP", "AUC")]  # fmt: skip
    rows = []
    for label in sorted(labels, key=lambda one: ranks["average_precision"].get(one, np.inf)):
        row = [title(label, found.methods)]
        for measure in RANKED:
            mean, rank = means[measure].get(label), ranks[measure].get(label)
            row.append("-" if mean is None else _figure(mean, measure))
            row.append("-" if rank is None else f"{rank:.2f}")
        for measure in TESTED if ours is not None else ():
            counts = figures.counts(found, ours, label, measure)
            row.append("" if label == ours else ", ".join(map(str, counts)))
        rows.append(row)
    return f"{len(complete)} sets: {', '.join(complete)}.\n\n" + table([*header, *tests], rows)


def _figure(mean: float, measure: str) -> str:
    if measure == "seconds":
        return f"{mean:.1f}"
    return f"{mean:.4f}" if measure in LOWER_IS_BETTER else f"{100.0 * mean:.2f}"


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


def _best_peers(found: Results, ours: str, measure: str) -> str:
    rows = []
    verdicts = {"above": 0, "level": 0, "below": 0}
    for name, labels in found.finished.items():
        one = figures.best_peer(labels, ours, _peers(found), measure)
        if one is None:
            continue
        if one.against is not None:
            verdicts[one.against.verdict()] += 1
        rows.append(
            [
                name,
                title(one.peer, found.methods),
                f"{100 * one.peer_mean:.2f}",
                f"{100 * one.mean:.2f}",
                *_test(one.against),
            ]
        )
    header = ["set", "best peer", "its mean", "RareClassifier", "difference", "p", "verdict"]
    words = ", ".join(f"{verdict} {count}" for verdict, count in verdicts.items())
    return (
        f"**Beside the best peer of each set, {TESTED[measure]} in percent** (the best peer is "
        f"picked by the test rows, which favours it): {words}.\n\n" + table(header, rows)
    )


def _test(against: Paired | None) -> list[str]:
    if against is None:
        return ["", "", "not tested"]
    return [f"{against.difference:+.2f}", against.p_cell, against.verdict()]


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
