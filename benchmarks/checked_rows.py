"""Estimates from checked rows beside the truth: `python -m benchmarks.checked_rows`.

Every row of a table has a score, and a review checks some rows. All labels are known here, so that
each estimate of `rareclass.metrics.checked_measures` can be compared with the measure of the whole
table: its bias, and how often its nominal 95 % interval holds the truth. Beside it stands the naive
figure: the same measure of the checked rows alone, as if they were the table.

Three kinds of review, each of a size at which about 30, 60 or 120 rare rows are found:

- alerts + random: all alerts are checked, and other rows drawn at random with equal chances.
- two strata: half of the alerts, and of the other rows those that score in the upper tenth with
  ten times the chance of the rest.
- rounds: four rounds. Each checks the rows that a changing model puts first (its scores move with
  the rare rows found so far), and random rows by two chances.

Alerts hold about two thirds of the rare rows that are found (a third, in two strata). Tables are
those of `hunt_hits` (at most 20,000 rows, of which at most 5 percent are rare), scored by gradient
boosting in two folds, and two made ones. Then, with as many alerts as rare rows: how wide the
interval of recall is with 100 to 3,000 random checks.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from benchmarks import hunt_hits, record
from benchmarks.markdown import table
from benchmarks.paper_tables.protocol import data_folder
from rareclass.labels.states import ListedRows
from rareclass.metrics import CheckedSample, average_precision, checked_measures
from rareclass.metrics.checked import CheckMethod

REAL = ("mammography", "payments", "bank_marketing", "satimage")
MADE = ("normal, 2 apart", "half of the cases hidden")
FOUND = (30, 60, 120)
MEASURES = ("precision", "recall", "average precision", "rare rows")
CHECKS = (100, 300, 1_000, 3_000)
_ROWS, _SHARE = 10_000, 0.03
Floats = np.ndarray


class Scored(NamedTuple):
    """A table: labels, and scores and probabilities that do not know them."""

    name: str
    y: np.ndarray
    score: Floats
    probability: Floats


class Review(NamedTuple):
    """A size of review: alerts, and random rows."""

    n_alerts: int
    n_random: int


def scored(name: str) -> Scored:
    """Score a table once."""
    rng = np.random.default_rng(20261126)
    if name in MADE:
        y = (np.arange(_ROWS) < _SHARE * _ROWS).astype(int)
        score = rng.normal(size=_ROWS)
        score[: y.sum()] += 2.0 if name == MADE[0] else np.where(np.arange(y.sum()) % 2, 4.0, 0.0)
        score += 1e-9 * rng.normal(size=_ROWS)
        odds = np.exp(2.0 * score - 2.0) * _SHARE / (1.0 - _SHARE)
        return Scored(name, y, score, odds / (1.0 + odds))
    file, left_out = hunt_hits.FILES[name]
    rows = hunt_hits.sample(pl.read_parquet(data_folder() / f"{file}.parquet").drop(left_out))
    y = (rows["target"].cast(pl.Float64).to_numpy() > 0.0).astype(int)
    points = hunt_hits.as_usual(rows.drop("target"))
    model = HistGradientBoostingClassifier(max_iter=100, random_state=0)
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    chance = cross_val_predict(model, points, y, cv=folds, method="predict_proba")[:, 1]
    chance = np.clip(chance, 1e-6, 1.0 - 1e-6)
    return Scored(name, y, np.log(chance / (1.0 - chance)) + 1e-9 * rng.normal(size=len(y)), chance)


def size_of(rows: Scored, kind: str, found: int) -> Review | None:
    """Size a review so that it finds about so many rare rows; None where the table has too few."""
    in_order = rows.y[np.argsort(-rows.score)]
    hits = np.cumsum(in_order)
    in_alerts = round(found * 2 / 3)
    if hits[-1] < found * 4 / 3:
        return None
    n_alerts = int(np.searchsorted(hits, in_alerts)) + 1
    others = in_order[n_alerts:]
    rate = others.mean()
    if kind != "alerts + random":
        chance = np.where(np.arange(len(others)) < len(others) // 10, 10.0, 1.0)
        rate = np.average(others, weights=chance)
    wanted = found - in_alerts / (2 if kind == "two strata" else 1)
    return Review(n_alerts, min(round(wanted / rate), len(others) // 2))


# -- reviews --------------------------------------------------------------------------------------

Part = tuple[np.ndarray, np.ndarray, Floats]


def by_rule(rows: np.ndarray) -> Part:
    """Rows that a rule chose."""
    return rows, np.zeros(len(rows), bool), np.ones(len(rows))


def drawn(rng: np.random.Generator, rows: np.ndarray, n: int) -> Part:
    """Rows drawn at random with equal chances."""
    found = rng.choice(rows, min(max(n, 1), len(rows)), replace=False)
    return found, np.ones(len(found), bool), np.full(len(found), len(found) / len(rows))


def two_chances(rng: np.random.Generator, in_order: np.ndarray, n: int) -> list[Part]:
    """Draw from the upper tenth with ten times the chance of the rest."""
    cut = max(len(in_order) // 10, 1)
    upper = round(n * 10 * cut / (10 * cut + len(in_order) - cut))
    return [drawn(rng, in_order[:cut], upper), drawn(rng, in_order[cut:], n - upper)]


def listed(parts: list[Part]) -> ListedRows:
    """Join the parts of a round."""
    return ListedRows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def sample_of(y: np.ndarray, rounds: list[ListedRows]) -> CheckedSample:
    """Weigh the rows of rounds that all have their verdicts."""
    after = np.full(len(y), -1)
    for number, each in enumerate(rounds, start=1):
        after[each.rows] = np.where(after[each.rows] < 0, number, after[each.rows])
    return CheckedSample.of(np.where(after >= 0, y, -1), after, rounds)


def alerts_and_random(rows: Scored, size: Review, rng: np.random.Generator) -> CheckedSample:
    """Check all alerts, and random other rows."""
    order = np.argsort(-rows.score)
    alerts, others = order[: size.n_alerts], order[size.n_alerts :]
    return sample_of(rows.y, [listed([by_rule(alerts), drawn(rng, others, size.n_random)])])


def two_strata(rows: Scored, size: Review, rng: np.random.Generator) -> CheckedSample:
    """Check half of the alerts, and random other rows by two chances."""
    order = np.argsort(-rows.score)
    alerts, others = order[: size.n_alerts], order[size.n_alerts :]
    parts = [drawn(rng, alerts, size.n_alerts // 2), *two_chances(rng, others, size.n_random)]
    return sample_of(rows.y, [listed(parts)])


def in_rounds(rows: Scored, size: Review, rng: np.random.Generator) -> CheckedSample:
    """Check what a model that learns puts first, and random rows, in four rounds."""
    scale = rows.score.std()
    model = rows.score + scale * rng.normal(size=len(rows.y))
    is_left, rounds = np.ones(len(rows.y), bool), []
    found = np.empty(0, int)
    for _ in range(4):
        order = np.flatnonzero(is_left)[np.argsort(-model[is_left])]
        n_top = size.n_alerts // 4
        parts = [by_rule(order[:n_top]), *two_chances(rng, order[n_top:], size.n_random // 4)]
        rounds.append(listed(parts))
        is_left[rounds[-1].rows] = False
        found = np.append(found, rounds[-1].rows[rows.y[rounds[-1].rows] == 1])
        if len(found):
            apart = np.abs(rows.score[:, None] - rows.score[found]).min(axis=1)
            model = 0.5 * model + 0.5 * rows.score - 0.5 * apart
    return sample_of(rows.y, rounds)


REVIEWS: dict[str, Callable[[Scored, Review, np.random.Generator], CheckedSample]] = {
    "alerts + random": alerts_and_random,
    "two strata": two_strata,
    "rounds": in_rounds,
}


# -- measuring ------------------------------------------------------------------------------------


def measures(y: np.ndarray, score: Floats, threshold: float) -> list[float]:
    """Return `MEASURES` of rows whose labels are all known."""
    called, n_rare = score > threshold, int(y.sum())
    if not n_rare:
        return [0.0, np.nan, np.nan, 0.0]
    hits = int(y[called].sum())
    area = average_precision(y, score) if n_rare < len(y) else 1.0
    return [hits / max(int(called.sum()), 1), hits / n_rare, area, float(n_rare)]


def compare(rows: Scored, kind: str, found: int, size: Review, n_reviews: int) -> dict[str, Any]:
    """Repeat a review, and compare its estimates with the truth."""
    threshold = float(np.sort(rows.score)[-size.n_alerts - 1])
    truth = np.array(measures(rows.y, rows.score, threshold))
    bounds = {method: [] for method in CheckMethod}
    naive, n_found = [], []
    for seed in range(n_reviews):
        sample = REVIEWS[kind](rows, size, np.random.default_rng([seed, found]))
        known = sample.y >= 0
        naive.append(measures(sample.y[known], rows.score[known], threshold))
        n_found.append(int((sample.y == 1).sum()))
        for method, kept in bounds.items():
            if method is not CheckMethod.STRATIFIED and seed >= n_reviews // 2:
                continue
            each = checked_measures(
                rows.score, sample, threshold, method=method, probability=rows.probability
            )
            kept.append([each.precision, each.recall, each.average_precision, each.n_rare])
    methods = {}
    for method, kept in bounds.items():
        value, low, high = np.moveaxis(np.array(kept, float), 2, 0)
        holds = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
        methods[str(method)] = {
            name: {
                "bias": float(value[:, k].mean() / truth[k] - 1.0),
                "error": float(value[:, k].std() / truth[k] / np.sqrt(len(value))),
                "coverage": float(holds[:, k].mean()),
                "width": float((high - low)[:, k].mean()),
            }
            for k, name in enumerate(MEASURES)
        }
    off = np.nanmean(naive, axis=0) / truth - 1.0
    return {
        "table": rows.name,
        "review": kind,
        "found": found,
        "mean_found": float(np.mean(n_found)),
        "alerts": size.n_alerts,
        "random": size.n_random,
        "rare": int(rows.y.sum()),
        "truth": dict(zip(MEASURES, truth.tolist(), strict=True)),
        "methods": methods,
        "naive_bias": dict(zip(MEASURES, off.tolist(), strict=True)),
    }


def widths(rows: Scored, n_reviews: int) -> list[dict[str, Any]]:
    """Measure how wide the interval of recall is by the number of random checks."""
    n_rare = int(rows.y.sum())
    threshold, found = float(np.sort(rows.score)[-n_rare - 1]), []
    for n in CHECKS:
        if n > 0.5 * (len(rows.y) - n_rare):
            continue
        each = [
            checked_measures(
                rows.score,
                alerts_and_random(rows, Review(n_rare, n), np.random.default_rng(seed)),
                threshold,
            ).recall
            for seed in range(n_reviews)
        ]
        half = float(np.mean([(one.high - one.low) / 2.0 for one in each if one is not None]))
        found.append({"table": rows.name, "checks": n, "half_width": half})
    return found


# -- what is printed ------------------------------------------------------------------------------


def coverage_table(rows: list[dict[str, Any]]) -> str:
    """Print bias and coverage by review, number found and measure; naive bias beside it."""
    lines = []
    for kind in REVIEWS:
        for found in FOUND:
            cells = [row for row in rows if (row["review"], row["found"]) == (kind, found)]
            for name in MEASURES if cells else ():
                own = [cell["methods"][str(CheckMethod.STRATIFIED)][name] for cell in cells]
                cover = 100.0 * np.array([one["coverage"] for one in own])
                bias = 100.0 * np.array([one["bias"] for one in own])
                naive = 100.0 * np.array([cell["naive_bias"][name] for cell in cells])
                lines.append(
                    (
                        kind, str(found), name, f"{bias.mean():+.1f}", f"{naive.mean():+.0f}",
                        f"{cover.mean():.1f} ({cover.min():.0f}-{cover.max():.0f})",
                    )
                )  # fmt: skip
    head = ("review", "found", "measure", "bias, %", "naive bias, %", "coverage, %")
    return table(head, lines)


def method_table(rows: list[dict[str, Any]]) -> str:
    """Print coverage and width of the three methods."""
    lines = []
    for method in CheckMethod:
        for name in MEASURES:
            own = [row["methods"][str(method)][name] for row in rows]
            truths = [row["truth"][name] for row in rows]
            width = np.mean([one["width"] / t for one, t in zip(own, truths, strict=True)])
            lines.append(
                (
                    str(method), name, f"{100 * np.mean([one['bias'] for one in own]):+.1f}",
                    f"{100 * np.mean([one['coverage'] for one in own]):.1f}", f"{width:.2f}",
                )
            )  # fmt: skip
    return table(("method", "measure", "bias, %", "coverage, %", "width / truth"), lines)


def width_table(rows: list[dict[str, Any]]) -> str:
    """Print half widths of recall by the number of random checks."""
    names = list(dict.fromkeys(row["table"] for row in rows))
    half = {(row["table"], row["checks"]): row["half_width"] for row in rows}
    lines = [
        (name, *(f"{half[name, n]:.2f}" if (name, n) in half else "" for n in CHECKS))
        for name in names
    ]
    return table(("table", *(f"{n:,} checks" for n in CHECKS)), lines)


def main(argv: list[str] | None = None) -> int:
    """Simulate, print the tables, write results/checked_rows.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checked_rows", description=__doc__)
    parser.add_argument("--reviews", type=int, default=30)
    parser.add_argument("--tables", nargs="+", default=[*REAL, *MADE])
    parser.add_argument("--json", metavar="FILE", help="default: results/checked_rows.json")
    args = parser.parse_args(argv)
    if args.reviews < 2:
        parser.error("--reviews must be at least 2")
    start = time.perf_counter()
    compared: list[dict[str, Any]] = []
    recall: list[dict[str, Any]] = []
    for name in args.tables:
        rows = scored(name)
        for found in FOUND:
            for kind in REVIEWS:
                size = size_of(rows, kind, found)
                if size is not None:
                    compared.append(compare(rows, kind, found, size, args.reviews))
        recall += widths(rows, min(args.reviews, 20))
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    print(coverage_table(compared), method_table(compared), width_table(recall), sep="\n\n")
    seconds = time.perf_counter() - start
    body = {"reviews": args.reviews, "seconds": seconds, "rows": compared, "recall": recall}
    print("written:", record.write("checked_rows", body, args.json))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
