"""Rare rows alone as landmarks, or some majority rows with them: `python -m benchmarks.landmarks`.

The paper's Tables 4 and 5 have rare rows alone. Here the same splits are fitted with k majority
rows added, drawn at random, lam chosen each time by 5-fold cross-validation on the training
part. The sets are those of Table 3 with few rare rows, and scikit-learn's digits with each digit
in turn thinned to 1 percent (8 rare rows in each half), as the command line's demo does with one.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from benchmarks import record
from benchmarks.paper_tables.protocol import LAMS, Standardiser, data_folder, mean_and_error
from benchmarks.paper_tables.real_sets import load
from rareclass import RankRCCV
from rareclass.metrics import average_precision, roc_auc

SETS = ("abalone19", "oil", "ecoli", "wine4", "solarm0", "vowel0")
RULES: dict[str, Any] = {
    "rare": "rare",
    "rare+100": ("rare+majority", 100),
    "rare+200": ("rare+majority", 200),
    "rare+500": ("rare+majority", 500),
}
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def thin_digits() -> Iterator[Split]:
    """Each digit in turn as the rare class: halves for training and test."""
    pixels, digits = load_digits(return_X_y=True)
    for digit in range(10):
        generator = np.random.default_rng(digit)
        rare = generator.permutation(np.flatnonzero(digits == digit))
        rest = np.flatnonzero(digits != digit)
        rows = np.concatenate([rare[: round(len(rest) / 99)], rest])
        yield _halves(pixels[rows], digits[rows] == digit, 0.5, digit)


def real_splits(name: str, folder: Path, n_splits: int) -> Iterator[Split]:
    """Stratified splits in the paper's proportion."""
    X, y = load(name, folder)
    for seed in range(n_splits):
        yield _halves(X, y, 0.25, seed)


def _halves(X: np.ndarray, y: np.ndarray, test_share: float, seed: int) -> Split:
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=test_share, stratify=y, random_state=seed
    )
    standardise = Standardiser.of(X)
    return standardise(X), y, standardise(X_test), y_test


def measure(splits: Iterator[Split]) -> dict[str, Any]:
    """AUC and average precision (mean, standard error) of every rule on the same splits."""
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in RULES}
    for X, y, X_test, y_test in splits:
        for name, landmarks in RULES.items():
            model = RankRCCV(
                LAMS, cv=5, equal_within=0, landmarks=landmarks, random_state=0, verbose=False
            )
            scores = model.fit(X, y).score_samples(X_test)
            rare = y_test.astype(bool)
            figures[name].append((roc_auc(rare, scores), average_precision(rare, scores)))
    return {
        name: {
            "auc": mean_and_error([auc for auc, _ in pairs]),
            "average_precision": mean_and_error([ap for _, ap in pairs]),
        }
        for name, pairs in figures.items()
    }


def main() -> int:
    """Measure, print, write results/landmarks.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.landmarks", description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", help="default: results/landmarks.json")
    args = parser.parse_args()
    folder = data_folder()
    sources = {"digits": thin_digits()}
    if folder is None:
        print("Skipped the real sets: no data folder (set RARECLASS_DATA).")
    else:
        sources |= {name: real_splits(name, folder, args.splits) for name in SETS}
    print(f"{'AUC | AP':12s}" + "".join(f"{name:>16s}" for name in RULES))
    results = {}
    for name, splits in sources.items():
        results[name] = measure(splits)
        cells = [
            f"{row['auc'][0]:.3f} | {row['average_precision'][0]:.3f}"
            for row in results[name].values()
        ]
        print(f"{name:12s}" + "".join(f"{cell:>16s}" for cell in cells), flush=True)
    body = {"splits": args.splits, "results": results}
    print(f"wrote {record.write('landmarks', body, args.json)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
