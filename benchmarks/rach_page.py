"""The sections of the results and performance pages on RACH."""

from collections.abc import Callable
from typing import Any

from benchmarks import rach_prices, rach_speed
from benchmarks.markdown import table
from benchmarks.paper_tables import rach_figures, rach_tables
from benchmarks.paper_tables.rach_methods import PERF
from benchmarks.paper_tables.rach_protocol import SHARES

Result = dict[str, Any]


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
            rach_figures.verdict(cells) + ".",
            table(*rach_tables.standing_table(cells)),
            "First or not behind: cells in which the method has the highest mean, or a paired "
            "t-test over the splits does not tell it from that (p < 0.05). Place: 1 is the first.",
            table(*rach_tables.share_table(cells)),
            f"Means over the shares ({', '.join(map(str, SHARES))} percent) of each problem; "
            "`--cells` prints every share, and the JSON file has every split.",
            table(*rach_tables.problem_table(fits)),
            *_on_common_splits(result["fits"]),
        ]
    )


def _on_common_splits(fits: list[dict[str, Any]]) -> list[str]:
    """The paper's form and its baselines, which have fewer splits, beside the others."""
    if len({fit["splits"] for fit in fits}) == 1:
        return []
    common = _common([fit for fit in fits if fit["method"] != PERF])
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
    with_perf = _common(fits)
    if with_perf and any(fit["method"] == PERF for fit in fits):
        cells = rach_figures.by_cell(with_perf)
        made += [
            f"**SVM-Perf** was run on {len(cells)} of these, and is compared on them alone:",
            table(*rach_tables.standing_table(cells)),
            table(*rach_tables.share_table(cells)),
        ]
    return made


def _common(fits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rach_figures.on_common_splits(fits), key=rach_tables.place)


def prices(result: Result) -> str:
    """F1 by the price of unlabelled rows: how the default of `RACH` was chosen."""
    words = (
        "F1 in percent of `RACH` with defaults but C2 (and a Gaussian kernel), mean over problems, "
        f"5, 15 and 25 percent of labels and {result['splits']} splits; in brackets the median of "
        'rows returned for each rare row that there is. "0.3/kept" is 0.3 over the number of '
        "unlabelled rows that the filter keeps. Every other problem of the table above chooses. "
        "Beyond the share: balls with more than twice the rows that can be rare, of "
        f"{_n_fits(result['cells'])}, and their mean F1."
    )
    return words + "\n\n" + table(rach_prices.HEADER, rach_prices.lines(result["cells"]))


def _n_fits(cells: list[dict[str, Any]]) -> int:
    """The number of fits of each price."""
    return sum(len(cell["f1"]) for cell in cells if cell["C2"] == cells[0]["C2"])


def longest(fits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fits with the most splits, in the order of problems, shares and methods."""
    most = max(fit["splits"] for fit in fits)
    own = [fit for fit in fits if fit["splits"] == most]
    return sorted(own, key=rach_tables.place)


def speed(result: Result) -> str:
    """Projection, fits with 5,000 rows, the filter, and a million rows."""
    parts = result["parts"]
    dates = ", ".join(f"{name}: {part['date']}" for name, part in parts.items())
    made = [table(header, lines) for header, lines in rach_speed.tables(parts)]
    words = (
        "The fastest of the repeats. Rare rows are a cluster beside a normal majority. Filter: "
        "distances of all rows to a centre and the near ones of these, beside a pass of the "
        "Gaussian kernel in numpy over the same rows. The last table is a fit from "
        f"{rach_speed.MILLION_LABELS[0]} rare and {rach_speed.MILLION_LABELS[1]} majority labels."
    )
    return "\n\n".join([words, *made, f"Measured: {dates}."])


SECTIONS: dict[str, tuple[str, str, Callable[[Result], str]]] = {
    "rach": ("RACH from a few labels (RACH paper, section VI)", "paper_tables rach --full", study),
    "rach_prices": ("The price of unlabelled rows in RACH", "rach_prices", prices),
}
SPEED = ("RACH part by part", "rach_speed", speed)
