"""Pages on RankRC, its bounds, and the papers' own tables."""

from typing import Any

import numpy as np

from benchmarks.markdown import table
from benchmarks.ordinal import page as ordinal_page
from benchmarks.pages import charts
from benchmarks.pages.page import Finding, Result, chosen, listed, mean_of_each, page
from benchmarks.paper_tables import real_cells, table2
from benchmarks.paper_tables.fig3 import fig3_page
from benchmarks.paper_tables.fig6 import fig6_page
from benchmarks.paper_tables.study import figure


def _table2_body(result: Result) -> str:
    """Simulated data beside the paper."""
    methods = list(result["cells"][0]["methods"])
    rows = []
    for cell in result["cells"]:
        name = f"t = {cell['overlap']:g}, {cell['rare_share']:.0%} rare"
        found = cell["methods"]
        verdict = "yes" if cell["reached"] else "**no**"
        means = [figure((found[m]["mean"], found[m]["error"])) for m in methods]
        rows.append([name, *means, verdict])
        rows.append(["paper", *(figure(found[m]["paper"]) for m in methods), ""])
    reached = sum(cell["reached"] for cell in result["cells"])
    return (
        f"Test AUC in percent, {result['parameters']['trials']} trials, lam (k for KNN) chosen by "
        "AUC on 1,000 validation rows. RankRC at or above the paper's mean less 0.5 in "
        f"{reached} of {len(result['cells'])} cells.\n\n"
        + table(["", *methods, "RankRC ≥ paper - 0.5"], rows)
    )


@page(
    "table2",
    "Simulated data of the RankRC paper (Table 2)",
    "rankings",
    "paper_tables table2",
    "RankRC and seven other methods learn 12 simulated sets of the paper, each tuned on the same "
    "validation rows, beside the paper's own figures.",
    _table2_body,
    is_headline=True,
)
def _table2(result: Result) -> Finding:
    cells = result["cells"]
    mean = mean_of_each({m: found["mean"] for m, found in c["methods"].items()} for c in cells)
    printed = np.mean([cell["methods"]["RankRC"]["paper"][0] for cell in cells])
    return Finding(
        "Cells of the paper's simulated data in which RankRC's test AUC is at least the printed "
        "one less 0.5 points",
        f"{sum(cell['reached'] for cell in cells)} of {len(cells)}",
        f"mean AUC over the cells: RankRC {mean['RankRC']:.1f} %, the paper's RankRC "
        f"{printed:.1f} %, weighted SVM {mean['SVM-W']:.1f} %; RankRC minus it "
        f"{table2.leads(cells)['SVM-W'].words(decimals=2)}",
    )


@page(
    "table4",
    "Real sets of the RankRC paper (Tables 4 and 5)",
    "rankings",
    "paper_tables table4",
    "RankRC and nine other methods learn the paper's real sets, each tuned by the same 10-fold "
    "cross-validation, beside the paper's own figures.",
    real_cells.table4_page,
    is_headline=True,
)
def _table4(result: Result) -> Finding:
    cells = real_cells.cells_of(result["runs"])
    both = {name: row for name, row in cells.items() if "SVM-W" in row}
    peer, ours = real_cells.shared_means(both, "SVM-W")
    tests = real_cells.over_sets(cells)
    return Finding(
        "Real sets of the paper on which RankRC's test AUC is significantly below the printed one",
        f"{len(real_cells.significantly_below_paper(cells))} of {len(cells)}",
        f"a weighted SVM, tuned alike, has a mean AUC of {peer:.1f} % on {len(both)} sets, RankRC "
        f"{ours:.1f} %: {tests['SVM-W'].words()}; RankRC minus an SVM with undersampling "
        f"{tests['SVM-RUS'].words()}, with SMOTE {tests['SVM-SMT'].words()}",
    )


def _set_of(cell: Result) -> str:
    return f"{cell['overlap']:g}, {cell['rare_share']:.0%} rare"


def _fig5_body(result: Result) -> str:
    """Train and test loss along lam, at the best lam and at the smallest."""
    rows = []
    for cell in result["cells"]:
        for method, losses in cell["losses"].items():
            test, best = losses["test"], int(np.argmin(losses["test"]))
            rows.append({
                "data": f"t = {_set_of(cell)}", "method": method, "best": test[best],
                "lam": result["log2_lam"][best], "train": losses["train"][-1], "test": test[-1],
            })  # fmt: skip
    columns = {
        "data": "{data}",
        "method": "{method}",
        "best test loss": "{best:.3f}",
        "at lam": "2^{lam:.0f}",
        "train at 2^-20": "{train:.3f}",
        "test at 2^-20": "{test:.3f}",
    }
    return "Mean hinge loss over pairs.\n\n" + listed(rows, columns)


def _fig5_chart(result: Result) -> Any:
    panels = {
        f"overlap {_set_of(cell)}": {
            method: (result["log2_lam"], losses["test"])
            for method, losses in cell["losses"].items()
        }
        for cell in result["cells"]
    }
    return charts.lines(panels, "log2 of lam", "test loss")


@page(
    "fig5",
    "Loss along the regularisation (Figure 5)",
    "rankings",
    "paper_tables fig5",
    "RankSVM with all rows as landmarks, RankRC with the rare rows and random landmarks are "
    "compared along 16 values of lam.",
    _fig5_body,
    _fig5_chart,
)
def _fig5(result: Result) -> Finding:
    best = mean_of_each(
        {method: min(losses["test"]) for method, losses in cell["losses"].items()}
        for cell in result["cells"]
    )
    return Finding(
        f"Mean test loss at the best regularisation, over {len(result['cells'])} simulated sets",
        f"RankRC {best['RankRC']:.3f}",
        f"RankSVM {best['RankSVM']:.3f}, random landmarks {best['RANK-RND']:.3f}",
    )


def of_part(result: Result, method: str, percent: float, key: str) -> float:
    """Return the mean of a measure of Figure 6 with this share of the training rows."""
    own = chosen(result["runs"], status="ok", method=method, percent=percent)
    return float(np.mean([run[key] for run in own]))


def _fig6_chart(result: Result) -> Any:
    done = chosen(result["runs"], status="ok")
    panel = {}
    for method in dict.fromkeys(run["method"] for run in done):
        shares = sorted({run["percent"] for run in chosen(done, method=method)})
        panel[method] = shares, [of_part(result, method, share, "auc") for share in shares]
    return charts.lines({"": panel}, "share of the training rows, %", "test AUC, %")


@page(
    "fig6",
    "KDD Cup 99 by the share of rows (Figure 6)",
    "rankings",
    "paper_tables fig6",
    "RankRC, random landmarks and SVMs learn growing shares of KDD Cup 99 and are judged on "
    "connections of later weeks, with attacks that the training rows do not have.",
    fig6_page,
    _fig6_chart,
)
def _fig6(result: Result) -> Finding:
    def shown(method: str) -> str:
        auc, precision = (
            of_part(result, method, 100.0, key) for key in ("auc", "average_precision")
        )
        return f"AUC {auc:.1f} %, average precision {precision:.1f} %"

    return Finding(
        "KDD Cup 99, attacks of later weeks, trained on all rows",
        f"RankRC {shown('RankRC')}",
        f"SVM {shown('SVM')}; random landmarks {shown('RANK-RND')}",
    )


def _fig3_chart(result: Result) -> Any:
    """Draw both bounds by the number of landmarks, a panel for each set."""

    def bound(one: Result, key: str) -> tuple[list[float], list[float]]:
        points = one["perturbation"]
        return [p["landmarks"] for p in points], [p[key]["mean"] for p in points]

    panels = {
        one["set"]: {
            "(31), rare rows first": (one["subset"]["landmarks"], one["subset"]["bound"]),
            "(46), proven": bound(one, "proven"),
            "(46), as printed": bound(one, "as_printed"),
        }
        for one in result["sets"]
    }
    return charts.lines(panels, "landmarks", "bound", log_y=True)


@page(
    "fig3",
    "Stability bounds (Figure 3 of the bounds paper)",
    "rankings",
    "paper_tables fig3",
    "Two bounds on how much a score changes when few rows are landmarks are computed on real sets: "
    "the one for rare rows first, and the one for random landmarks.",
    fig3_page,
    _fig3_chart,
)
def _fig3(result: Result) -> Finding:
    ours, proven = [], []
    for one in result["sets"]:
        bound = dict(zip(one["subset"]["landmarks"], one["subset"]["bound"], strict=True))
        point = min(one["perturbation"], key=lambda p: abs(p["landmarks"] - 0.1 * one["rows"]))
        ours.append(bound[point["landmarks"]])
        proven.append(point["proven"]["mean"])
    return Finding(
        "Bound on the change of a score when a tenth of the rows are landmarks, mean of "
        f"{len(ours)} sets",
        f"rare rows first (31) {np.mean(ours):.2f}",
        f"random landmarks (46) {np.mean(proven):.2f}",
    )


def _ordinal_chart(result: Result) -> Any:
    days = result["sets"]["days"]
    panel: dict[str, tuple[list[float], list[float]]] = {}
    for percent in ordinal_page.percents_of(days):
        for line in ordinal_page.lines_of(days, percent):
            if line.method in ("OrdinalRankRC", "RANK-RND", "ridge", "LightGBM regression", "KNN"):
                x, y = panel.setdefault(line.method, ([], []))
                x.append(percent or 0.0)
                y.append(line.mauc[0])
    return charts.lines({"": panel}, "share of the generated rows, %", "MAUC, %")


@page(
    "ordinal",
    "Ordered classes",
    "rankings",
    "ordinal",
    "OrdinalRankRC and ten other methods learn targets with ordered levels: five real sets and "
    "generated days in hospital.",
    ordinal_page.page,
    _ordinal_chart,
    is_headline=True,
)
def _ordinal(result: Result) -> Finding:
    found = {line.method: line for line in ordinal_page.lines_of(result["sets"]["days"], 50)}
    return Finding(
        "Pairs of different levels in the right order (MAUC), days in hospital, trained on 50 % of "
        "the generated rows, one split (p over parts of its test rows)",
        f"OrdinalRankRC {found['OrdinalRankRC'].mauc[0]:.1f} %",
        ", ".join(
            f"{peer} {found[peer].mauc[0]:.1f} %, minus OrdinalRankRC {found[peer].against.words()}"
            for peer in ("ridge", "LightGBM regression")
        ),
    )
