"""Learned scales of features: `python -m benchmarks.feature_scales`.

- generated: 4,000 rows of 50 features, 200 of them rare, standardised; 5 features tell the rare
  ones apart, in a way that `SHAPES` describes. For each of several draws `RankRCCV` on all
  features, on the 5 alone, and with learned scales; lam by five folds. AUC on 10,000 new rows.
  Beside them the 5 features with the largest averaged outer products of the model's gradients (a
  recursive feature machine: 6 rounds, scales the roots of the products, lam of the model on all
  features). Goal: the 5 found in 19 of 20 draws, AUC within 0.5 points of the model on the 5.
- real: the sets of RankRC's Table 3, standardised, 70 per cent of the rows to learn from: AUC and
  average precision of `RankRCCV` without and with learned scales.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.markdown import table
from benchmarks.paper_tables.protocol import Standardiser, data_folder
from benchmarks.paper_tables.real_sets import SETS, is_there, load
from benchmarks.paper_tables.study import print_table, run_all
from rareclass import RankRC, RankRCCV
from rareclass.metrics import average_precision, roc_auc

ROWS, TEST_ROWS, RARE_SHARE, FEATURES, INFORMATIVE = 4_000, 10_000, 0.05, 50, 5
LAMS = 2.0 ** np.arange(4, -17, -4)
AGOP_ROUNDS = 6
AUC_GOAL, FOUND_GOAL = 0.005, 0.95
SMALL_SETS = ("ecoli", "oil", "abalone19", "wine4", "solarm0", "euthyroid", "contra2", "vowel0")

MAIN = ("clusters", "core", "correlated")
Rare = Callable[[np.random.Generator, np.ndarray], None]


def _centres(rng: np.random.Generator, n_centres: int = 3) -> np.ndarray:
    """Corners of a cube such that no feature alone is shifted the same way at all of them."""
    signs = np.ones((n_centres, INFORMATIVE))
    while (np.abs(signs.sum(axis=0)) == n_centres).any():
        signs = rng.choice([-1.0, 1.0], size=(n_centres, INFORMATIVE))
    return signs


def _clusters(heights: Any = 1.2, spread: float = 0.6) -> Rare:
    def draw(rng: np.random.Generator, rare: np.ndarray) -> None:
        # The centres belong to the draw of the data: the same for training and test rows.
        centres = _centres(rng) * heights
        rare[:, :INFORMATIVE] = centres[rng.integers(len(centres), size=len(rare))]
        rare[:, :INFORMATIVE] += spread * rng.normal(size=(len(rare), INFORMATIVE))

    return draw


def _core(rng: np.random.Generator, rare: np.ndarray) -> None:
    rare[:, :INFORMATIVE] *= 0.45


def _shell(rng: np.random.Generator, rare: np.ndarray) -> None:
    directions = rng.normal(size=(len(rare), INFORMATIVE))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    rare[:, :INFORMATIVE] = 3.0 * directions + 0.3 * rng.normal(size=directions.shape)


def _shift(rng: np.random.Generator, rare: np.ndarray) -> None:
    rare[:, :INFORMATIVE] += 0.7


SHAPES: dict[str, tuple[str, Rare]] = {
    "clusters": ("three clusters at corners of a cube", _clusters()),
    "correlated": ("the same, noise in a chain of correlations of 0.7", _clusters()),
    "proxies": ("the same, five noise features correlated 0.6 with the five", _clusters()),
    "heavy": ("the same, all features Student t with 4 degrees of freedom", _clusters()),
    "unequal": (
        "clusters that lie 1.6, 1.3, 1, 0.8, 0.6 from the middle by feature",
        _clusters(np.array([1.6, 1.3, 1.0, 0.8, 0.6]), 0.7),
    ),
    "core": ("a dense core in the middle: no feature is shifted", _core),
    "shell": ("a shell of radius 3 around the middle", _shell),
    "shift": ("every one of the five shifted by 0.7", _shift),
}


def draw(shape: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, whether each is rare, which are to learn from, and the informative features."""
    rng = np.random.default_rng([seed, list(SHAPES).index(shape)])
    n = ROWS + TEST_ROWS
    X = rng.normal(size=(n, FEATURES))
    if shape == "heavy":
        X = rng.standard_t(4, size=(n, FEATURES)) / np.sqrt(2.0)
    if shape == "correlated":
        for k in range(INFORMATIVE + 1, FEATURES):
            X[:, k] = 0.7 * X[:, k - 1] + np.sqrt(0.51) * X[:, k]
    y = np.zeros(n, dtype=bool)
    y[: round(RARE_SHARE * n)] = True
    SHAPES[shape][1](rng, X[: y.sum()])
    if shape == "proxies":
        beside = slice(INFORMATIVE, 2 * INFORMATIVE)
        X[:, beside] = 0.6 * X[:, :INFORMATIVE] + 0.8 * X[:, beside]
    learned = np.zeros(n, dtype=bool)
    n_rare = round(RARE_SHARE * ROWS)
    learned[:n_rare] = True
    learned[y.sum() : y.sum() + ROWS - n_rare] = True
    columns = rng.permutation(FEATURES)
    return X[:, columns], y, learned, np.flatnonzero(columns < INFORMATIVE)


def agop_features(X: np.ndarray, y: np.ndarray, lam: float) -> np.ndarray:
    """The features with the largest averaged squared slopes, classes counting the same."""
    weight = np.where(y, 0.5 / y.sum(), 0.5 / (~y).sum())
    squares = np.ones(X.shape[1])
    for _ in range(AGOP_ROUNDS):
        squares *= X.shape[1] / squares.sum()
        scaled = X * np.sqrt(squares)
        model = RankRC(lam=lam, verbose=False, pos_label=True).fit(scaled, y)
        Z, b = model.landmarks_, model.dual_coef_
        K = model._expansion().kernel.block(scaled, Z)
        slopes = np.sqrt(squares) * (scaled * (K @ b)[:, None] - K @ (b[:, None] * Z))
        squares = np.sqrt(weight @ slopes**2)
    return np.argsort(-squares)[:INFORMATIVE]


def _search(scaling: str | None, seed: int) -> RankRCCV:
    """The search over lam that every method here is, with scales of the features or without."""
    return RankRCCV(
        lams=LAMS,
        cv=5,
        equal_within=0,
        feature_scaling=scaling,
        random_state=seed,
        verbose=False,
    )


def generated(task: tuple[str, int]) -> dict[str, Any]:
    """One draw of one shape."""
    shape, seed = task
    X, y, learned, informative = draw(shape, seed)
    scale = Standardiser.of(X[learned])
    train, test = scale(X[learned]), scale(X[~learned])

    def fitted(columns: Any, scaling: str | None = None) -> tuple[RankRCCV, float, float]:
        start = time.perf_counter()
        model = _search(scaling, seed).fit(train[:, columns], y[learned])
        seconds = time.perf_counter() - start
        return model, roc_auc(y[~learned], model.score_samples(test[:, columns])), seconds

    every = np.arange(FEATURES)
    plain, plain_auc, plain_seconds = fitted(every)
    _, alone_auc, _ = fitted(informative)
    model, auc, seconds = fitted(every, "learned")
    scales = model.feature_scales_
    largest = np.argsort(-scales, kind="stable")[:INFORMATIVE]
    agop = agop_features(train, y[learned], plain.best_lam_)
    return {
        "shape": shape,
        "seed": seed,
        "exactly": bool(np.array_equal(np.flatnonzero(scales), informative)),
        "among_largest": int(np.isin(largest, informative).sum()),
        "agop_among_largest": int(np.isin(agop, informative).sum()),
        "n_features": int(np.count_nonzero(scales)),
        "auc": {"plain": plain_auc, "alone": alone_auc, "learned": auc},
        "seconds": {"plain": plain_seconds, "learned": seconds},
    }


def real(task: tuple[str, int]) -> dict[str, Any]:
    """One split of one set."""
    name, seed = task
    folder = data_folder()
    assert folder is not None
    X, y = load(name, folder)
    tested = np.zeros(len(y), dtype=bool)
    rng = np.random.default_rng(seed)
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        tested[rows[: round(0.3 * len(rows))]] = True
    scale = Standardiser.of(X[~tested])
    train, test = scale(X[~tested]), scale(X[tested])
    cell: dict[str, Any] = {"set": name, "split": seed, "all_features": X.shape[1]}
    for method, scaling in (("plain", None), ("learned", "learned")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            start = time.perf_counter()
            model = _search(scaling, seed).fit(train, y[~tested])
        scores = model.score_samples(test)
        cell[method] = {
            "auc": float(roc_auc(y[tested], scores)),
            "average_precision": float(average_precision(y[tested], scores)),
            "seconds": time.perf_counter() - start,
        }
    cell["n_features"] = int(np.count_nonzero(model.feature_scales_))
    cell["as_it_was"] = bool((model.feature_scales_ == 1.0).all())
    return cell


GENERATED_HEADER = [
    "rare rows", "draws", "found exactly", "5 largest are the 5", "by gradients' products",
    "features", "AUC all", "AUC the 5", "AUC learned", "within 0.5 points", "seconds",
]  # fmt: skip
REAL_HEADER = ["set", "AUC", "learned", "won : lost", "AP", "learned AP", "features", "as it was"]


def generated_lines(cells: list[dict[str, Any]]) -> list[list[str]]:
    """A line for each shape."""
    lines = []
    for shape in dict.fromkeys(cell["shape"] for cell in cells):
        these = [cell for cell in cells if cell["shape"] == shape]

        def mean(*path: str, these: list[dict[str, Any]] = these) -> float:
            return float(np.mean([_at(cell, path) for cell in these]))

        def count(key: str, these: list[dict[str, Any]] = these) -> int:
            return sum(cell[key] == INFORMATIVE for cell in these)

        gaps = [cell["auc"]["alone"] - cell["auc"]["learned"] for cell in these]
        lines.append(
            [
                SHAPES[shape][0],
                str(len(these)),
                str(sum(cell["exactly"] for cell in these)),
                str(count("among_largest")),
                str(count("agop_among_largest")),
                f"{mean('n_features'):.1f}",
                *(f"{100 * mean('auc', name):.1f}" for name in ("plain", "alone", "learned")),
                str(sum(gap <= AUC_GOAL for gap in gaps)),
                f"{mean('seconds', 'learned'):.1f}",
            ]
        )
    return lines


def _at(cell: Any, path: tuple[str, ...]) -> float:
    for name in path:
        cell = cell[name]
    return float(cell)


def real_lines(cells: list[dict[str, Any]]) -> list[list[str]]:
    """A line for each set, means over the splits; the last over all."""
    lines = []
    for name in [*dict.fromkeys(cell["set"] for cell in cells), "mean"]:
        these = [cell for cell in cells if name in (cell["set"], "mean")]
        # Where the scales are all one a difference is rounding.
        changed = [c for c in these if not c["as_it_was"]]
        gains = np.array([c["learned"]["auc"] - c["plain"]["auc"] for c in changed])
        measures = [
            [np.mean([cell[method][measure] for cell in these]) for method in ("plain", "learned")]
            for measure in ("auc", "average_precision")
        ]
        features = np.mean([cell["n_features"] for cell in these])
        lines.append(
            [
                name,
                *(f"{100 * value:.1f}" for value in measures[0]),
                f"{(gains > 0).sum()} : {(gains < 0).sum()}",
                *(f"{100 * value:.1f}" for value in measures[1]),
                "" if name == "mean" else f"{features:.1f} of {these[0]['all_features']}",
                f"{sum(cell['as_it_was'] for cell in these)} of {len(these)}",
            ]
        )
    return lines


def feature_scales_page(result: dict[str, Any]) -> str:
    """Both tables for the results page."""
    parts = []
    if result["generated"]:
        parts.append(
            "4,000 rows of 50 features, 200 rare, 5 features that matter; AUC in per cent on "
            "10,000 new rows. The goal was 19 of 20 and 0.5 points.\n\n"
            + table(GENERATED_HEADER, generated_lines(result["generated"]))
        )
    if result["real"]:
        parts.append(
            "Sets of Table 3, 70 per cent of the rows to learn from; per cent, means over the "
            "splits.\n\n" + table(REAL_HEADER, real_lines(result["real"]))
        )
    return "\n\n".join(parts)


def main(argv: list[str]) -> None:
    """Measure, print the tables, store every cell."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.feature_scales",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    split = lambda text: [name for name in text.split(",") if name]  # noqa: E731
    parser.add_argument("--shapes", type=split, default=list(SHAPES), help="of generated data")
    parser.add_argument("--seeds", type=int, default=20, help=f"draws of {', '.join(MAIN)}")
    parser.add_argument("--other-seeds", type=int, default=5, help="draws of the other shapes")
    parser.add_argument("--sets", type=split, default=list(SMALL_SETS), help="of Table 3")
    parser.add_argument("--splits", type=int, default=3, help="of each set")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="go on with what FILE holds")
    options = parser.parse_args(argv)
    for name in options.shapes:
        if name not in SHAPES:
            parser.error(f"no shape {name!r}: there are {', '.join(SHAPES)}")
    tasks = [
        (shape, seed)
        for shape in options.shapes
        for seed in range(options.seeds if shape in MAIN else options.other_seeds)
    ]
    folder = data_folder()
    known = [s for s in options.sets if s in SETS and folder is not None and is_there(s, folder)]
    if options.sets and not known:
        print("No real sets: set RARECLASS_DATA to the folder of the data sets.")
    result: dict[str, list[Any]] = {"generated": [], "real": []}
    if options.resume and options.json and Path(options.json).is_file():
        held = json.loads(Path(options.json).read_text())
        result = {part: held[part] for part in result}
    _run("generated", generated, tasks, result, options)
    _run("real", real, list(product(known, range(options.splits))), result, options)
    if result["generated"]:
        print_table(GENERATED_HEADER, generated_lines(result["generated"]))
    if result["real"]:
        print_table(REAL_HEADER, real_lines(result["real"]))


def _run(
    part: str,
    measure: Callable[[tuple[str, int]], dict[str, Any]],
    tasks: list[tuple[str, int]],
    result: dict[str, list[Any]],
    options: argparse.Namespace,
) -> None:
    """Measure what the result does not hold yet; every cell is stored as soon as it is there."""
    held = {(c.get("shape", c.get("set")), c.get("seed", c.get("split"))) for c in result[part]}

    def keep(_: tuple[str, int], cell: dict[str, Any]) -> None:
        result[part].append(cell)
        record.write("feature_scales", result, options.json)

    missing = [task for task in tasks if task not in held]
    run_all(f"Feature scales, {part}", measure, missing, options.jobs, keep)


if __name__ == "__main__":
    main(sys.argv[1:])
