"""How often chance alone moves a column, and how often a move is found (docs/decisions/0058).

``python -m benchmarks.drift_by_chance`` takes a quarter of an hour.
"""

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from benchmarks import markdown, record
from rareclass.metrics.column_drift import IndexByChance
from rareclass.model.columns import ERROR, ColumnDrift, PresentOrEmpty, TrainedColumn, _compared

FILES = 2000
N_COLUMNS = 13  # twelve and the scores
# Of the tests of a limit: pooled counts, and draws for each of them.
N_POOLED, DRAWS = 20, 40_000
LEVEL = ERROR / 39


def shares(weights: np.ndarray, unlike: float, empty: float) -> np.ndarray:
    """Shares of bins, then of cells unlike training, then of empty ones."""
    known = np.asarray(weights, float) / np.sum(weights) * (1.0 - unlike - empty)
    return np.append(known, [unlike, empty])


def words(power: float) -> np.ndarray:
    """Weights of the 20 commonest words and the others."""
    weights: np.ndarray = 1.0 / np.arange(1, 22) ** power
    return weights


COLUMNS = [
    shares(np.ones(10), 0.0004, 0.0),
    shares(np.ones(10), 0.0004, 0.04),
    shares(np.array([9, 1]), 0.0, 0.0),
    shares(np.array([999, 1]), 0.0, 0.0),
    shares(words(1.5), 0.03, 0.0),
    shares(words(1.5), 0.3, 0.1),
] * 2
SHAPES = {
    "2 equal bins": np.full(2, 0.5),
    "9 to 1": np.array([0.9, 0.1]),
    "49 to 1": np.array([0.98, 0.02]),
    "5 equal bins": np.full(5, 0.2),
    "tenths": np.full(10, 0.1),
    "21 equal bins": np.full(21, 1 / 21),
    "21 words, power 1": words(1.0) / words(1.0).sum(),
    "21 words, power 1.5": words(1.5) / words(1.5).sum(),
    "21 words, power 2": words(2.0) / words(2.0).sum(),
    "a word of 80 % and 20 of 1 %": np.array([0.8] + [0.01] * 20),
}


class Exceeded(NamedTuple):
    """How often the index of one distribution exceeds its limit, in multiples of `LEVEL`.

    `far` counts indices of .1 and more alone, which are what is called moved.
    """

    shape: str
    n_trained: int
    n_new: int
    ours: float
    ours_far: float
    chi_squared: float
    chi_squared_far: float


def compared(trained: np.ndarray, new: np.ndarray) -> ColumnDrift:
    """Compare counts of cells."""
    column = TrainedColumn("", "", "", PresentOrEmpty(), trained.astype(float), 0.0)
    return _compared(column, new.astype(float), 0.0, ERROR / N_COLUMNS)


def exceeded(shape: str, n_trained: int, n_new: int, draws: int) -> Exceeded:
    """Draw rows of both samples in bins, and again which of these are the new ones."""
    rng, found = np.random.default_rng(0), np.zeros(4)
    for _ in range(N_POOLED):
        both = rng.multinomial(n_trained + n_new, SHAPES[shape])
        both = both[both > 0]
        if len(both) < 2:
            continue
        new = rng.multivariate_hypergeometric(both, n_new, draws, method="marginals")
        index = indices(new, both - new)
        spread = 1.0 / n_new + 1.0 / n_trained
        limits = (
            IndexByChance.of(new[0], both - new[0], LEVEL).index,
            float(stats.chi2.isf(LEVEL, len(both) - 1)) * spread,
        )
        for place, limit in enumerate(limits):
            found[2 * place] += (index > limit).mean()
            found[2 * place + 1] += ((index > limit) & (index >= 0.1)).mean()
    return Exceeded(shape, n_trained, n_new, *(found / N_POOLED / LEVEL).round(3).tolist())


def indices(new: np.ndarray, trained: np.ndarray) -> np.ndarray:
    """Population stability index of each row of counts.

    >>> from rareclass.metrics.column_drift import population_stability_index
    >>> one = population_stability_index([90, 10], [50, 50])
    >>> bool(np.isclose(indices(np.array([[90, 10]]), np.array([[50, 50]])), one)[0])
    True
    """
    p, q = (
        (each + 0.5) / (each.sum(axis=1, keepdims=True) + 0.5 * each.shape[1])
        for each in (new, trained)
    )
    found: np.ndarray = ((p - q) * np.log(p / q)).sum(axis=1)
    return found


def false_alarms(n_trained: int, n_new: int, n_files: int) -> float:
    """Share of files like training in which any column has moved."""
    rng, n_moved = np.random.default_rng(0), 0
    for _ in range(n_files):
        found = (
            compared(rng.multinomial(n_trained, p), rng.multinomial(n_new, p)) for p in COLUMNS
        )
        n_moved += any([each.verdict != "steady" for each in found])
    return n_moved / n_files


def moves_found(shift: float, n_new: int, n_files: int) -> float:
    """Share of files in which a normal number that moved by `shift` deviations is found."""
    rng, moved = np.random.default_rng(0), NormalDist(shift)
    edges = [NormalDist().inv_cdf(k / 10) for k in range(1, 10)]
    now = np.diff([0.0, *(moved.cdf(edge) for edge in edges), 1.0, 1.0, 1.0])
    before = np.append(np.full(10, 500.0), [0.0, 0.0])
    found = (compared(before, rng.multinomial(n_new, now)) for _ in range(n_files))
    return sum(each.verdict != "steady" for each in found) / n_files


def page(result: dict[str, Any]) -> str:
    """Return both rates by the number of new rows, and the limits by the shape of the bins."""
    numbers = ("20", "50", "100", "1000", "10000")
    rates = [
        [name, *("" if n not in rate else f"{rate[n]:.3f}" for n in numbers)]
        for name, rate in result.items()
        if name.startswith(("called", "found"))
    ]
    cells = [Exceeded(**cell) for cell in result["cells"]]
    limits = []
    for shape in SHAPES:
        own = [cell[3:] for cell in cells if cell.shape == shape]
        limits.append([shape, *(f"{most:.2f}" for most in np.max(own, axis=0))])
    header = ["exceeded, times its level", "the limit", "from .1 on", "chi-squared", "from .1 on"]
    return "\n\n".join(
        [
            f"Shares of {result['files']:,} files by the number of new rows: like training, where "
            "any of 12 columns is called moved (at most .01 was asked); and where the mean of a "
            "normal number moved by so many standard deviations, of 5,000 training rows.",
            markdown.table(["share of files", *(f"{int(n):,}" for n in numbers)], rates),
            f"How often two samples of one distribution exceed the limit of a level of "
            f"{result['level']:.5f}, in multiples of it, by the shares of bins: the most over 200 "
            "to 5,000 training and 20 to 10,000 new rows, for all indices and for those from .1 "
            "on, which alone are called moved. Chi-squared is the usual limit.",
            markdown.table(header, limits),
        ]
    )


def main(n_files: int = FILES, draws: int = DRAWS) -> None:
    """Print the tables, and write all of them."""
    result: dict[str, Any] = {"files": n_files, "level": LEVEL}
    for n_trained in (200, 5000):
        rates = {str(n): false_alarms(n_trained, n, n_files) for n in (20, 100, 1000, 10_000)}
        result[f"called moved, {n_trained} training rows"] = rates
        print(f"{n_trained} training rows, called moved by new rows: {rates}")
    for shift in (0.25, 0.5, 1.0):
        rates = {str(n): moves_found(shift, n, n_files) for n in (20, 50, 100, 1000)}
        result[f"found, moved by {shift} deviations"] = rates
        print(f"moved by {shift} deviations, found by new rows: {rates}")
    cells = [
        exceeded(shape, n_trained, n_new, draws)
        for shape in SHAPES
        for n_trained in (200, 500, 1000, 5000)
        for n_new in (20, 50, 100, 300, 1000, 10_000)
    ]
    for name in ("ours", "ours_far", "chi_squared", "chi_squared_far"):
        print(f"times its level, at most: {name}", max(cells, key=lambda each: getattr(each, name)))
    print(
        "written:",
        record.write("drift_by_chance", result | {"cells": [each._asdict() for each in cells]}),
    )


if __name__ == "__main__":
    main()
