"""Paired tests of two score columns: `python -m benchmarks.decisions.paired [--json FILE]`.

Samples of two rankings are drawn whose true AUC, average precision, precision at k and expected
cost are known. Each test is asked two things: does its 95 % interval hold the true difference, and
does it leave out 0? Where the rankings are equally good the second is the size of the test, where
they are not its power. Side by side, on the same samples:

- rareclass: `rareclass.metrics.paired_difference`
- Zou, Student: the two intervals that it holds, each by itself
- unpaired: the intervals of both columns put together as if they were of different rows

Majority scores of both columns are standard normal with a given correlation, rare ones the same
and shifted; class sizes are fixed, 100 rows to each rare one, 30 where there are 100 rare. k is the
number of rare rows. Cost: 1 for a false alert, 20 for a rare row missed, threshold 2.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.decisions import command
from benchmarks.markdown import table
from benchmarks.pages.page import chosen
from rareclass.metrics.intervals import Interval, difference_interval
from rareclass.metrics.paired_evidence import EVIDENCE
from rareclass.metrics.scored_classes import ScoredPair, split_pair

LEVEL = 0.95
# Rare rows -> other rows to each: fewer where there are many, for time.
RARE_ROWS = {5: 100, 20: 100, 100: 30}
CUT, COST_MISSED = 2.0, 20.0
METHODS = ("rareclass", "Zou", "Student", "unpaired")
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


def intervals(pair: ScoredPair, measure: str, n_rare: int) -> list[Interval]:
    """One for each of `METHODS`."""
    options: dict[str, Any] = {}
    if measure == "precision_at_k":
        options = {"k": n_rare}
    if measure == "expected_cost":
        options = {"threshold": CUT, "cost_fn": COST_MISSED}
    evidence = EVIDENCE[measure](pair, **options)
    a, b = evidence.a(LEVEL), evidence.b(LEVEL)
    zou = difference_interval(a, b, evidence.correlation)
    n = evidence.n_trials
    t = float(special.stdtrit(n - 1.0, (1.0 + LEVEL) / 2.0)) * np.sqrt(n / (n - 1.0))
    return [
        evidence.interval(LEVEL),
        zou,
        _around(zou.value, t * evidence.deviation),
        difference_interval(a, b, 0.0),
    ]


def _around(value: float, reach: float) -> Interval:
    return Interval(value, value - reach, value + reach)


def simulated(population: Population, n_rare: int, samples: int, seed: int) -> list[dict[str, Any]]:
    """How often each method holds the truth and leaves out 0; one row a measure."""
    number = POPULATIONS.index(population)
    rng = np.random.default_rng([seed, n_rare, number])
    y = np.arange(n_rare * (1 + RARE_ROWS[n_rare])) < n_rare
    found: dict[str, list] = {name: [] for name in MEASURES}
    for _ in range(samples):
        pair = split_pair(y, *population.draw(n_rare, rng))
        for name in MEASURES:
            found[name].append([each[1:] for each in intervals(pair, name, n_rare)])
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


def measure(draws: int = 300, seed: int = 0) -> dict[str, Any]:
    """Size, coverage and power by population."""
    rows = []
    for n_rare in RARE_ROWS:
        start = time.perf_counter()
        for population in POPULATIONS:
            rows += simulated(population, n_rare, draws, seed)
        seconds = time.perf_counter() - start
        print(f"{n_rare} rare rows: {seconds:.0f} s", file=sys.stderr, flush=True)
    return {"parameters": {"draws": draws, "seed": seed}, "level": LEVEL, "rows": rows}


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
    return "\n\n".join(parts)


def _by_method(rows: Sequence[dict[str, Any]], key: str, worst: Any) -> str:
    lines = []
    for name in MEASURES:
        for n_rare in RARE_ROWS:
            own = chosen(rows, measure=name, rare_rows=n_rare)
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
                (row,) = chosen(rows, measure=name, population=population, rare_rows=n_rare)
                for method in ("rareclass", "unpaired"):
                    found = row[method]
                    line.append(f"{100.0 * found['leaves_out_0']:.0f} w {found['width']:.3f}")
            lines.append(line)
    heads = [f"{n} rare: {how}" for n in RARE_ROWS for how in ("paired", "unpaired")]
    return table(["measure", "shifts", *heads], lines)


if __name__ == "__main__":
    sys.exit(command("decisions_paired", __doc__, measure, render, 300))
