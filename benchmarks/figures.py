"""Figures by name for README.md and written pages: `python -m benchmarks.figures` fills them in.

A page has each figure between two comments, ``<!--figure NAME-->1.4 s<!--/figure-->``, so that
it can be read as it is, and the figure comes from a file in benchmarks/results. The name of a page
of `benchmarks.pages` stands for its finding. Tests hold that the pages have what this command
writes and that no other figure is typed in.
"""

import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import paper_figures, peer_table, record
from benchmarks.markdown import table
from benchmarks.pages import few_labels, speed, tables
from benchmarks.pages.page import GROUPS, Results, quality
from benchmarks.pages.registry import PAGES, there
from benchmarks.tabular import headline
from benchmarks.tabular.sets import SET_PARTS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MARKED = re.compile(r"(<!--figure ([\w.-]+)-->)(.*?)(<!--/figure-->)", re.DOTALL)
Figure = Callable[[Results], str]


def written_pages() -> list[Path]:
    """Return README.md and the pages that are written by hand; decisions date their evidence."""
    folders = (DOCS, *(DOCS / name for name in ("explanation", "how-to", "method", "reference")))
    made = DOCS / "licences.md"
    found = [page for folder in folders for page in sorted(folder.glob("*.md")) if page != made]
    return [ROOT / "README.md", *found]


def filled(text: str, results: Results) -> str:
    """Return the page with every figure as the results have it."""

    def put(found: re.Match[str]) -> str:
        value = figure(found[2], results)
        return found[1] + (f"\n\n{value}\n\n" if "\n" in value else value) + found[4]

    return MARKED.sub(put, text)


@cache
def figure(name: str, results: Results) -> str:
    """Return one figure in words; a table has several lines."""
    if name in FIGURES:
        return FIGURES[name](results)
    if name in PAGES:
        return results.finding(name, PAGES[name]).sentence
    raise SystemExit(
        f"No figure is called {name}: `benchmarks/figures.py` has those that there are."
    )


def how_good(results: Results) -> str:
    """Return the findings that matter most: claim, figure, peer, command."""
    rows = []
    for group, title in GROUPS.items():
        own = [n for n, p in there(results).items() if p.group == group and p.is_headline]
        rows += [[f"**{title}**", "", "", ""]] if own else []
        for name in own:
            found = results.finding(name, PAGES[name])
            rows.append([found.claim, found.ours, found.peer, f"`{PAGES[name].whole_command}`"])
    header = ["claim", "rareclass", "beside it", "command"]
    return table(header, rows).replace("---:", "---")


@cache
def _tables(results: Results) -> headline.Headline:
    """The tables that nothing was chosen on."""
    return headline.headline(results["tabular"]["runs"], SET_PARTS["judge"])


def _table_sets(results: Results) -> str:
    found = _tables(results)
    return f"{len(found.sets)} tables, {found.splits_words} each"


def _verdict(results: Results) -> str:
    """Say measure by measure which libraries RareClassifier is significantly ahead of."""
    found = _tables(results)
    return ". ".join(
        f"{words[0].upper()}{words[1:]}: {headline.verdict(found, measure)}"
        for measure, words in tables.NAMES.items()
    )


def _behind(results: Results) -> str:
    """Tables on which the best peer has much more average precision."""
    behind = headline.behind(results["tabular"]["runs"], SET_PARTS["judge"])
    named = ", ".join(f"{name} {points:.1f}" for name, points in list(behind.items())[:5])
    most = f" (largest gaps in points, not tested one by one: {named})" if behind else ""
    return f"{len(behind)} of {len(_tables(results).sets)} tables{most}"


def _table_seconds(results: Results) -> str:
    """Median seconds of a fit of RareClassifier and two libraries."""
    methods = _tables(results).methods
    names = (headline.OURS, "catboost", "lightgbm")
    return ", ".join(f"{headline.title(m)} {methods[m].median_seconds:.1f} s" for m in names)


def _river(text: Callable[[dict[str, Any], dict[str, Any]], str]) -> Figure:
    def shown(results: Results) -> str:
        runs = results["stream_river"]["results"]
        ours = runs[results["stream_river"]["chosen"]["rareclass"]]
        return text(ours, runs["River, its defaults"])

    return shown


def _best_of_river(results: Results) -> str:
    """AUC of River's best optimiser for the stream of payments."""
    result = results["stream_river"]
    return f"{result['results'][result['chosen']['river']]['auc']:.3f}"


def _svms(results: Results) -> str:
    """Mean AUC of the SVMs of the simulated study, and of RankRC."""
    cells = results["table2"]["cells"]
    names = {"SVM-SMT": "with SMOTE", "SVM-RUS": "with undersampling", "SVM-W": "with weights",
             "RankRC": "RankRC"}  # fmt: skip
    means = {name: fmean(cell["methods"][name]["mean"] for cell in cells) for name in names}
    return ", ".join(f"{words} {means[name]:.1f} %" for name, words in names.items())


def _easy_ensemble(results: Results) -> str:
    """Mean ranks of EasyEnsemble and of RareClassifier on the tables that defaults come from."""
    sets = SET_PARTS["chosen"] + SET_PARTS["confirmed"]
    methods = [*headline.SHOWN, "easy_ensemble"]
    found = headline.headline(results["tabular"]["runs"], sets, methods)
    ranks = {name: one.ranks["average_precision"] for name, one in found.methods.items()}
    return (
        f"mean rank in average precision of {len(ranks)} methods on {len(found.sets)} tables: "
        f"{ranks['easy_ensemble']:.2f}, RareClassifier {ranks[headline.OURS]:.2f}"
    )


def _booster(data: str, method: str) -> Figure:
    return lambda results: quality(speed.one(results["boosters"], data=data, method=method))


def _one_row(results: Results) -> str:
    """Milliseconds until one row is scored, by the form of the row."""
    timed = [run for run in results["one_row"]["rows"] if "median_ms" in run]
    lines = [[run["what"], f"{run['median_ms']:.2f}", f"{run['p99_ms']:.2f}"] for run in timed]
    return table(["one row", "median, ms", "99th percentile, ms"], lines)


def _realmlp(results: Results) -> str:
    """RareClassifier minus RealMLP, whose runs are of a later day, on the tables that judge."""
    runs = [*results["tabular"]["runs"], *results["realmlp"]["runs"]]
    found = headline.headline(runs, SET_PARTS["judge"], (headline.OURS, "realmlp"))
    tests = (f"{w} {headline.beside(found, 'realmlp', m)}" for m, w in tables.NAMES.items())
    return f"{len(found.sets)} tables, {found.splits_words} each: {', '.join(tests)}"


_BOOSTERS = (*peer_table.TREES, "balanced_forest", "rankrc_part")
FIGURES: dict[str, Figure] = {
    "table.tabular": lambda results: headline.headline_table(_tables(results)),
    "table.how-good": how_good,
    "tabular.sets": _table_sets,
    "tabular.verdict": _verdict,
    "tabular.behind": _behind,
    "tabular.realmlp": _realmlp,
    "table.one-row": _one_row,
    "river.times": _river(lambda one, two: f"{one['rows_per_s'] / two['rows_per_s']:.0f} times"),
    "river.auc": _river(lambda one, two: f"{one['auc']:.3f}"),
    "river.peer.auc": _river(lambda one, two: f"{two['auc']:.3f}"),
    "river.best.auc": _best_of_river,
    **paper_figures.FIGURES,
    "table2.svm": _svms,
    "tabular.easy-ensemble": _easy_ensemble,
    "tabular.seconds": _table_seconds,
    "audit.border": lambda results: few_labels.border(results["audit"]),
    **{
        f"boosters.{name}.{method}": _booster(data, method)
        for name, data in (("wide", speed.WIDE), ("kdd", "kdd"))
        for method in _BOOSTERS
    },
}


def main(argv: Sequence[str] | None = None) -> int:
    """Fill in the figures of the written pages."""
    results = Results()
    for path in written_pages():
        text = path.read_text(encoding="utf-8")
        new = filled(text, results)
        if new != text:
            record.replace_file(path, new.encode())
        n_figures = len(MARKED.findall(text))
        if n_figures:
            state = "changed" if new != text else "as they were"
            print(f"{path.relative_to(ROOT)}: {n_figures} figures, {state}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
