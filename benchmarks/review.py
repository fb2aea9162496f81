"""Reviews with hidden labels: rare rows found and average precision reached.

`python -m benchmarks.review`. Of each table (4,500 rows at most, of which at most 5 percent are
rare) a random third is held out, and 5 rare and 20 other rows of the rest have labels. In each of
20 rounds a strategy lists 50 rows (a sixtieth of the rest where that is fewer), and gets their
labels. All strategies have the same learner, trained anew each round on the known rows: LightGBM
with 60 trees of 15 leaves.

- review: `rareclass.review.select_rows` on scores that nearness to cases raises, as `rareclass
  review` does it; by default a tenth of the list teaches and a tenth is random.
- top score, random.
- scikit-activeml 1.0.1: uncertainty (margin), Badge, Falcun, CoreSet. They need `pip install
  --no-deps --target FOLDER scikit-activeml iteration-utilities makefun`, and PYTHONPATH with that
  folder; else they are left out.

The weight of nearness was chosen on `CHOOSING`, where shares are compared; nothing was chosen on
the other tables. The default has random rows for the sake of estimates, which it does not measure.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from lightgbm import LGBMClassifier
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score

from benchmarks import record
from benchmarks.hunt_hits import FILES, as_usual
from benchmarks.markdown import table
from benchmarks.paper_tables.protocol import data_folder
from rareclass.review.selection import Shares, lean_to_cases, select_rows

CHOOSING = ("mammography", "payments", "satimage", "bank_marketing", "yeast")
CONFIRMING = (
    "thyroid", "unsw", "shuttle", "credit", "coil2000", "wine", "donors", "kdd", "cod_rna",
    "oil_spill",
)  # fmt: skip
_TABLES = {**FILES, "oil_spill": ("oil_spill", ())}
ROUNDS, BUDGET, SEEDS = 20, 50, 1
_ROWS, _SHARE, _LEAST_RARE, _SEED = 4_500, 0.05, 120, 20261126
_CASES, _OTHERS, _ROUNDS_A_ROW = 5, 20, 60

Floats = np.ndarray


class Rows(NamedTuple):
    """Encoded rows with their hidden labels."""

    points: Floats
    rare: np.ndarray


class Known(NamedTuple):
    """The view of a strategy: the rows of the pool, and the labels that are known."""

    points: Floats
    label: Floats  # NaN where hidden
    free: np.ndarray  # places without a label
    model: LGBMClassifier
    budget: int
    seed: int

    @property
    def scores(self) -> Floats:
        """Scores of the free rows."""
        return np.asarray(self.model.predict_proba(self.points[self.free])[:, 1], np.float64)


def load(name: str, folder: Path) -> Rows:
    """Draw the rows of a table, and encode them."""
    file, drop = _TABLES[name]
    rows = pl.read_parquet(folder / f"{file}.parquet").drop(drop)
    rare = rows["target"].cast(pl.Float64).to_numpy() > 0.0
    rng = np.random.default_rng(_SEED)
    kept = rng.choice(len(rare), min(_ROWS, len(rare)), replace=False)
    more = rng.permutation(np.setdiff1d(np.flatnonzero(rare), kept))
    kept = np.append(kept, more[: max(_LEAST_RARE - int(rare[kept].sum()), 0)])
    most = int(_SHARE / (1.0 - _SHARE) * np.count_nonzero(~rare[kept]))
    kept = np.sort(np.setdiff1d(kept, rng.permutation(kept[rare[kept]])[most:]))
    return Rows(as_usual(rows[kept].drop("target")).astype(np.float64), rare[kept])


def learner(seed: int) -> LGBMClassifier:
    """Return the learner of all strategies."""
    return LGBMClassifier(
        n_estimators=60, num_leaves=15, min_child_samples=3, subsample=0.8, subsample_freq=1,
        colsample_bytree=0.8, n_jobs=1, verbose=-1, random_state=seed,
    )  # fmt: skip


# -- strategies ------------------------------------------------------------------------------------


def by_review(shares: Shares | None = None) -> Callable[[Known], np.ndarray]:
    """Return the strategy of a review."""

    def choose(known: Known) -> np.ndarray:
        points = known.points[known.free]
        cases, others = known.points[known.label == 1.0], known.points[known.label == 0.0]
        scores = lean_to_cases(known.scores, points, cases, others)
        every = np.vstack([cases, others])
        return select_rows(scores, points, every, known.budget, shares or Shares(), known.seed).rows

    return choose


def by_top_score(known: Known) -> np.ndarray:
    """Take the highest scores; equal ones in random order."""
    order = np.random.default_rng(known.seed).permutation(len(known.free))
    return order[np.argsort(-known.scores[order], kind="stable")[: known.budget]]


def at_random(known: Known) -> np.ndarray:
    """Draw rows at random."""
    return np.random.default_rng(known.seed).choice(len(known.free), known.budget, replace=False)


def by_activeml(name: str, takes_model: bool, **settings: Any) -> Callable[[Known], np.ndarray]:
    """Return a strategy of scikit-activeml."""

    def choose(known: Known) -> np.ndarray:
        from skactiveml import pool
        from skactiveml.classifier import SklearnClassifier

        strategy = getattr(pool, name)(random_state=known.seed, **settings)
        given = {"candidates": known.free, "batch_size": known.budget}
        if takes_model:
            model = SklearnClassifier(known.model, classes=[0, 1])
            model.fit(known.points, known.label)
            given |= {"clf": model, "fit_clf": False}
        return np.searchsorted(known.free, strategy.query(known.points, known.label, **given))

    return choose


STRATEGIES: dict[str, Callable[[Known], np.ndarray]] = {
    "review": by_review(),
    "top score": by_top_score,
    "random": at_random,
    "uncertainty": by_activeml("UncertaintySampling", True, method="margin_sampling"),
    "Badge": by_activeml("Badge", True),
    "Falcun": by_activeml("Falcun", True),
    "CoreSet": by_activeml("CoreSet", False),
}
# The default among other shares, on the tables that it was chosen on.
SHARES = {
    f"teaches {teaches:g}, random {random:g}": Shares(teaches, random)
    for teaches, random in ((0.0, 0.0), (0.2, 0.0), (0.0, 0.2), (0.2, 0.2))
}
VARIANTS = {name: by_review(shares) for name, shares in SHARES.items()}


# -- simulation ------------------------------------------------------------------------------------


def simulate(rows: Rows, choose: Callable[[Known], np.ndarray], seed: int) -> dict[str, Any]:
    """Return the rare rows found and the average precision after each round."""
    rng = np.random.default_rng(seed)
    is_test = rng.random(len(rows.rare)) < 1 / 3
    points, rare = rows.points[~is_test], rows.rare[~is_test]
    label = np.full(len(rare), np.nan)
    label[rng.permutation(np.flatnonzero(rare))[:_CASES]] = 1.0
    label[rng.permutation(np.flatnonzero(~rare))[:_OTHERS]] = 0.0
    budget = min(BUDGET, max(len(rare) // _ROUNDS_A_ROW, 5))
    found, precision = [], []
    for number in range(ROUNDS + 1):
        is_known = ~np.isnan(label)
        model = learner(seed).fit(points[is_known], label[is_known].astype(int))
        scores = model.predict_proba(rows.points[is_test])[:, 1]
        precision.append(round(float(average_precision_score(rows.rare[is_test], scores)), 4))
        found.append(int(np.nansum(label)) - _CASES)
        if number < ROUNDS:
            free = np.flatnonzero(~is_known)
            chosen = choose(Known(points, label, free, model, budget, seed * 1000 + number))
            label[free[chosen]] = rare[free[chosen]]
    hidden = int(rare.sum()) - _CASES
    return {"hidden": hidden, "budget": budget, "found": found, "average_precision": precision}


def available() -> dict[str, Callable[[Known], np.ndarray]]:
    """Return the strategies whose packages are installed."""
    if find_spec("skactiveml") is None:
        return {name: STRATEGIES[name] for name in ("review", "top score", "random")}
    return STRATEGIES


# -- page ------------------------------------------------------------------------------------------


def complete(
    cells: Sequence[dict[str, Any]], sets: Sequence[str], wanted: Sequence[str] = tuple(STRATEGIES)
) -> tuple[list[str], list[str]]:
    """Return the wanted strategies that were measured, and the tables on which all of them were."""
    done = {(cell["set"], cell["strategy"]) for cell in cells}
    names = [name for name in wanted if any(strategy == name for _, strategy in done)]
    return names, [one for one in sets if all((one, name) in done for name in names)]


def means(cells: Sequence[dict[str, Any]], names: Sequence[str], sets: Sequence[str]) -> Floats:
    """Return, of each table and strategy, the share found and the average precision at the end."""
    return np.array(
        [
            [
                np.mean(
                    [
                        (cell["found"][-1] / cell["hidden"], cell["average_precision"][-1])
                        for cell in cells
                        if (cell["set"], cell["strategy"]) == (one, name)
                    ],
                    axis=0,
                )
                for name in names
            ]
            for one in sets
        ]
    )


def summary(cells: Sequence[dict[str, Any]], names: Sequence[str], sets: Sequence[str]) -> str:
    """Tabulate means over tables, and mean ranks, of some strategies."""
    values = means(cells, names, sets)
    ranks = rankdata(-values, axis=1).mean(axis=0)
    lines = [
        [name, f"{found:.3f}", f"{rank[0]:.2f}", f"{precision:.3f}", f"{rank[1]:.2f}"]
        for name, (found, precision), rank in zip(names, values.mean(axis=0), ranks, strict=True)
    ]
    head = ["strategy", "share of rare rows found", "mean rank", "average precision", "mean rank"]
    return table(head, lines)


def by_table(cells: Sequence[dict[str, Any]], names: Sequence[str], sets: Sequence[str]) -> str:
    """Tabulate the share found and the average precision of each table."""
    values = means(cells, names, sets)
    lines = [
        [one, *(f"{found:.2f} / {precision:.3f}" for found, precision in row)]
        for one, row in zip(sets, values, strict=True)
    ]
    return table(["table", *names], lines)


def page(result: dict[str, Any]) -> str:
    """Return the section of the page of results."""
    cells = result["cells"]
    names, confirming = complete(cells, CONFIRMING)
    choosing = complete(cells, CHOOSING)[1]
    n_seeds = 1 + max(cell["seed"] for cell in cells)
    parts = [
        f"{ROUNDS} rounds of at most {BUDGET} rows, {n_seeds} draws of the held-out third and the "
        "first labels; after the last round, mean over tables and draws "
        "(`benchmarks/review.py` says how)."
    ]
    if confirming:
        parts += [
            f"Tables that confirm: {', '.join(confirming)}.",
            summary(cells, names, confirming),
        ]
    if choosing:
        parts += [f"Tables that settings were chosen on: {', '.join(choosing)}."]
        parts += [summary(cells, names, choosing)]
    of_shares = ["review", "top score", *VARIANTS]
    of_these = complete(cells, CHOOSING, of_shares)[1]
    if of_these:
        parts += [f"The default (0.1, 0.1) among other shares, on {', '.join(of_these)}:"]
        parts += [summary(cells, of_shares, of_these)]
    parts += ["Share of the hidden rare rows that was found / average precision, by table:"]
    parts += [by_table(cells, names, [*confirming, *choosing])]
    return "\n\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what the file has not, and print the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.review", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", nargs="+", metavar="TABLE", choices=[*CHOOSING, *CONFIRMING])
    parser.add_argument("--json", metavar="FILE", help="default: results/review.json")
    args = parser.parse_args(argv)
    folder = data_folder()
    if folder is None:
        print("The tables are not there: RARECLASS_DATA names their folder.")
        return 0
    path = Path(args.json) if args.json else record.RESULTS / "review.json"
    cells = json.loads(path.read_text())["cells"] if path.exists() else []
    done = {(cell["set"], cell["strategy"], cell["seed"]) for cell in cells}
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    for seed in range(args.seeds):
        for name in args.only or (*CONFIRMING, *CHOOSING):
            wanted = available() | (VARIANTS if name in CHOOSING else {})
            left = {s: f for s, f in wanted.items() if (name, s, seed) not in done}
            rows = load(name, folder) if left else None
            for strategy, choose in left.items():
                about = {"set": name, "strategy": strategy, "seed": seed}
                assert rows is not None
                cells.append(about | simulate(rows, choose, seed))
            if left:
                record.write("review", {"cells": cells}, path)
                print(f"{name}, draw {seed}: done", flush=True)
    print(page({"cells": cells}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
