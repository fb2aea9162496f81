"""The results as one page: `python -m benchmarks.results_page` writes docs/results.md.

Reads the JSON files in benchmarks/results and measures nothing. A benchmark without a file is left
out.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import anytime, hunt_hits, mibc_page, online_page, rach_page, record
from benchmarks.feature_scales import feature_scales_page
from benchmarks.labelling_losses import labelling_losses_page
from benchmarks.markdown import table
from benchmarks.ordinal import page as ordinal_page
from benchmarks.paper_tables.fig3 import fig3_page
from benchmarks.paper_tables.fig6 import fig6_page
from benchmarks.paper_tables.real_cells import table4_page
from benchmarks.paper_tables.study import figure
from benchmarks.sparse_landmarks import sparse_landmarks_page
from benchmarks.stochastic import stochastic_page
from benchmarks.top_losses import top_losses_page

PAGE = Path(__file__).parents[1] / "docs" / "results.md"
Result = dict[str, Any]

INTRODUCTION = """# Results

Made by `python -m benchmarks.results_page` from the JSON files in `benchmarks/results`, which hold
every single figure, the package versions and the date. Each section names the command that made
it. Figures with ± are a mean and its standard error; times are from two cores of a shared machine.
"""


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
    return (
        "Mean hinge loss over pairs. The curves are in `benchmarks/results/fig5.png`.\n\n"
        + table(header, rows)
    )


def kernel_pass(result: Result) -> str:
    """A fit in units of one pass that computes the kernel."""
    rows = [
        [
            row["dtype"],
            str(row["threads"]),
            f"{row['pass_seconds']:.2f}",
            f"{row['fit_seconds']:.2f}",
            f"{row['ratio']:.1f}",
        ]
        for row in result["rows"]
    ]
    header = ["dtype", "threads", "pass s", "fit s", "ratio (goal < 15)"]
    return "100,000 x 40 rows, 300 rare, lam = 2^-8.\n\n" + table(header, rows)


def solver(result: Result) -> str:
    """Passes of the majority by every solver."""
    rows = [
        [
            f"{case['rows']:,} x {case['features']}, {case['rare']:,} rare",
            f"{case['tol']:g}",
            name,
            f"{sum(path['passes']):,.0f}",
            f"{path['passes'][-1]:.1f}",
            f"{path['seconds']:.1f}",
        ]
        for case in result["cases"]
        for name, path in case["paths"].items()
    ]
    header = ["data", "tol", "solver", "passes, 16 lams", "passes at 2^-20", "seconds"]
    return table(header, rows)


def auc_speed(result: Result) -> str:
    """Seconds of this AUC and of scikit-learn's."""
    rows = [
        [
            f"{row['rare_share']:.1%}"
            + (", heavy ties" if row["ties"] else "")
            + (", weighted" if row["weighted"] else ""),
            *(
                f"{row['seconds_min'][name]:.2f}"
                for name in ("roc_auc_score", "roc_auc", "roc_auc_interval")
            ),
            f"{row['ratio']:.2f}",
        ]
        for row in result["rows"]
    ]
    header = ["rare rows", "scikit-learn s", "`roc_auc` s", "with interval s", "ratio (goal 0.33)"]
    made = result["parameters"]
    note = f"{made['rows']:,} rows, fastest of {made['repeats']}, interleaved.\n\n"
    return note + table(header, rows)


def landmarks(result: Result) -> str:
    """Rare rows alone, or some majority rows with them."""
    rules = list(next(iter(result["results"].values())))
    rows = [
        [name]
        + [f"{cells[r]['auc'][0]:.3f} \\| {cells[r]['average_precision'][0]:.3f}" for r in rules]
        for name, cells in result["results"].items()
    ]
    return f"AUC | average precision, {result['splits']} splits.\n\n" + table(["set", *rules], rows)


def startup(result: Result) -> str:
    """Seconds until the package is usable."""
    rows = [
        [
            f"`{row['command']}`",
            f"{row['median_seconds']:.2f}",
            "-" if row["goal"] is None else f"{row['goal']:g}",
        ]
        for row in result["rows"]
    ]
    return table(["command", "seconds", "goal, under"], rows)


SECTIONS: dict[str, tuple[str, str, Callable[[Result], str]]] = {
    "table2": ("Simulated data (Table 2)", "paper_tables table2", table2),
    "table4": ("Real sets (Tables 4 and 5)", "paper_tables table4", table4_page),
    "fig5": ("Loss along lam (Figure 5)", "paper_tables fig5", fig5),
    "fig6": ("KDD Cup 99 (Figure 6)", "paper_tables fig6", fig6_page),
    "fig3": ("Stability bounds (bounds paper, Figure 3)", "paper_tables fig3", fig3_page),
    **ordinal_page.SECTIONS,
    "top_losses": ("Losses that look at the top", "top_losses", top_losses_page),
    "labelling_losses": (
        "Losses of F1, precision at k and the break-even point",
        "labelling_losses",
        labelling_losses_page,
    ),
    "sparse_landmarks": ("Few landmarks", "sparse_landmarks", sparse_landmarks_page),
    "stochastic": ("Mini-batches beside the exact solver", "stochastic", stochastic_page),
    "feature_scales": ("Learned scales of the features", "feature_scales", feature_scales_page),
    "kernel_pass": ("A fit in kernel passes", "kernel_pass", kernel_pass),
    "solver": ("The solver", "solver --many 500000", solver),
    "auc_speed": ("The AUC of ten million rows", "auc_speed", auc_speed),
    "landmarks": ("Majority rows among the landmarks", "landmarks", landmarks),
    **online_page.SECTIONS,
    **mibc_page.SECTIONS,
    **rach_page.SECTIONS,
    "anytime": ("Average precision against seconds", "anytime", anytime.anytime_page),
    "hunt_hits": ("Cases among the first rows of a hunt", "hunt_hits", hunt_hits.page),
    "startup": ("Start", "startup", startup),
}


def main() -> int:
    """Write docs/results.md."""
    parts = [INTRODUCTION]
    for name, (title, command, render) in SECTIONS.items():
        path = record.RESULTS / f"{name}.json"
        if not path.is_file():
            print(f"left out: {name}, which has no results")
            continue
        result = json.loads(path.read_text())
        made = f"`python -m benchmarks.{command}`, {result['date']}."
        parts.append(f"## {title}\n\n{made}\n\n{render(result)}\n")
    record.replace_file(PAGE, "\n".join(parts).encode())
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
