"""Pages on RankRC, its losses, landmarks and bounds, and the papers' own tables."""

from typing import Any

import numpy as np

from benchmarks import feature_scales, labelling_losses, stochastic, top_losses
from benchmarks.markdown import table
from benchmarks.ordinal import page as ordinal_page
from benchmarks.pages import charts
from benchmarks.pages.page import Finding, Page, Result, mean_of_each
from benchmarks.paper_tables import real_cells
from benchmarks.paper_tables.fig3 import fig3_page
from benchmarks.paper_tables.fig6 import fig6_page
from benchmarks.paper_tables.study import figure


def table2(result: Result) -> str:
    """Simulated data beside the paper."""
    methods = list(result["cells"][0]["methods"])
    rows = []
    for cell in result["cells"]:
        name = f"t = {cell['overlap']:g}, {cell['rare_share']:.0%} rare"
        found = cell["methods"]
        verdict = "yes" if cell["reached"] else "**no**"
        rows.append(
            [name, *(figure((found[m]["mean"], found[m]["error"])) for m in methods), verdict]
        )
        rows.append(["paper", *(figure(found[m]["paper"]) for m in methods), ""])
    reached = sum(cell["reached"] for cell in result["cells"])
    return (
        f"Test AUC in percent, {result['parameters']['trials']} trials, lam (k for KNN) chosen by "
        "AUC on 1,000 validation rows. RankRC at or above the paper's mean less 0.5 in "
        f"{reached} of {len(result['cells'])} cells.\n\n"
        + table(["", *methods, "RankRC ≥ paper - 0.5"], rows)
    )


def fig5(result: Result) -> str:
    """Train and test loss along lam, at the best lam and at the smallest."""
    rows = []
    for cell in result["cells"]:
        for method, losses in cell["losses"].items():
            best = min(range(len(losses["test"])), key=losses["test"].__getitem__)
            rows.append(
                [
                    f"t = {cell['overlap']:g}, {cell['rare_share']:.0%} rare",
                    method,
                    f"{losses['test'][best]:.3f}",
                    f"2^{result['log2_lam'][best]:.0f}",
                    f"{losses['train'][-1]:.3f}",
                    f"{losses['test'][-1]:.3f}",
                ]
            )
    header = ["data", "method", "best test loss", "at lam", "train at 2^-20", "test at 2^-20"]
    return "Mean hinge loss over pairs.\n\n" + table(header, rows)


def table2_finding(result: Result) -> Finding:
    """Return the cells at the paper's level, and means over the cells."""
    cells = result["cells"]

    def mean(method: str) -> float:
        return float(np.mean([cell["methods"][method]["mean"] for cell in cells]))

    printed = np.mean([cell["methods"]["RankRC"]["paper"][0] for cell in cells])
    return Finding(
        "Cells of the paper's simulated data in which RankRC's test AUC is at least the printed "
        "one less 0.5 points",
        f"{sum(cell['reached'] for cell in cells)} of {len(cells)}",
        f"mean AUC over the cells: RankRC {mean('RankRC'):.1f} %, the paper's RankRC "
        f"{printed:.1f} %, weighted SVM {mean('SVM-W'):.1f} %",
    )


def table4_finding(result: Result) -> Finding:
    """Return the sets below the paper's figure, and the strongest peer of the paper."""
    cells = real_cells.cells_of(result["runs"])
    both = {name: row for name, row in cells.items() if "SVM-W" in row}
    peer, ours = real_cells.shared_means(both, "SVM-W")
    tally = real_cells.counts(cells, "SVM-W")
    return Finding(
        "Real sets of the paper on which RankRC's test AUC is significantly below the printed one",
        f"{len(real_cells.significantly_below_paper(cells))} of {len(cells)}",
        f"a weighted SVM, tuned alike, has a mean AUC of {peer:.1f} % on {len(both)} sets, RankRC "
        f"{ours:.1f} % (RankRC above on {tally['above']}, level on {tally['level']}, below on "
        f"{tally['below']})",
    )


def fig5_finding(result: Result) -> Finding:
    """Return the mean of the best test losses."""
    best = mean_of_each(
        {method: min(losses["test"]) for method, losses in cell["losses"].items()}
        for cell in result["cells"]
    )
    return Finding(
        f"Mean test loss at the best regularisation, over {len(result['cells'])} simulated sets",
        f"RankRC {best['RankRC']:.3f}",
        f"RankSVM {best['RankSVM']:.3f}, random landmarks {best['RANK-RND']:.3f}",
    )


def fig5_chart(result: Result) -> Any:
    """Draw the test loss along lam, a panel for each set."""
    panels = {
        f"overlap {cell['overlap']:g}, {cell['rare_share']:.0%} rare": {
            method: (result["log2_lam"], losses["test"])
            for method, losses in cell["losses"].items()
        }
        for cell in result["cells"]
    }
    return charts.lines(panels, "log2 of lam", "test loss")


def of_part(result: Result, method: str, percent: float, key: str) -> float:
    """Return the mean of a measure of Figure 6 with this share of the training rows."""
    runs = [run for run in result["runs"] if run["status"] == "ok"]
    own = [run[key] for run in runs if (run["method"], run["percent"]) == (method, percent)]
    return float(np.mean(own))


def fig6_finding(result: Result) -> Finding:
    """Return AUC and average precision with all training rows."""
    shown = {
        method: f"AUC {of_part(result, method, 100.0, 'auc'):.1f} %, average precision "
        f"{of_part(result, method, 100.0, 'average_precision'):.1f} %"
        for method in ("RankRC", "SVM", "RANK-RND")
    }
    return Finding(
        "KDD Cup 99, attacks of later weeks, trained on all rows",
        f"RankRC {shown['RankRC']}",
        f"SVM {shown['SVM']}; random landmarks {shown['RANK-RND']}",
    )


def fig6_chart(result: Result) -> Any:
    """Draw AUC by the share of the training rows."""
    done = [run for run in result["runs"] if run["status"] == "ok"]
    panel = {}
    for method in dict.fromkeys(run["method"] for run in done):
        shares = sorted({run["percent"] for run in done if run["method"] == method})
        panel[method] = shares, [of_part(result, method, share, "auc") for share in shares]
    return charts.lines({"": panel}, "share of the training rows, %", "test AUC, %")


def fig3_finding(result: Result) -> Finding:
    """Return the two bounds with a tenth of the rows as landmarks."""
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


def fig3_chart(result: Result) -> Any:
    """Draw both bounds by the number of landmarks, a panel for each set."""
    panels = {
        one["set"]: {
            "(31), rare rows first": (one["subset"]["landmarks"], one["subset"]["bound"]),
            "(46), proven": _bound(one, "proven"),
            "(46), as printed": _bound(one, "as_printed"),
        }
        for one in result["sets"]
    }
    return charts.lines(panels, "landmarks", "bound", log_y=True)


def _bound(one: dict[str, Any], key: str) -> tuple[list[float], list[float]]:
    points = one["perturbation"]
    return [p["landmarks"] for p in points], [p[key]["mean"] for p in points]


def _mauc(result: Result, method: str, percent: float) -> float:
    lines = ordinal_page.lines_of(result["sets"]["days"], percent)
    return next(line.mauc[0] for line in lines if line.method == method)


def ordinal_finding(result: Result) -> Finding:
    """Return MAUC on half of the generated days, where every strong peer was run."""
    peers = ("ridge", "LightGBM regression")
    return Finding(
        "Pairs of different levels in the right order (MAUC), days in hospital, trained on 50 % of "
        "the generated rows",
        f"OrdinalRankRC {_mauc(result, 'OrdinalRankRC', 50.0):.1f} %",
        ", ".join(f"{peer} {_mauc(result, peer, 50.0):.1f} %" for peer in peers),
    )


def ordinal_chart(result: Result) -> Any:
    """Draw MAUC by the share of the generated rows."""
    days = result["sets"]["days"]
    panel: dict[str, tuple[list[float], list[float]]] = {}
    for percent in ordinal_page.percents_of(days):
        for line in ordinal_page.lines_of(days, percent):
            if line.method in ("OrdinalRankRC", "RANK-RND", "ridge", "LightGBM regression", "KNN"):
                x, y = panel.setdefault(line.method, ([], []))
                x.append(percent or 0.0)
                y.append(line.mauc[0])
    return charts.lines({"": panel}, "share of the generated rows, %", "MAUC, %")


def top_losses_finding(result: Result) -> Finding:
    """Return on how many sets the partial AUC is better and worse than the plain loss."""
    better, worse = top_losses.verdicts(result["sets"])["partial_auc"]
    return Finding(
        f'Of {len(result["sets"])} sets, those on which `loss="partial_auc"` changes average '
        "precision significantly against the plain loss",
        f"better on {len(better)}, worse on {len(worse)}",
    )


def labelling_finding(result: Result) -> Finding:
    """Return the mean change of F1 by the loss of F1."""
    sets = labelling_losses.whole(result)
    means = mean_of_each(
        {name: 100.0 * np.mean(c[name]["f1"]) for name in ("plain", "f1", "partial_auc")}
        for c in sets.values()
    )
    gain = {name: mean - means["plain"] for name, mean in means.items()}
    return Finding(
        f"Change of the greatest F1 against the plain loss, mean of {len(sets)} sets",
        f"loss of F1 {gain['f1']:+.1f} points",
        f"partial AUC {gain['partial_auc']:+.1f} points",
    )


def stochastic_finding(result: Result) -> Finding:
    """Return the gap after the last pass and the time of both solvers."""
    worst = max(run["gaps"][-1] for run in result["runs"])
    ratios = [run["seconds"][-1] / run["exact"]["seconds"] for run in result["runs"]]
    return Finding(
        "Distance of mini-batches from the exact minimum after "
        f"{len(result['runs'][0]['gaps'])} passes, the worst of {len(result['runs'])} cells",
        f"{100.0 * worst:.4f} %",
        f"takes {min(ratios):.1f} to {max(ratios):.1f} times as long as the exact solver",
    )


def scales_finding(result: Result) -> Finding:
    """Return how often exactly the informative features are found."""
    own = [cell for cell in result["generated"] if cell["shape"] == "clusters"]
    auc = mean_of_each(cell["auc"] for cell in own)
    return Finding(
        "Generated tables in which exactly the 5 informative features of 50 are found",
        f"{sum(cell['exactly'] for cell in own)} of {len(own)}, AUC {100 * auc['learned']:.1f} %",
        f"AUC with all features {100 * auc['plain']:.1f} %, with the 5 alone "
        f"{100 * auc['alone']:.1f} %",
    )


PAGES = {
    "table2": Page(
        "Simulated data of the RankRC paper (Table 2)",
        "rankings",
        "paper_tables table2",
        "RankRC and seven other methods learn 12 simulated sets of the paper, each tuned on the "
        "same validation rows, beside the paper's own figures.",
        table2_finding,
        table2,
        is_headline=True,
    ),
    "table4": Page(
        "Real sets of the RankRC paper (Tables 4 and 5)",
        "rankings",
        "paper_tables table4",
        "RankRC and nine other methods learn the paper's real sets, each tuned by the same "
        "10-fold cross-validation, beside the paper's own figures.",
        table4_finding,
        real_cells.table4_page,
        is_headline=True,
    ),
    "fig5": Page(
        "Loss along the regularisation (Figure 5)",
        "rankings",
        "paper_tables fig5",
        "RankSVM with all rows as landmarks, RankRC with the rare rows and random landmarks are "
        "compared along 16 values of lam.",
        fig5_finding,
        fig5,
        fig5_chart,
    ),
    "fig6": Page(
        "KDD Cup 99 by the share of rows (Figure 6)",
        "rankings",
        "paper_tables fig6",
        "RankRC, random landmarks and SVMs learn growing shares of KDD Cup 99 and are judged on "
        "connections of later weeks, with attacks that the training rows do not have.",
        fig6_finding,
        fig6_page,
        fig6_chart,
    ),
    "fig3": Page(
        "Stability bounds (Figure 3 of the bounds paper)",
        "rankings",
        "paper_tables fig3",
        "Two bounds on how much a score changes when few rows are landmarks are computed on real "
        "sets: the one for rare rows first, and the one for random landmarks.",
        fig3_finding,
        fig3_page,
        fig3_chart,
    ),
    "ordinal": Page(
        "Ordered classes",
        "rankings",
        "ordinal",
        "OrdinalRankRC and ten other methods learn targets with ordered levels: five real sets and "
        "generated days in hospital.",
        ordinal_finding,
        ordinal_page.page,
        ordinal_chart,
        is_headline=True,
    ),
    "top_losses": Page(
        "Losses for the top of the list",
        "rankings",
        "top_losses",
        "Losses that weigh the first rows of the ranking are compared with RankRC's plain loss, "
        "all chosen by average precision on the same folds.",
        top_losses_finding,
        top_losses.top_losses_page,
        is_headline=True,
    ),
    "labelling_losses": Page(
        "Losses of F1, precision at k and the break-even point",
        "rankings",
        "labelling_losses",
        "Structured losses for F1, precision at k and the break-even point are compared with "
        "RankRC's plain loss and with the partial AUC.",
        labelling_finding,
        labelling_losses.labelling_losses_page,
    ),
    "stochastic": Page(
        "Mini-batches beside the exact solver",
        "rankings",
        "stochastic",
        "StochasticRankRC, which sees rows in mini-batches, is compared with the exact solver of "
        "RankRC on KDD Cup 99 and donors.",
        stochastic_finding,
        stochastic.stochastic_page,
        is_headline=True,
    ),
    "feature_scales": Page(
        "Learned scales of the features",
        "rankings",
        "feature_scales",
        'RankRC with feature_scaling="learned" is compared with RankRC on all features, on '
        "generated tables whose informative features are known and on real sets.",
        scales_finding,
        feature_scales.feature_scales_page,
        is_headline=True,
    ),
}
