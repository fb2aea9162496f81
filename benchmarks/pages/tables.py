"""Pages on accuracy on tables: RareClassifier beside other libraries."""

from typing import Any

from benchmarks import anytime, millions, peer_table
from benchmarks.ledger import summaries
from benchmarks.pages import charts
from benchmarks.pages.page import Finding, Result, chosen, page, quality
from benchmarks.pages.speed import WIDE, of_runs
from benchmarks.several_classes import figures as several
from benchmarks.several_classes.methods import OURS as OUR_CLASSES
from benchmarks.tabular import headline
from benchmarks.tabular import page as tabular
from benchmarks.tabular.headline import OURS
from benchmarks.tabular.sets import SET_PARTS, SETS

NAMES = {"auc": "AUC", "average_precision": "average precision", "log_loss": "log loss"}
PARTS = {
    "tabular_development": ("chosen", " that defaults were chosen on"),
    "tabular_validation": ("confirmed", " that choices were checked on"),
    "tabular_looked_at": ("looked_at", " that earlier versions were judged on"),
    "tabular_test": ("judge", " that nothing was chosen on"),
}


def standing(found: headline.Headline, method: str) -> str:
    """Mean ranks and means of a method, in words."""
    one = found.methods[method]
    return (
        f"{headline.title(method)} AUC {100 * one.means['auc']:.1f} % ({one.ranks['auc']:.2f}), "
        f"average precision {100 * one.means['average_precision']:.1f} % "
        f"({one.ranks['average_precision']:.2f}), log loss {one.means['log_loss']:.3f} "
        f"({one.ranks['log_loss']:.2f}), {one.seconds:.1f} s a fit"
    )


def _standings(found: headline.Headline, which: str = "") -> Finding:
    """Return means and ranks of RareClassifier and of the best peer, with its tests."""
    tests = [
        f"{words} {one.p_words}"
        for measure, words in NAMES.items()
        for one in [found.methods[found.best_peer].against[measure]]
    ]
    return Finding(
        f"Mean and, in brackets, mean rank of {len(found.methods)} methods on "
        f"{len(found.sets)} tables{which}, {found.splits_words} each",
        standing(found, OURS),
        f"the best peer, {standing(found, found.best_peer)}; RareClassifier beside it over tables: "
        + ", ".join(tests),
    )


def _tabular_body(result: Result) -> str:
    """The headline tables over all sets."""
    texts = tabular.standings(result["runs"], list(SETS))
    return "\n\n".join([tabular.INTRODUCTION, *texts])


def _tabular_chart(result: Result) -> Any:
    found = headline.headline(result["runs"])
    series = {
        words: [one.ranks[measure] for one in found.methods.values()]
        for measure, words in NAMES.items()
    }
    labels = [headline.title(method) for method in found.methods]
    return charts.bars(labels, series, "mean rank, 1 is the best")


@page(
    "tabular",
    "RareClassifier beside other libraries",
    "tables",
    "run tabular",
    "RareClassifier is compared with gradient boosting, forests, SVMs and linear models on real "
    "tables, with the same splits and one thread for all.",
    _tabular_body,
    _tabular_chart,
)
def _tabular(result: Result) -> Finding:
    return _standings(headline.headline(result["runs"]))


for _name, (_role, _which) in PARTS.items():

    @page(
        _name,
        tabular.TITLES[_role],
        "tables",
        "run tabular",
        "RareClassifier is compared with other libraries on one part of the tables, split by "
        "split, with paired tests.",
        lambda result, role=_role: tabular.part_page(result["runs"], role),
        sources=("tabular",),
        is_headline=_role == "judge",
    )
    def _part(result: Result, role: str = _role, which: str = _which) -> Finding:
        return _standings(headline.headline(result["runs"], SET_PARTS[role]), which)


def _anytime_chart(result: Result) -> Any:
    panel: dict[str, tuple[list[float], list[float]]] = {}
    for method, _, precision, _, seconds, _ in anytime.lines(result["runs"]):
        x, y = panel.setdefault(method.partition(", ")[0], ([], []))
        x.append(float(seconds))
        y.append(float(precision))
    return charts.lines(
        {"": panel}, "seconds of fit and scores (median)", "average precision, %", log_x=10
    )


@page(
    "anytime",
    "Average precision against seconds",
    "tables",
    "anytime",
    "RareClassifier with its three efforts is compared with AutoGluon (best quality, "
    "30 and 60 seconds), CatBoost with 100 to 1000 trees, and LightGBM on one split of each table, "
    "one thread.",
    anytime.anytime_page,
    _anytime_chart,
    is_headline=True,
)
def _anytime(result: Result) -> Finding:
    found = {line[0]: line for line in anytime.lines(result["runs"])}
    efforts = [name for name in found if name.startswith("RareClassifier")]
    leads = anytime.leads(result["runs"], efforts[-1])
    best = max(leads, key=lambda name: float(found[name][2]))

    def shown(name: str) -> str:
        return f"{found[name][2]} % in {found[name][4]} s"

    peers = [
        f"{name} {shown(name)}, {efforts[-1]} minus it {leads[name].words(decimals=2)}"
        for name in (best, "LightGBM, 400 slow trees")
    ]
    whole = anytime.whole_sets(anytime.by_method(result["runs"]))
    n_chosen = sum(name in SET_PARTS["chosen"] for name in whole)
    return Finding(
        f"Average precision by effort, mean of one split of {len(whole)} tables, and median "
        f"seconds; defaults were chosen on {n_chosen} of the tables",
        ", ".join(f"{name} {shown(name)}" for name in efforts),
        "; ".join(peers),
    )


@page(
    "several_classes",
    "Several rare classes at once",
    "tables",
    "several_classes",
    "RareClassifier is compared with LightGBM, CatBoost and balanced forests, multiclass and one "
    "versus rest, on tables with one frequent and three to five rare classes, with the same splits "
    "and one thread for all.",
    several.page,
    is_headline=True,
)
def _several_classes(result: Result) -> Finding:
    runs = several.by_case(result["runs"])
    cases = several.cases_of(runs)
    found = several.standings(runs, cases)
    ratios = [each.ratio for each in several.times(result["runs"])]

    def shown(method: str) -> str:
        one = found[method]
        return (
            f"{method} average precision {100 * one.macro:.1f} %, recall within a budget of alerts "
            f"{100 * one.recall:.1f} %, log loss {one.log_loss:.3f}"
        )

    peer = several.best_peer(found)
    tests = [
        several.leads(runs, cases, value, scale)[peer]
        for value, scale in ((several.macro, 100.0), (several.recall, 100.0), (several.log_loss, 1))
    ]
    n_tables, n_chosen = len({c.table for c in cases}), sum(case.is_chosen_on for case in cases)
    return Finding(
        f"Several rare classes, mean of {len(cases)} splits of {n_tables} tables; members were "
        f"chosen on {n_chosen} of the splits",
        f"{shown(OUR_CLASSES)}, a fit {min(ratios):.2f} to {max(ratios):.2f} times as long as with "
        "one rare class",
        f"the best of {len(found) - 1} peers by average precision, {shown(peer)}; RareClassifier "
        f"minus it {tests[0].words()}, {tests[1].words()}, {tests[2].words('of log loss', 3)}",
    )


@page(
    "millions",
    "Tables of millions of rows",
    "tables",
    "millions",
    "RareClassifier with its defaults is compared with LightGBM at two settings on 3,000,000 "
    "made rows in memory, and learns from 10,000,000 in a Parquet file; two threads.",
    of_runs(millions.page),
    is_headline=True,
)
def _millions(result: Result) -> Finding:
    table = millions.IN_MEMORY.name
    runs = {run["method"]: run for run in chosen(result["runs"], table=table, status="ok")}
    found = {m: f"{m} {quality(run)} in {run['seconds']:.0f} s" for m, run in runs.items()}
    day = runs[millions.CLASSIFIER]["date"][:10]
    return Finding(
        f"{table}, 20 numbers and a category, 1 in 500 rare, one split, {day} (not tested)",
        found.pop(millions.CLASSIFIER),
        "; ".join(found.values()),
    )


@page(
    "boosters",
    "Boosters at a practitioner's settings",
    "tables",
    "run peers --data 1000000x40 kdd --json benchmarks/results/boosters.json",
    "RankRCCV is compared with LightGBM and XGBoost under class weights, a least leaf weight, slow "
    "trees and a random search.",
    of_runs(peer_table.render),
    is_headline=True,
)
def _boosters(result: Result) -> Finding:
    lines = summaries(result["runs"])

    def shown(data: str, title: str) -> str:
        run = peer_table.best(lines, data, peer_table.COLUMNS[title])
        return f"{title} {quality(run)} in {run['seconds']:.0f} s" if run else "not measured"

    ours, *peers = peer_table.COLUMNS
    return Finding(
        "1,000,000 x 40 generated rows, 1,000 rare, and KDD Cup 99, peers at their best setting by "
        "the held-out rows (one split each, not tested)",
        f"chosen on the training rows, generated: {shown(WIDE, ours)}; KDD: {shown('kdd', ours)}",
        f"generated: {', '.join(shown(WIDE, peer) for peer in peers)}; KDD: "
        f"{', '.join(shown('kdd', peer) for peer in peers)}",
    )
