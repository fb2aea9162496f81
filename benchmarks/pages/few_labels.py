"""Pages on learning from a few labels: RACH, the hunt and the audit."""

from typing import Any

import numpy as np

from benchmarks import audit, hunt_hits
from benchmarks.markdown import table
from benchmarks.pages import charts
from benchmarks.pages.page import Finding, Result, chosen, mean_of_each, page
from benchmarks.paired_test import paired_peers
from benchmarks.paper_tables import rach_figures, rach_tables
from benchmarks.paper_tables.rach_methods import PERF
from benchmarks.paper_tables.rach_protocol import SHARES

Fits = list[dict[str, Any]]


@page(
    "audit",
    "Label errors found and counted",
    "labels",
    "audit",
    "`rareclass audit`, plain out-of-fold scores and cleanlab list rows whose rare label was taken "
    "away; the audit says how many there are at most.",
    audit.page,
)
def _audit(result: Result) -> Finding:
    own = [cell for cell in result["cells"] if cell["set"] in audit.CONFIRMING]
    found = mean_of_each(cell["found"] for cell in own if cell["planted"])
    covered = 100 * audit.coverage(own, "random")
    ours = found.pop(audit.AUDIT)
    best = max(found, key=found.__getitem__)
    return Finding(
        "Missed cases among as many majority rows as were planted, mean of tables that nothing was "
        "chosen on",
        f"`rareclass audit` {ours:.2f}; at most as many as its limit are there in {covered:.0f} % "
        f"of draws where labels are lost at random, {border(result)}",
        f"the best other list, {best}, {found[best]:.2f}",
    )


def border(result: Result) -> str:
    """Draws in which the audit's limit holds though labels are lost at the border, in words."""
    own = [cell for cell in result["cells"] if cell["set"] in audit.CONFIRMING]
    held = {s: audit.coverage(chosen(own, share=s), "border") for s in audit.SHARES}
    shown = ", ".join(f"{100 * part:.0f} % with {100 * s:g} % lost" for s, part in held.items())
    return f"where the classes meet in {shown}"


def study(result: Result) -> str:
    """F1 of a rare class from a few labels: the stored 10 splits, then all methods on fewer."""
    fits = longest(result["fits"])
    cells = rach_figures.by_cell(fits)
    splits = " or ".join(str(count) for count in sorted({fit["splits"] for fit in fits}))
    return "\n\n".join(
        [
            "One majority class against one rare class (`benchmarks/paper_tables/rach_sets.py` has "
            "the pairs and how they were drawn). A share of the rows of each is labelled, the F1 "
            f"of the rare class, in percent, is that of all other rows; means of {splits} random "
            "splits. Each method chooses among a grid (`rach_methods.py`) by cross-validated F1 "
            "on the labelled rows, each row left out once where the rare labels are at most five; "
            "with one rare label there is nothing to leave out, and it takes its first candidate. "
            "The paper prints its own figures as curves only. RACHCV is not the paper's algorithm: "
            "it adds a margin, a border by share and a radius that is learned.",
            table(*rach_tables.standing_table(cells)),
            "First or not behind: cells in which the method has the highest mean, or a paired "
            "t-test over the splits, corrected for the rows that they share, finds no significant "
            "difference from that one (p < 0.05). Splits share most of the rows that are guessed, "
            "so that this test calls few methods behind. The last column "
            "has the mean over data sets, and p of Wilcoxon's signed-rank test, corrected by Holm.",
            table(*rach_tables.share_table(cells)),
            f"Means over the shares ({', '.join(map(str, SHARES))} percent) of each problem; the "
            "JSON file has every share and split.",
            table(*rach_tables.problem_table(fits)),
            *_on_common_splits(result["fits"]),
        ]
    )


def _on_common_splits(fits: Fits) -> list[str]:
    """The paper's form and its baselines, which have fewer splits, beside the others."""
    if len({fit["splits"] for fit in fits}) == 1:
        return []
    common = on_shared_splits([fit for fit in fits if fit["method"] != PERF])
    cells = rach_figures.by_cell(common)
    made = [
        f"**The paper's form and the paper's baselines**, {len(cells)} problems with a share of "
        f"labels, the first {common[0]['splits']} of the same splits for every method. RACH "
        "(paper's form) has no margin, the solved radius, and C1, C2 and the width of the kernel "
        "by cross-validated F1 (`rach_paper.py`). Manifold ranking, the transductive SVM and "
        "undersampling are the paper's baselines; label spreading, self-training and Linear F1 "
        "are near relatives of manifold ranking, TSVM and SVM-Perf that were here first.",
        table(*rach_tables.standing_table(cells)),
        table(*rach_tables.share_table(cells)),
        table(*rach_tables.problem_table(common)),
    ]
    with_perf = on_shared_splits(fits)
    if with_perf and any(fit["method"] == PERF for fit in fits):
        cells = rach_figures.by_cell(with_perf)
        made += [
            f"**SVM-Perf** was run on {len(cells)} of these, and is compared on them alone:",
            table(*rach_tables.standing_table(cells)),
            table(*rach_tables.share_table(cells)),
        ]
    return made


def on_shared_splits(fits: Fits) -> Fits:
    """Return the fits of cells and splits that every method has, sorted."""
    return sorted(rach_figures.on_common_splits(fits), key=rach_tables.place)


def longest(fits: Fits) -> Fits:
    """The fits with the most splits, in the order of problems, shares and methods."""
    most = max(fit["splits"] for fit in fits)
    return sorted(chosen(fits, splits=most), key=rach_tables.place)


def _study_chart(result: Result) -> Any:
    """Draw mean F1 by the share of labels, all methods on the same splits."""
    kept = [fit for fit in result["fits"] if fit["method"] != PERF]
    cells = rach_figures.by_cell(on_shared_splits(kept))
    panel = {}
    for method in rach_figures.methods_of(cells):
        means = [
            np.mean([rach_figures.mean(cell, method) for k, cell in cells.items() if k.share == s])
            for s in SHARES
        ]
        panel[method] = (list(SHARES), means)
    names = sorted(panel, key=lambda name: -np.mean(panel[name][1]))[:8]
    return charts.lines({"": {name: panel[name] for name in names}}, "rows labelled, %", "F1, %")


@page(
    "rach",
    "RACH from a few labels (RACH paper, section VI)",
    "labels",
    "paper_tables rach --full",
    "RACHCV and nine other methods learn one rare class from 5 to 25 % of the rows with a label, "
    "each tuned by cross-validated F1 on the labelled rows.",
    study,
    _study_chart,
    is_headline=True,
)
def _rach(result: Result) -> Finding:
    found = rach_figures.standings(rach_figures.by_cell(longest(result["fits"])))
    ours = found.pop("RACHCV")
    by_first, by_mean = (max(found, key=lambda name: found[name][k]) for k in (0, 3))
    peers = []
    for name in dict.fromkeys((by_first, by_mean, "LightGBM")):
        own = found[name]
        lead = f"RACHCV minus it {own.behind.words()}"
        peers.append(f"{name} {own.first}, mean F1 {own.mean:.1f} %, {lead}")
    return Finding(
        f"Of {ours.cells} problems with 5 to 25 % of the rows labelled, those with the highest F1, "
        f"mean of 10 splits; differences over {own.behind.n} data sets",
        f"RACHCV {ours.first}, mean F1 {ours.mean:.1f} %",
        "; ".join(peers),
    )


def _hunt_cells(result: Result, **about: Any) -> list[Result]:
    own = [cell for cell in result["cells"] if cell["set"] in hunt_hits.CONFIRMING]
    return chosen(own, cleared=0, **about)


def _hunt_chart(result: Result) -> Any:
    """Draw cases among the first 100 rows by the number of known cases."""
    cells = _hunt_cells(result)
    counts = sorted({cell["cases"] for cell in cells})
    means = [mean_of_each(c["hits"] for c in chosen(cells, cases=n)) for n in counts]
    panel = {name: (counts, [each[name] for each in means]) for name in cells[0]["hits"]}
    return charts.lines({"": panel}, "known cases", "cases in the first 100")


@page(
    "hunt_hits",
    "Cases among the first rows of a hunt",
    "labels",
    "hunt_hits",
    "`rareclass hunt` and seven other methods rank unlabelled rows from a few known cases.",
    hunt_hits.page,
    _hunt_chart,
    is_headline=True,
)
def _hunt(result: Result) -> Finding:
    cells = _hunt_cells(result, cases=10)
    tables = dict.fromkeys(cell["set"] for cell in cells)
    of = {name: mean_of_each(cell["hits"] for cell in chosen(cells, set=name)) for name in tables}
    means = mean_of_each(of.values())
    ours = means.pop("hunt")
    best = max(means, key=means.__getitem__)
    gains = {peer: [each["hunt"] - each[peer] for each in of.values()] for peer in means}
    ends = [end(zip(gains[best], tables, strict=True)) for end in (max, min)]
    return Finding(
        "Cases among the first 100 unlabelled rows, from ten known cases, mean of "
        f"{len(tables)} of the {len(hunt_hits.CONFIRMING)} tables that nothing was chosen on",
        f"`rareclass hunt` {ours:.1f}",
        f"the best of {len(means)} peers, {best}, {means[best]:.1f}; hunt minus it "
        f"{paired_peers(gains)[best].words('cases')}, "
        + ", ".join(f"on {name} {gain:+.1f}" for gain, name in ends),
    )
