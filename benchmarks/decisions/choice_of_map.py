"""Which map from scores to probabilities, and how many rare rows it needs: simulated scores.

Scores of both classes are drawn from ten pairs of distributions whose ratio of densities is known,
and with it the best probabilities there are. A map is learned on 5, 20, 100 or 1,000 rare rows and
50 others to each (20,000 at most), and judged on 2,000 and 20,000 fresh rows: by how much log loss,
in nats a rare row, it is worse than the best probabilities.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.special import expit, log_expit, logit
from sklearn.isotonic import IsotonicRegression

from benchmarks.markdown import table
from rareclass.decide.calibration import METHODS, BetaMap, Calibration, IsotonicMap, PooledMap
from rareclass.decide.calibration.calibration_map import read_score_levels

RARE = (5, 20, 100, 1000)
OTHERS, MOST_OTHERS = 50, 20_000
FRESH_RARE, FRESH_OTHERS = 2_000, 20_000
SHARE_OF_DRAWS = {5: 1.0, 20: 0.6, 100: 0.2, 1000: 0.05}

Draw = Callable[[np.random.Generator, int], np.ndarray]


class Shape(NamedTuple):
    """Scores of rare rows and of others, and the logarithm of the ratio of their densities."""

    rare: Draw
    others: Draw
    log_ratio: Callable[[np.ndarray], np.ndarray]


def of_distributions(rare: Any, others: Any) -> Shape:
    """Scores drawn from two continuous distributions of scipy."""
    return Shape(
        lambda rng, n: rare.rvs(n, random_state=rng),
        lambda rng, n: others.rvs(n, random_state=rng),
        lambda s: rare.logpdf(s) - others.logpdf(s),
    )


def boosted() -> Shape:
    """Probabilities that are three times too sure of themselves."""
    plain = of_distributions(stats.norm(2, 1), stats.norm(0, 1))
    return Shape(
        lambda rng, n: expit(3 * plain.rare(rng, n) - 2),
        lambda rng, n: expit(3 * plain.others(rng, n) - 2),
        lambda s: plain.log_ratio((logit(s) + 2) / 3),
    )


def votes() -> Shape:
    """Shares of 100 trees."""
    rare, others = stats.betabinom(100, 3, 3), stats.betabinom(100, 0.8, 6)
    return Shape(
        lambda rng, n: rare.rvs(n, random_state=rng) / 100,
        lambda rng, n: others.rvs(n, random_state=rng) / 100,
        lambda s: rare.logpmf(np.round(100 * s)) - others.logpmf(np.round(100 * s)),
    )


def hidden() -> Shape:
    """Two in five rare rows score as the others do."""
    others, seen = stats.norm(0, 1), stats.norm(4, 1)
    return Shape(
        lambda rng, n: np.where(
            rng.random(n) < 0.4, rng.normal(0, 1, n), seen.rvs(n, random_state=rng)
        ),
        lambda rng, n: rng.normal(0, 1, n),
        lambda s: np.logaddexp(np.log(0.4), np.log(0.6) + seen.logpdf(s) - others.logpdf(s)),
    )


SHAPES: dict[str, Shape] = {
    "normal": of_distributions(stats.norm(2, 1), stats.norm(0, 1)),
    "wide": of_distributions(stats.norm(2, 1.8), stats.norm(0, 1)),
    "narrow": of_distributions(stats.norm(2, 0.6), stats.norm(0, 1)),
    "weak": of_distributions(stats.norm(0.7, 1), stats.norm(0, 1)),
    "apart": of_distributions(stats.norm(5, 1), stats.norm(0, 1)),
    "heavy tails": of_distributions(stats.t(2.5, 3), stats.t(2.5)),
    "hidden": hidden(),
    "boosted": boosted(),
    "votes": votes(),
    "beta": of_distributions(stats.beta(5, 2), stats.beta(1, 3)),
}


def pooled(share: float) -> Callable[..., Any]:
    """Beta and isotonic calibration in fixed shares."""

    def fit(y: np.ndarray, scores: np.ndarray) -> PooledMap:
        levels = read_score_levels(y, scores)
        return PooledMap(BetaMap.of(levels), IsotonicMap.of(levels), share)

    return fit


def raw_isotonic(y: np.ndarray, scores: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """scikit-learn's isotonic regression; its 0 and 1 count as the nearest float32."""
    found = IsotonicRegression(out_of_bounds="clip").fit(scores, y.astype(float))
    return lambda s: np.clip(found.predict(s), 1e-7, 1 - 1e-7)


MAPS: dict[str, Callable[..., Any]] = {
    **{name: lambda y, s, name=name: Calibration.fit(y, s, method=name) for name in METHODS},
    "beta and isotonic, half each": pooled(0.5),
    "isotonic, scikit-learn": raw_isotonic,
}


def measure(draws: int = 40, seed: int = 0) -> dict[str, Any]:
    """Mean excess of log loss by number of rare rows, map and shape."""
    cells = []
    for n_rare in RARE:
        times = max(1, round(draws * SHARE_OF_DRAWS[n_rare]))
        for name, shape in SHAPES.items():
            rng = np.random.default_rng([seed, n_rare])
            excess = np.mean([_excess(shape, n_rare, rng) for _ in range(times)], axis=0)
            cells += [
                {"rare": n_rare, "shape": name, "map": each, "draws": times, "excess": value}
                for each, value in zip(MAPS, excess, strict=True)
            ]
    return {"draws": draws, "seed": seed, "cells": cells}


def _excess(shape: Shape, n_rare: int, rng: np.random.Generator) -> list[float]:
    """Of each map, learned on one draw."""
    n_others = min(OTHERS * n_rare, MOST_OTHERS)
    scores = np.concatenate([shape.rare(rng, n_rare), shape.others(rng, n_others)])
    y = np.arange(len(scores)) < n_rare
    rare, others = shape.rare(rng, FRESH_RARE), shape.others(rng, FRESH_OTHERS)
    odds = n_rare / n_others

    def loss(of_rare: np.ndarray, of_others: np.ndarray) -> float:
        """Nats a rare row, from log-odds."""
        return float(-log_expit(of_rare).mean() - log_expit(-of_others).mean() / odds)

    best = loss(*(shape.log_ratio(s) + np.log(odds) for s in (rare, others)))
    found = [fit(y, scores) for fit in MAPS.values()]
    return [loss(logit(each(rare)), logit(each(others))) - best for each in found]


def render(result: dict[str, Any]) -> str:
    """A table for each number of rare rows."""
    parts = [
        "Log loss beyond that of the best probabilities, in nats a rare row; the least of our maps "
        "in bold."
    ]
    cells = result["cells"]
    for n_rare in dict.fromkeys(cell["rare"] for cell in cells):
        own = [cell for cell in cells if cell["rare"] == n_rare]
        rows = []
        means = {
            name: np.mean([cell["excess"] for cell in own if cell["map"] == name]) for name in MAPS
        }
        for name in MAPS:
            each = [cell["excess"] for cell in own if cell["map"] == name]
            mean = f"{means[name]:.3f}"
            best = means[name] == min(means.values())
            rows.append([name, *(f"{e:.3f}" for e in each), f"**{mean}**" if best else mean])
        title = f"{n_rare:,} rare rows, {own[0]['draws']} draws"
        parts.append(f"{title}:\n\n{table(['map', *SHAPES, 'mean'], rows)}")
    return "\n\n".join(parts)
