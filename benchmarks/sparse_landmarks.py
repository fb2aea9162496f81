"""A tenth of the landmarks: `python -m benchmarks.sparse_landmarks`.

On every set of Table 3, at the paper's proportion of test rows: RankRC with all rare rows as
landmarks, and models with a tenth of them at most, found by the penalty on absolute coefficients,
by k-means++ and by drawing them at random. What each of them has to choose, lam, is chosen by the
same 5 folds of the training part. Points found by k-means++ or drawn are the same in all folds, as
RankRC has them when given as a matrix. Scoring is timed on copies of the test rows.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks import record
from benchmarks.markdown import table
from benchmarks.paired_test import Paired, paired
from benchmarks.paper_tables.protocol import LAMS, Standardiser, data_folder
from benchmarks.paper_tables.real_sets import SETS, is_there, load
from rareclass import RankRC, RankRCCV
from rareclass.metrics import roc_auc

SHARE, FOLDS, TEST_SHARE = 10, 5, 0.25
POOL = 300
SCORED_ROWS, REPEATS = 100_000, 3
# Of all fits, the same for every method; tighter fits were not compared.
TOL = 1e-4

Result = list[dict[str, Any]]
"""What was measured of a set: by split."""


class Training(NamedTuple):
    """What a method is given.

    Attributes
    ----------
    X, y : ndarray
        The training part of a split.
    most : int
        Landmarks that are allowed.
    seed : int
    fitted : dict
        The models of the methods before, by name.
    """

    X: np.ndarray
    y: np.ndarray
    most: int
    seed: int
    fitted: dict[str, RankRC]


def full(given: Training) -> RankRC:
    """Every rare row is a landmark."""
    return _fitted(given, lams=LAMS)


def sparse(given: Training) -> RankRC:
    """Rare rows, as the penalty picks them."""
    return _fitted(given, penalty="l1", max_landmarks=given.most)


def sparse_pool(given: Training) -> RankRC:
    """As the penalty picks them among the rare rows and some of the majority."""
    landmarks = ("rare+majority", POOL)
    return _fitted(given, penalty="l1", max_landmarks=given.most, landmarks=landmarks)


def refitted(given: Training) -> RankRC:
    """Those of `sparse_pool`, with the quadratic regulariser in a second fit."""
    return _fitted(given, lams=LAMS, landmarks=given.fitted[PICKED].landmarks_)


def third(given: Training) -> RankRC:
    """A third of the rare rows' number, picked as in `sparse_pool`."""
    return sparse_pool(given._replace(most=int(given.y.sum()) // 3))


def spread(given: Training) -> RankRC:
    """Rare rows spread out by k-means++."""
    rare = given.X[given.y]
    points = rare[kmeans_plusplus(rare, given.most, random_state=given.seed)[1]]
    return _fitted(given, lams=LAMS, landmarks=points)


def drawn(given: Training) -> RankRC:
    """Rare rows drawn at random."""
    rng = np.random.default_rng(given.seed)
    rows = rng.choice(np.flatnonzero(given.y), given.most, replace=False)
    return _fitted(given, lams=LAMS, landmarks=given.X[rows])


WHOLE, PICKED, SPREAD = "all rare rows", f"l1, +{POOL} majority", "k-means++"
METHODS: dict[str, Callable[[Training], RankRC]] = {
    WHOLE: full,
    "l1": sparse,
    PICKED: sparse_pool,
    "its ridge refit": refitted,
    SPREAD: spread,
    "random": drawn,
    "a third of them by l1": third,
}


def _fitted(given: Training, **parameters: Any) -> RankRC:
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=given.seed)
    search = RankRCCV(
        cv=folds,
        equal_within=0,
        random_state=given.seed,
        verbose=False,
        n_jobs=1,
        tol=TOL,
        **parameters,
    )
    return search.fit(given.X, given.y).best_estimator_


def measure(name: str, folder: Path, seed: int) -> dict[str, Any]:
    """Test AUC, landmarks and seconds of every method, on one stratified split."""
    X, y = load(name, folder)
    X, X_test, y, y_test = train_test_split(
        X, y == 1, test_size=TEST_SHARE, stratify=y, random_state=seed
    )
    standardise = Standardiser.of(X)
    X, X_test = standardise(X), standardise(X_test)
    many = np.resize(X_test, (SCORED_ROWS, X_test.shape[1]))
    given = Training(X, y, int(y.sum()) // SHARE, seed, {})
    figures: dict[str, dict[str, float]] = {}
    for method, fit in METHODS.items():
        start = time.perf_counter()
        model = given.fitted[method] = fit(given)
        seconds = time.perf_counter() - start
        figures[method] = {
            "auc": 100.0 * roc_auc(y_test, model.score_samples(X_test)),
            "landmarks": model.n_landmarks_,
            "fit": seconds,
            "score": min(_seconds(model, many) for _ in range(REPEATS)),
        }
    return {"most": given.most, "methods": figures}


def _seconds(model: Any, X: np.ndarray) -> float:
    start = time.perf_counter()
    model.score_samples(X)
    return time.perf_counter() - start


def each(splits: Result, method: str, figure: str) -> np.ndarray:
    """A figure of a method on every split."""
    return np.array([split["methods"][method][figure] for split in splits])


def difference(result: Result, method: str, other: str) -> Paired:
    """Compare two methods in AUC on the same splits."""
    gains = each(result, method, "auc") - each(result, other, "auc")
    test = paired(gains, 1.0 - TEST_SHARE, TEST_SHARE)
    assert test is not None
    return test


def cell(result: Result, method: str, other: str) -> str:
    """Mean AUC of a method with its landmarks, and a mark where it differs from another one."""
    auc, landmarks = each(result, method, "auc"), each(result, method, "landmarks")
    mark = {"above": " +", "level": "", "below": " -"}[difference(result, method, other).verdict()]
    return f"{auc.mean():.1f} ({landmarks.mean():.0f}){mark}"


def summary(results: dict[str, Any]) -> list[list[str]]:
    """Over all sets: means, standing against the full model and k-means++, speed of scoring."""
    lines = []
    for method in METHODS:
        sets = list(results.values())
        against = [difference(splits, method, WHOLE) for splits in sets]
        means = [each(splits, method, "auc").mean() for splits in sets]
        gains = [difference(splits, method, SPREAD).difference for splits in sets]
        over_sets = paired(gains)
        speed = [
            each(splits, WHOLE, "score").mean() / each(splits, method, "score").mean()
            for splits in sets
        ]
        verdicts = [test.verdict() for test in against]
        lines.append(
            [
                method,
                f"{np.mean(means):.2f}",
                f"{np.median([test.difference for test in against]):+.2f}",
                f"{verdicts.count('above')} / {verdicts.count('below')}",
                f"{sum(gain > 0 for gain in gains)} of {len(sets)}"
                + (f" ({over_sets.p_words})" if any(gains) and over_sets else ""),
                f"{np.exp(np.mean(np.log(speed))):.1f}",
            ]
        )
    return lines


SUMMARY = (
    "method",
    "mean AUC",
    "median difference from all",
    "sets better / worse than all",
    "sets above k-means++",
    "times faster to score",
)


def sparse_landmarks_page(result: dict[str, Any]) -> str:
    """The section of the results page."""
    results = result["results"]
    counts = sorted({len(splits) for splits in results.values()})
    counted = " to ".join(str(count) for count in sorted({counts[0], counts[-1]}))
    words = (
        f"{counted} random splits a set. At most a tenth of the training part's rare rows "
        "are landmarks (column *most*), in all methods but the first and the last. AUC in percent, "
        "landmarks in use in brackets; + or -: different from all rare rows in a paired t-test "
        "over the splits (5 percent), corrected for the rows that they share. The ridge refit "
        "takes the landmarks that the penalty found and fits them with the quadratic regulariser."
    )
    lines = [
        [name, str(splits[0]["most"]), *(cell(splits, method, WHOLE) for method in METHODS)]
        for name, splits in results.items()
    ]
    return "\n\n".join(
        [
            words,
            table(["set", "most", *METHODS], lines),
            f"Over all sets (p of a paired t-test over them; scoring {SCORED_ROWS:,} rows on one "
            "thread, geometric mean):",
            table(SUMMARY, summary(results)),
        ]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write results/sparse_landmarks.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse_landmarks")
    parser.description = __doc__
    parser.add_argument("--splits", type=int, default=4, help="those in FILE stay in it")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--json", metavar="FILE", help="default: results/sparse_landmarks.json")
    parser.add_argument("--print", action="store_true", help="print what the file holds, and stop")
    args = parser.parse_args(argv)
    file = Path(args.json) if args.json else record.RESULTS / "sparse_landmarks.json"
    if args.print:
        print(sparse_landmarks_page(json.loads(file.read_text())))
        return 0
    folder = data_folder()
    if folder is None:
        print("No data folder: set RARECLASS_DATA.")
        return 1
    results: dict[str, Result] = {name: [] for name in SETS if is_there(name, folder)}
    if file.is_file():
        results |= json.loads(file.read_text())["results"]
    for seed in range(args.splits):
        for name in args.sets:
            if len(results.get(name, [0])) == seed:
                results[name].append(measure(name, folder, seed))
                print(f"{name}, split {seed + 1}", file=sys.stderr, flush=True)
                done = {name: splits for name, splits in results.items() if splits}
                record.write("sparse_landmarks", {"results": done}, file)
    print(sparse_landmarks_page(json.loads(file.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
