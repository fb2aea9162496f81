"""Figures 2 and 3 of Grave and El Ghaoui (2014): mean ROC curves on test parts.

Dense sets and groups of texts with the most negatives to a positive, one group a set of texts. C,
cost ratio and ridge of each split are those that `mibc2` and `mibc4` chose; true-positive rates are
averaged at each false-positive rate.
"""

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_curve
from sklearn.svm import LinearSVC

from benchmarks import markdown, record
from benchmarks.paper_tables import mibc_sets
from benchmarks.paper_tables.mibc_methods import BARE, COST, N_FACTORS, UNDER, balanced
from benchmarks.paper_tables.protocol import data_folder, needed_folder
from benchmarks.paper_tables.study import options
from rareclass.moments import MIBC

# The largest ratios of the dense sets, and the largest group of each set of texts.
SHOWN = {
    "dense": ("abalone19", "mammograph"),
    "text": ("newsgroups20 rec.sport.hockey", "sector 5", "tdt2 1"),
}
METHODS = {"dense": ("MIBC", COST, UNDER), "text": ("MIBC", BARE, COST, UNDER)}
GRID = np.linspace(0.0, 1.0, 201)
SPLITS = 10
AT = (0.01, 0.05, 0.1)  # false-positive rates of the table


def model(study: str, method: str, fit: dict[str, Any], seed: int) -> Any:
    """The estimator of a method with what its fit chose."""
    C = 10.0 ** fit["log10_C"]
    if method in (COST, UNDER):
        weight = {1: fit["other"]}
        return LinearSVC(C=C, loss="hinge", dual=True, class_weight=weight, random_state=seed)
    covariance = "full" if study == "dense" else "diagonal"
    own = {"covariance": covariance, "n_factors": N_FACTORS, "ridge": fit["other"]}
    return MIBC(C, **own, random_state=seed, n_jobs=1)


def curve(study: str, problem: str, method: str, fit: dict[str, Any]) -> np.ndarray:
    """True-positive rates at the false-positive rates of `GRID`, on the test part of a split."""
    folder, seed = data_folder(), fit["split"]
    assert folder is not None
    train, _, test = mibc_sets.parts(problem, folder, seed)
    train = balanced(train, seed) if method == UNDER else train
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1,000 passes of liblinear, a ridge that was needed
        fitted = model(study, method, fit, seed).fit(train.X, train.y)
    false, true, _ = roc_curve(test.y, fitted.decision_function(test.X))
    return np.interp(GRID, false, true)


def measure(study: str, results: Path, splits: int) -> list[dict[str, Any]]:
    """Mean curves of the problems of a study."""
    fits = json.loads((results / f"mibc_{study}.json").read_text())["fits"]
    cells = []
    for problem in SHOWN[study]:
        curves: dict[str, list[np.ndarray]] = {}
        for split in range(splits):
            for fit in fits:
                of_cell = fit["problem"] == problem and fit["split"] == split
                if of_cell and fit["method"] in METHODS[study]:
                    one = curve(study, problem, fit["method"], fit)
                    curves.setdefault(fit["method"], []).append(one)
        means = {name: np.mean(curves[name], axis=0).round(4).tolist() for name in METHODS[study]}
        cells.append({"study": study, "problem": problem, "splits": splits, "true": means})
    return cells


def lines(cells: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Mean true-positive rates at a few false-positive rates."""
    found = []
    for cell in cells:
        for name, rates in cell["true"].items():
            at = [f"{100 * np.interp(share, GRID, rates):.1f}" for share in AT]
            full = float(GRID[int(np.argmax(np.asarray(rates) >= 0.999))])
            found.append([cell["problem"], name, *at, f"{100 * full:.1f}"])
    return found


HEADER = [
    "test part", "method", *(f"true positives at {share:.0%} false" for share in AT),
    "false at all true",
]  # fmt: skip


def mibc_roc_page(result: dict[str, Any]) -> str:
    """The section of the results page."""
    return "\n\n".join(
        [
            "Mean true-positive rates in percent, on the dense sets with the most negatives to a "
            "positive and on the largest group of each set of texts "
            f"({result['cells'][0]['splits']} splits). The last column is the false-positive rate "
            "at which the mean curve reaches all positives.",
            markdown.table(HEADER, lines(result["cells"])),
        ]
    )


def main(argv: Sequence[str], table: str) -> Path:
    """Fit at what was chosen, write the curves."""
    args = options(
        __doc__ or "", [], argv,
        splits=(SPLITS, f"random splits (default: {SPLITS})"),
        results=(str(record.RESULTS), "folder of mibc_dense.json and mibc_text.json"),
    )  # fmt: skip
    needed_folder()
    cells = [c for study in SHOWN for c in measure(study, Path(args.results), args.splits)]
    file = Path(args.json) if args.json else record.RESULTS / "mibc_roc.json"
    return record.write("mibc_roc", {"cells": cells}, file)
