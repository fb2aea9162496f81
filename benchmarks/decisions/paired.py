"""Paired tests of two score columns: `python -m benchmarks.decisions.paired [--json FILE]`.

Samples of two rankings are drawn whose true AUC, average precision, precision at k and expected
cost are known. Each test is asked two things: does its 95 % interval hold the true difference, and
does it leave out 0? Where the rankings are equally good the second is the size of the test, where
they are not its power. Side by side, on the same samples:

- rareclass: `rareclass.metrics.paired_difference`
- Zou, Student: the two intervals that it holds, each by itself
- percentile: of the paired stratified bootstrap (for AUC and cost, which have none: the normal
  interval of DeLong's, or the rows', variance)
- unpaired: the intervals of both columns put together as if they were of different rows

Majority scores of both columns are standard normal with a given correlation, rare ones the same
and shifted; class sizes are fixed, 100 rows to each rare one, 30 where there are 100 rare. k is the
number of rare rows. Cost: 1 for a false alert, 20 for a rare row missed, threshold 2.

Then seconds: a DeLong test of two columns of 10 million rows beside one AUC, and bootstraps of
average precision with a million rows.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks import record
from benchmarks.markdown import table
from rareclass.metrics import average_precision, paired_difference, roc_auc
from rareclass.metrics.bootstrap import all_items, bootstrap
from rareclass.metrics.interval import Interval, difference_interval, normal_quantile
from rareclass.metrics.paired_evidence import EVIDENCE, Draws, PairEvidence
from rareclass.metrics.scored_classes import ScoredPair, split_pair

LEVEL = 0.95
GOAL_SIZE = 0.05 + 0.015
# Rare rows -> other rows to each: fewer where there are many, for time.
RARE_ROWS = {5: 100, 20: 100, 100: 30}
REPLICATES = 200
CUT, COST_MISSED = 2.0, 20.0
METHODS = ("rareclass", "Zou", "Student", "percentile", "unpaired")
MEASURES = ("roc_auc", "average_precision", "precision_at_k", "expected_cost")


class Population(NamedTuple):
    """Two rankings of the same rows."""

    shifts: tuple[float, float]  # how far rare rows score above the others in each
    correlation: float  # of both scores of a row, in each class
    rounded: bool = False  # to whole numbers: most rows are tied

    @property
    def is_null(self) -> bool:
        """Whether both rankings are equally good."""
        return self.shifts[0] == self.shifts[1]

    @property
    def name(self) -> str:
        """In words."""
        apart = " and ".join(f"{shift:g}" for shift in self.shifts)
        return f"{apart}, correlation {self.correlation:g}{', rounded' if self.rounded else ''}"

    def draw(self, n_rare: int, rng: np.random.Generator) -> list[NDArray[np.float64]]:
        """Both columns of a sample, the rare rows first."""
        n = n_rare * (1 + RARE_ROWS[n_rare])
        common, rare = rng.normal(size=n), np.arange(n) < n_rare
        own = np.sqrt(1.0 - self.correlation) * rng.normal(size=(2, n))
        columns = [
            np.sqrt(self.correlation) * common + each + shift * rare
            for each, shift in zip(own, self.shifts, strict=True)
        ]
        return [np.round(column) if self.rounded else column for column in columns]

    def truths(self, n_rare: int) -> dict[str, float]:
        """Difference of each of `MEASURES` on endless rows with this share of rare ones."""
        a, b = (self._values(shift, n_rare) for shift in self.shifts)
        return {name: a[name] - b[name] for name in MEASURES}

    def _values(self, shift: float, n_rare: int) -> dict[str, float]:
        edges = np.arange(-10.5, 16.0, 1.0 if self.rounded else 1e-3)
        n_majority = n_rare * RARE_ROWS[n_rare]
        rare, majority = n_rare * special.ndtr(shift - edges), n_majority * special.ndtr(-edges)
        in_bin = (rare[:-1] - rare[1:]) / n_rare
        called = rare + majority
        precision = rare / called
        if not self.rounded:
            precision[:-1] = (precision[:-1] + precision[1:]) / 2.0
        cut = CUT + 0.5 if self.rounded else CUT  # 2 itself is not above it
        missed = n_rare * special.ndtr(cut - shift) * COST_MISSED
        return {
            "roc_auc": 1.0 - in_bin @ (majority[:-1] + majority[1:]) / (2.0 * n_majority),
            "average_precision": in_bin @ precision[:-1],
            "precision_at_k": float(np.interp(n_rare, called[::-1], rare[::-1])) / n_rare,
            "expected_cost": (missed + n_majority * special.ndtr(-cut)) / (n_rare + n_majority),
        }


_NULL = [(shift, shift) for shift in (0.5, 1.5, 2.5, 3.5)]
_APART = [(1.5, 1.0), (2.5, 1.5), (3.5, 2.5), (5.0, 3.5)]
POPULATIONS = [
    *(Population(shifts, r) for shifts in _NULL for r in (0.5, 0.9)),
    *(Population((2.0, 2.0), r, rounded=True) for r in (0.5, 0.9)),
    *(Population(shifts, r) for shifts in _APART for r in (0.5, 0.9)),
]


def intervals(pair: ScoredPair, measure: str, n_rare: int, seeds: Any) -> list[Interval]:
    """One for each of `METHODS`."""
    options: dict[str, Any] = {}
    if measure == "precision_at_k":
        options = {"k": n_rare}
    if measure == "expected_cost":
        options = {"threshold": CUT, "cost_fn": COST_MISSED}
    evidence = EVIDENCE[measure](pair, Draws(seeds, n_jobs=1), **options)
    a, b = evidence.a(LEVEL), evidence.b(LEVEL)
    zou = difference_interval(a, b, evidence.correlation)
    n = evidence.n_trials
    t = float(special.stdtrit(n - 1.0, (1.0 + LEVEL) / 2.0)) * np.sqrt(n / (n - 1.0))
    return [
        evidence.interval(LEVEL),
        zou,
        _around(zou.value, t * evidence.deviation),
        _percentile(pair, measure, n_rare, seeds, evidence),
        difference_interval(a, b, 0.0),
    ]


def _around(value: float, reach: float) -> Interval:
    return Interval(value, value - reach, value + reach)


def _percentile(
    pair: ScoredPair, measure: str, n_rare: int, seeds: Any, evidence: PairEvidence
) -> Interval:
    difference = evidence.a(LEVEL).value - evidence.b(LEVEL).value
    if measure in ("roc_auc", "expected_cost"):
        return _around(difference, normal_quantile(LEVEL) * evidence.deviation)
    from rareclass.metrics import _bootstrap_jit as jit

    code = jit.AVERAGE_PRECISION if measure == "average_precision" else jit.PRECISION_AT_K
    share = 1.0 / (1 + RARE_ROWS[n_rare])
    drawn = bootstrap(all_items(pair), code, share, seeds, n_jobs=1)
    low, high = np.quantile(drawn[:, 0] - drawn[:, 1], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(difference, float(low), float(high))


def simulated(population: Population, n_rare: int, samples: int, seed: int) -> list[dict[str, Any]]:
    """How often each method holds the truth and leaves out 0; one row a measure."""
    number = POPULATIONS.index(population)
    rng = np.random.default_rng([seed, n_rare, number])
    y = np.arange(n_rare * (1 + RARE_ROWS[n_rare])) < n_rare
    found: dict[str, list] = {name: [] for name in MEASURES}
    for _ in range(samples):
        pair = split_pair(y, *population.draw(n_rare, rng))
        seeds = rng.integers(2**63, size=REPLICATES).astype(np.uint64)
        for name in MEASURES:
            found[name].append([each[1:] for each in intervals(pair, name, n_rare, seeds)])
    truths = population.truths(n_rare)
    rows = []
    for name in MEASURES:
        low, high = np.moveaxis(np.array(found[name]), -1, 0)
        # The last digits of a bound that meets the truth may fall on either side of it.
        slack = 1e-12
        holds = (low <= truths[name] + slack) & (truths[name] - slack <= high)
        leaves_out = (low > slack) | (high < -slack)
        of = {"holds": holds, "leaves_out_0": leaves_out, "width": high - low}
        row = {"rare_rows": n_rare, "population": population.name, "null": population.is_null}
        row |= {"measure": name, "samples": samples, "truth": truths[name]}
        for i, method in enumerate(METHODS):
            row[method] = {key: float(value[:, i].mean()) for key, value in of.items()}
        rows.append(row)
    return rows


def speeds(n_auc: int, n_bootstrap: int, repeats: int = 6) -> list[dict[str, Any]]:
    """Seconds of a test beside one AUC, and of bootstraps; the least of several calls each."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for share in (0.001, 0.1):
        y = rng.random(n_auc) < share
        y[:2] = True, False
        a, b = (rng.normal(size=n_auc) + y for _ in range(2))
        few = slice(0, min(n_auc, 300_000))
        roc_auc(y[few], a[few]), paired_difference(y[few], a[few], b[few])
        one, two = _in_turns(
            repeats,
            lambda y=y, a=a: roc_auc(y, a),
            lambda y=y, a=a, b=b: paired_difference(y, a, b),
        )
        rows.append({"rows": n_auc, "rare_share": share, "auc": one, "test": two})
    y = np.arange(n_bootstrap) < 1000
    common = rng.normal(size=n_bootstrap)
    a, b = (
        np.sqrt(0.5) * common + np.sqrt(0.5) * rng.normal(size=n_bootstrap) + 2.0 * y
        for _ in range(2)
    )
    seeds = np.random.SeedSequence(0).generate_state(2000, np.uint64)
    groups = rng.integers(n_bootstrap // 20, size=n_bootstrap)
    for name, other, of in (("one column", a, None), ("two", b, None), ("two, groups", b, groups)):
        strata = all_items(split_pair(y, a, other, None, of))
        start = time.perf_counter()
        bootstrap(strata, 0, 0.0, seeds)
        seconds = time.perf_counter() - start
        items = sum(items.mass.size for items in strata.items)
        rows.append({"rows": n_bootstrap, "columns": name, "items": items, "bootstrap": seconds})
    value = average_precision(y, a)
    rows[-1]["average_precision"] = value
    return rows


def _in_turns(repeats: int, *calls: Any) -> list[float]:
    """The least seconds of each call; they take turns, so that a busy machine favours none."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for own, call in zip(seconds, calls, strict=True):
            start = time.perf_counter()
            call()
            own.append(time.perf_counter() - start)
    return [min(each) for each in seconds]


def measure(
    draws: int = 300, seed: int = 0, auc_rows: int = 10_000_000, bootstrap_rows: int = 1_000_000
) -> dict[str, Any]:
    """Size, coverage and power by population; seconds unless `auc_rows` is 0."""
    rows = []
    for n_rare in RARE_ROWS:
        start = time.perf_counter()
        for population in POPULATIONS:
            rows += simulated(population, n_rare, draws, seed)
        seconds = time.perf_counter() - start
        print(f"{n_rare} rare rows: {seconds:.0f} s", file=sys.stderr, flush=True)
    parameters = {"draws": draws, "seed": seed, "replicates": REPLICATES}
    timed = speeds(auc_rows, bootstrap_rows) if auc_rows else []
    return {"parameters": parameters, "level": LEVEL, "rows": rows, "speeds": timed}


def render(result: dict[str, Any]) -> str:
    """The tables, in Markdown."""
    rows = result["rows"]
    null = [row for row in rows if row["null"]]
    apart = [row for row in rows if not row["null"]]
    n_null = len({row["population"] for row in null})
    parts = [
        f"Size: equally good rankings called different at 5 %, in % of samples, mean of {n_null} "
        "populations (highest)",
        _by_method(null, "leaves_out_0", max),
        "Coverage: true difference inside the 95 % interval, in %, mean of all populations "
        "(lowest)",
        _by_method(rows, "holds", min),
        "Power: different rankings called different, in %, and mean width of the interval",
        _power(apart),
    ]
    if result["speeds"]:
        parts += ["Seconds", _seconds(result["speeds"])]
    return "\n\n".join(parts)


def _by_method(rows: Sequence[dict[str, Any]], key: str, worst: Any) -> str:
    lines = []
    for name in MEASURES:
        for n_rare in RARE_ROWS:
            own = [r for r in rows if r["measure"] == name and r["rare_rows"] == n_rare]
            line = [name, str(n_rare)]
            for method in METHODS:
                values = [100.0 * row[method][key] for row in own]
                line.append(f"{np.mean(values):.1f} ({worst(values):.1f})")
            lines.append(line)
    return table(["measure", "rare rows", *METHODS], lines)


def _power(rows: Sequence[dict[str, Any]]) -> str:
    lines = []
    for name in MEASURES:
        for population in dict.fromkeys(row["population"] for row in rows):
            line = [name, population]
            for n_rare in RARE_ROWS:
                (row,) = (
                    r
                    for r in rows
                    if (r["measure"], r["population"], r["rare_rows"]) == (name, population, n_rare)
                )
                for method in ("rareclass", "unpaired"):
                    found = row[method]
                    line.append(f"{100.0 * found['leaves_out_0']:.0f} w {found['width']:.3f}")
            lines.append(line)
    heads = [f"{n} rare: {how}" for n in RARE_ROWS for how in ("paired", "unpaired")]
    return table(["measure", "shifts", *heads], lines)


def _seconds(rows: Sequence[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        if "test" in row:
            what = f"AUC test of two columns, {row['rows']:,} rows, {row['rare_share']:.1%} rare"
            beside = f"{row['auc']:.2f} for one AUC: {row['test'] / row['auc']:.1f} times"
            lines.append([what, f"{row['test']:.2f}", beside])
        else:
            what = f"bootstrap of AP, 2,000 replicates, {row['rows']:,} rows, {row['columns']}"
            lines.append([what, f"{row['bootstrap']:.1f}", f"{row['items']:,} items"])
    return table(["what", "seconds", "beside"], lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write results/decisions_paired.json."""
    prog = "python -m benchmarks.decisions.paired"
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    parser.add_argument("--draws", type=int, default=300, help="samples of each population")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-speeds", action="store_true")
    parser.add_argument("--json", metavar="FILE", help="default: results/decisions_paired.json")
    args = parser.parse_args(argv)
    result = measure(args.draws, args.seed, 0 if args.no_speeds else 10_000_000)
    print(render(result))
    print("written:", record.write("decisions_paired", result, args.json))
    return 0


if __name__ == "__main__":
    sys.exit(main())
