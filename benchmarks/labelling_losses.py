"""Losses of F1, precision at k and the break-even point: `python -m benchmarks.labelling_losses`.

Beside the plain smoothed hinge and partial AUC, on small sets of the RankRC paper's Table 3.
Stratified random splits, three quarters for training; the training rows alone set the scaling and
choose lam (and beta of partial AUC) by average precision over 3 folds, the same folds and lams for
every method. Rare landmarks, Gaussian kernel of the mean width, tol 1e-3.

On the test rows, by the scores alone and alike for every method: the greatest F1 of any threshold,
precision at the number of rare test rows (the break-even point), precision at 10, average
precision and AUC. Differences from the plain loss by the paired t-test corrected for rows that
splits share (`paired_test`), at 5 percent.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks import markdown, record
from benchmarks.paired_test import Paired, paired
from benchmarks.paper_tables import real_sets
from benchmarks.paper_tables.protocol import Standardiser, data_folder
from benchmarks.paper_tables.rach_choice import best_threshold
from benchmarks.paper_tables.study import print_table
from rareclass.metrics import average_precision, precision_at_k, roc_auc

LAMS = 2.0 ** np.arange(0, -13, -4)
FOLDS, SPLITS, TEST_SHARE, TOL = 3, 5, 0.25, 1e-3
SETS = ("ecoli", "vowel0", "solarm0", "oil", "wine4", "contra2", "abalone19", "abalone7")
CANDIDATES: dict[str, list[Any]] = {
    "plain": ["smoothed_hinge"],
    "partial_auc": [("partial_auc", {"beta": b}) for b in (0.05, 0.1, 0.2)],
    "f1": ["f1"],
    "break_even": ["break_even"],
    "precision_at_k": [("precision_at_k", {"k": 10})],
}
MEASURES = {
    "f1": "greatest F1",
    "break_even": "break-even",
    "precision_at_10": "precision at 10",
    "ap": "AP",
    "auc": "AUC",
}


class Split(NamedTuple):
    """One split of one set, for one method."""

    set_name: str
    number: int
    method: str

    def run(self, folder: Path) -> dict[str, float]:
        """Test figures, the lam chosen, solutions stopped short, and the seconds of training."""
        from rareclass import RankRCCV

        X, y = real_sets.load(self.set_name, folder)
        shuffle = StratifiedShuffleSplit(1, test_size=TEST_SHARE, random_state=self.number)
        train, test = next(shuffle.split(X, y))
        scale = Standardiser.of(X[train])
        model = RankRCCV(
            lams=LAMS, cv=FOLDS, losses=CANDIDATES[self.method], scoring="average_precision",
            random_state=self.number, tol=TOL, pos_label=1, n_jobs=1, verbose=False,
        )  # fmt: skip
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # stops short, or learns nothing
            model.fit(scale(X[train]), y[train])
        return {
            **figures(y[test], model.score_samples(scale(X[test]))),
            "log2_lam": float(np.log2(model.best_lam_)),
            "stopped_short": int(model.cv_results_["n_stopped_short"].sum()),
            "seconds": time.process_time() - start,
        }


def figures(y: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Measures of scores on test rows.

    Examples
    --------
    >>> figures(np.arange(12) < 2, -np.arange(12.0))["precision_at_10"]
    0.2
    """
    return {
        "f1": best_threshold(y.astype(int), scores)[0],
        "break_even": precision_at_k(y, scores, int(y.sum())),
        "precision_at_10": precision_at_k(y, scores, 10),
        "ap": average_precision(y, scores),
        "auc": roc_auc(y, scores),
    }


def differences(cell: dict[str, Any], measure: str) -> dict[str, Paired]:
    """Method -> its difference from the plain loss on one set."""
    plain = np.array(cell["plain"][measure])
    found = {}
    for method in list(CANDIDATES)[1:]:
        if method in cell:
            difference = np.array(cell[method][measure]) - plain
            test = paired(difference, 1.0 - TEST_SHARE, TEST_SHARE)
            if test is not None:
                found[method] = test
    return found


def lines(sets: dict[str, Any], measure: str) -> list[list[str]]:
    """The plain loss, and every other method's difference from it, * where significant."""
    rows = []
    for name, cell in sets.items():
        row = [name, f"{100 * np.mean(cell['plain'][measure]):.1f}"]
        for test in differences(cell, measure).values():
            star = "" if test.verdict() == "level" else "*"
            row.append(f"{100 * test.difference:+.1f}{star}")
        rows.append(row)
    methods = list(CANDIDATES)[1:]
    every = [differences(cell, measure) for cell in sets.values()]
    means = [100 * np.mean([each[m].difference for each in every]) for m in methods]
    plain = 100 * np.mean([np.mean(cell["plain"][measure]) for cell in sets.values()])
    return [*rows, ["mean", f"{plain:.1f}", *(f"{mean:+.1f}" for mean in means)]]


def whole(result: dict[str, Any]) -> dict[str, Any]:
    """The sets that every method was measured on."""
    return {n: cell for n, cell in result["sets"].items() if set(CANDIDATES) <= set(cell)}


def labelling_losses_page(result: dict[str, Any]) -> str:
    """The section of the results page."""
    sets, how = whole(result), result["parameters"]
    seconds = {m: np.mean([np.mean(c[m]["seconds"]) for c in sets.values()]) for m in CANDIDATES}
    text = (
        f"Test figures in percent over {how['splits']} stratified splits of {len(sets)} sets, a "
        "quarter of the rows for testing; differences from the plain smoothed hinge, * where "
        "significant (two-sided at 5 percent, corrected for overlapping splits). lam is chosen by "
        f"average precision over {how['folds']} folds from {len(how['log2_lam'])} values; "
        "precision_at_k has k = 10. Processor seconds of a choice and fit: "
        + ", ".join(f"{m} {s:.1f}" for m, s in seconds.items())
        + ".\n\n"
    )
    tables = [
        markdown.table([name, "plain", *list(CANDIDATES)[1:]], lines(sets, measure))
        for measure, name in MEASURES.items()
    ]
    return text + "\n\n".join(tables)


def main(argv: list[str] | None = None) -> int:
    """Measure, print, write results/labelling_losses.json set by set and method by method."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.labelling_losses", description=__doc__
    )
    parser.add_argument("--sets", nargs="+", choices=list(real_sets.SETS), metavar="SET",
                        default=SETS, help=f"default: {', '.join(SETS)}")  # fmt: skip
    parser.add_argument("--splits", type=int, default=SPLITS, help=f"a set (default: {SPLITS})")
    parser.add_argument("--json", metavar="FILE", help="default: results/labelling_losses.json")
    args = parser.parse_args(argv)
    folder = data_folder()
    if folder is None:
        print("Skipped: no data folder. Name it with the environment variable RARECLASS_DATA.")
        return 0
    file = Path(args.json) if args.json else record.RESULTS / "labelling_losses.json"
    how = {"splits": args.splits, "folds": FOLDS, "log2_lam": np.log2(LAMS).tolist(), "tol": TOL}
    old = json.loads(file.read_text()) if file.is_file() else {}
    sets: dict[str, Any] = old["sets"] if old.get("parameters") == how else {}
    for name in args.sets:
        for method in CANDIDATES:
            if method in sets.get(name, {}) or not real_sets.is_there(name, folder):
                continue
            found = [Split(name, k, method).run(folder) for k in range(args.splits)]
            columns = {key: [one[key] for one in found] for key in found[0]}
            sets.setdefault(name, {})[method] = columns
            record.write("labelling_losses", {"parameters": how, "sets": sets}, file)
            print(f"{name}, {method}: {sum(columns['seconds']):.0f} s", file=sys.stderr, flush=True)
    complete = whole({"sets": sets})
    for measure, title in MEASURES.items():
        print_table([title, "plain", *list(CANDIDATES)[1:]], lines(complete, measure))
        print()
    print("written:", file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
