"""How often intervals hold the truth: `python -m benchmarks.interval_coverage [--samples N]`.

Samples are drawn from populations whose AUC, average precision and precision at k are known, and
each interval is asked whether it holds that truth. A nominal 95 % interval that does so in 80 % of
samples makes a lucky method look proven; one that always does is wider than the evidence asks for.
With few rare rows the usual intervals fail, so the library's stand beside what was not chosen:

- formula: DeLong on the logit scale for AUC; the logit interval of as many yes-or-no trials as
  there are rare rows for average precision (Boyd, Eng and Page 2013); Wilson's interval of k
  trials for precision at k. The first two have no width at a value of 1; there they get the exact
  bound of that many trials, which is more than they offer by themselves.
- bootstrap: percentiles of the measure over resamples of the rows, each class by itself.

All see the same samples. Majority scores are normal, rare scores normal around other centres;
both class sizes are fixed, 100 rows to each rare one.
"""

import argparse
import math
import sys
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks import markdown, record
from rareclass import metrics
from rareclass.metrics.areas import rare_above
from rareclass.metrics.intervals import normal_quantile, wilson_interval
from rareclass.metrics.scored_classes import RareCells, cells_of

FloatArray = NDArray[np.float64]
Bounds = tuple[float, float]

LEVEL = 0.95
# Rare rows -> samples, as a part of --samples: large samples are slow and vary less between sizes.
RARE_ROWS = {5: 1.0, 20: 1.0, 100: 0.5, 300: 0.25}
MAJORITY_PER_RARE = 100
DEPTHS = (0.5, 1.0, 3.0)  # k as a multiple of the number m of rare rows, rounded up
MEASURES = ("AUC", "average precision", *(f"precision at k = {depth:g} m" for depth in DEPTHS))
METHODS = ("rareclass", "formula", "bootstrap")


class Population(NamedTuple):
    """Majority scores N(0, 1); rare scores N(c, 1), c any of `centres` with the same chance."""

    name: str
    centres: tuple[float, ...]
    rounded: bool = False  # to whole numbers: most rows are tied

    def draw(self, n_rare: int, rng: np.random.Generator) -> FloatArray:
        """Scores of one sample, the rare rows first."""
        scores = rng.normal(size=n_rare * (1 + MAJORITY_PER_RARE))
        scores[:n_rare] += rng.choice(self.centres, n_rare)
        return np.round(scores) if self.rounded else scores

    def truths(self, n_rare: int) -> list[float]:
        """Each of `MEASURES` on endless rows with this share of rare ones.

        Sums over bins of score: the rounded scores' own, else so fine that the error is far
        below any width.
        """
        edges = np.arange(-10.5, 16.0, 1.0 if self.rounded else 1e-4)
        n_majority = n_rare * MAJORITY_PER_RARE
        rare = n_rare * np.mean([special.ndtr(c - edges) for c in self.centres], axis=0)
        majority = n_majority * special.ndtr(-edges)
        in_bin = (rare[:-1] - rare[1:]) / n_rare
        auc = 1.0 - in_bin @ (majority[:-1] + majority[1:]) / (2.0 * n_majority)
        precision = rare / (rare + majority)
        depths = [_depth(n_rare, depth) for depth in DEPTHS]
        # Within a bin the rows are tied, so the rare weight grows in proportion: linear.
        hits = np.interp(depths, (rare + majority)[::-1], rare[::-1])
        return [float(auc), float(in_bin @ precision[:-1]), *(hits / depths).tolist()]


POPULATIONS = (
    *(Population(f"{c:g} apart", (c,)) for c in (0.5, 1.5, 2.5, 3.5, 5.0)),
    Population("half 6 apart, half not", (0.0, 6.0)),
    Population("2 apart, rounded", (2.0,), rounded=True),
)


def library_intervals(y: NDArray[np.bool_], scores: FloatArray) -> list[metrics.Interval]:
    """One interval for each of `MEASURES`."""
    depths = [_depth(int(y.sum()), depth) for depth in DEPTHS]
    return [
        metrics.interval("roc_auc", y, scores, level=LEVEL),
        metrics.interval("average_precision", y, scores, level=LEVEL),
        *(metrics.interval("precision_at_k", y, scores, level=LEVEL, k=k) for k in depths),
    ]


def formula_intervals(cells: RareCells, values: list[float]) -> list[Bounds]:
    """What a textbook offers for each of `MEASURES`, given their values in the sample."""
    n_rare, n_majority = cells.n_rare, cells.n_majority
    auc, precision, *at_depths = values
    majority = np.concatenate([cells.gaps, cells.tied])
    below = cells.majority_below() / n_majority
    spread = cells.rare @ (below - auc) ** 2 / n_rare / (n_rare - 1)
    spread += majority @ (rare_above(cells) - auc) ** 2 / n_majority / (n_majority - 1)
    depths = [_depth(int(n_rare), depth) for depth in DEPTHS]
    return [
        _logit_bounds(auc, spread, n_rare),
        _logit_bounds(precision, precision * (1.0 - precision) / n_rare, n_rare),
        *(wilson_interval(p, k, LEVEL)[1:] for p, k in zip(at_depths, depths, strict=True)),
    ]


def bootstrap_measures(
    cells: RareCells, resamples: int, rng: np.random.Generator
) -> list[FloatArray]:
    """Each of `MEASURES`: first of the sample itself, then of its resamples.

    Resampled is the number of rows in each cell, which is the same as resampling rows.
    """
    n_rare, n_majority = int(cells.n_rare), int(cells.n_majority)
    d = cells.rare.size
    others = np.concatenate([cells.gaps, cells.tied])
    rare = np.vstack([cells.rare, rng.multinomial(n_rare, cells.rare / n_rare, resamples)])
    majority = np.vstack([others, rng.multinomial(n_majority, others / n_majority, resamples)])
    gaps, tied = majority[:, : d + 1], majority[:, d + 1 :]
    below = np.cumsum(gaps[:, :-1] + tied, axis=1) - tied / 2.0
    rare_from = np.cumsum(rare[:, ::-1], axis=1)[:, ::-1]
    majority_from = np.cumsum((tied + gaps[:, 1:])[:, ::-1], axis=1)[:, ::-1]
    called = rare_from + majority_from
    precision = rare_from / np.maximum(called, 1.0)
    measures = [
        np.sum(rare * below, axis=1) / n_rare / n_majority,
        np.sum(rare * precision, axis=1) / n_rare,
    ]
    group = rare + tied
    for depth in DEPTHS:
        k = _depth(n_rare, depth)
        taken = np.clip((k - (called - group)) / np.maximum(group, 1.0), 0.0, 1.0)
        measures.append(np.sum(rare * taken, axis=1) / k)
    return measures


def sample_bounds(
    population: Population, n_rare: int, resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Bounds from one sample; shape (methods, measures, 2)."""
    scores = population.draw(n_rare, rng)
    y = np.arange(scores.size) < n_rare
    library = library_intervals(y, scores)
    values = [interval.value for interval in library]
    cells = cells_of(y, scores)
    resampled = bootstrap_measures(cells, resamples, rng)
    # The bootstrap computes the measures by itself, for many resamples at once.
    if not np.allclose([column[0] for column in resampled], values, rtol=1e-9):
        raise RuntimeError("the bootstrap's measures differ from the library's")
    tails = [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0]
    return np.array(
        [
            [(interval.low, interval.high) for interval in library],
            formula_intervals(cells, values),
            [np.quantile(column[1:], tails) for column in resampled],
        ]
    )


def measure(population: Population, n_rare: int, samples: int, resamples: int) -> dict[str, Any]:
    """Coverage and mean width of every interval over `samples` samples."""
    # A generator of its own: a figure does not depend on which others are computed.
    rng = np.random.default_rng([n_rare, POPULATIONS.index(population)])
    bounds = np.array([sample_bounds(population, n_rare, resamples, rng) for _ in range(samples)])
    truths = population.truths(n_rare)
    low, high = bounds[..., 0], bounds[..., 1]
    below, above = (truths < low).mean(axis=0), (truths > high).mean(axis=0)
    of = {"coverage": 1.0 - below - above, "truth_below": below, "truth_above": above}
    of["mean_width"] = (high - low).mean(axis=0)
    results = {
        name: {
            "truth": truths[i],
            **{method: {k: v[j, i] for k, v in of.items()} for j, method in enumerate(METHODS)},
        }
        for i, name in enumerate(MEASURES)
    }
    return {"rare_rows": n_rare, "scores": population.name, "samples": samples, **results}


def _logit_bounds(value: float, variance: float, n_trials: float) -> Bounds:
    if value >= 1.0:
        return ((1.0 - LEVEL) / 2.0) ** (1.0 / n_trials), 1.0
    reach = normal_quantile(LEVEL) * math.sqrt(variance) / (value * (1.0 - value))
    middle = special.logit(value)
    return float(special.expit(middle - reach)), float(special.expit(middle + reach))


def _depth(n_rare: int, multiple: float) -> int:
    return math.ceil(n_rare * multiple)


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: a line per measure and number of rare rows, the methods side by side.

    Coverage in % is the mean over the score distributions and, in brackets, the lowest and the
    highest; w is the mean width.
    """
    heads = ["measure", "rare rows m", *METHODS, "rareclass lowest at"]
    lines = []
    for name in MEASURES:
        for n_rare in RARE_ROWS:
            found = [row for row in rows if row["rare_rows"] == n_rare]
            line = [name, str(n_rare)]
            for method in METHODS:
                cover = np.array([100.0 * row[name][method]["coverage"] for row in found])
                width = np.mean([row[name][method]["mean_width"] for row in found])
                spread = f"({cover.min():.1f}-{cover.max():.1f})"
                line.append(f"{cover.mean():.1f} {spread} w {width:.3f}")
                if method == "rareclass":
                    lowest = found[int(cover.argmin())]["scores"]
            lines.append([*line, lowest])
    return markdown.table(heads, lines)


def simulate(samples: int, resamples: int) -> list[dict[str, Any]]:
    """Every number of rare rows with every population."""
    rows = []
    for n_rare, part in RARE_ROWS.items():
        own = max(1, round(samples * part))
        rows += [measure(population, n_rare, own, resamples) for population in POPULATIONS]
        error = 100.0 * math.sqrt(LEVEL * (1.0 - LEVEL) / own)
        print(
            f"{n_rare} rare rows: {own} samples of each of {len(POPULATIONS)} distributions, "
            f"a single coverage has standard error {error:.1f}",
            flush=True,
        )
    return rows


def main(argv: list[str] | None = None) -> int:
    """Simulate, print the table, write results/interval_coverage.json."""
    prog = "python -m benchmarks.interval_coverage"
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    parser.add_argument("--samples", type=int, default=800, help="fewer at 100 and 300 rows")
    parser.add_argument("--resamples", type=int, default=300, help="of the bootstrap")
    parser.add_argument("--json", metavar="FILE", help="default: results/interval_coverage.json")
    args = parser.parse_args(argv)
    start = time.perf_counter()
    rows = simulate(args.samples, args.resamples)
    print(f"Nominal {LEVEL:.0%} intervals: mean coverage in % (lowest-highest), w mean width")
    print(table(rows))
    seconds = time.perf_counter() - start
    parameters = {k: v for k, v in vars(args).items() if k != "json"}
    body = {"parameters": parameters, "level": LEVEL, "seconds": seconds, "rows": rows}
    print("written:", record.write("interval_coverage", body, args.json))
    return 0


if __name__ == "__main__":
    sys.exit(main())
