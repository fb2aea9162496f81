"""Rows drawn again within their classes; paired bootstrap of a measure given as a callable."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError
from rareclass.machine import track
from rareclass.metrics.scored_classes import FloatArray, ScoredPair

_MOST_DRAWS = 2**31 - 1  # what a draw can count, on every system


class PairTable(NamedTuple):
    """Rows in an order that does not depend on how they were given, equal ones together."""

    y: NDArray[np.int64]
    a: FloatArray
    b: FloatArray
    weight: FloatArray
    group: NDArray[np.intp] | None

    @classmethod
    def of(cls, pair: ScoredPair) -> "PairTable":
        """Return the rows of both classes, the weights of equal ones added up."""
        y = np.repeat([1, 0], [pair.rare.a.size, pair.majority.a.size])
        a = np.concatenate([pair.rare.a, pair.majority.a])
        b = np.concatenate([pair.rare.b, pair.majority.b])
        keys = [b, a, -y]
        if pair.n_groups:
            keys.append(np.concatenate([pair.rare.group, pair.majority.group]))
        order = np.lexsort(keys)
        new = np.append(True, np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0))
        first = order[new]
        weight = np.concatenate([pair.rare.weights(), pair.majority.weights()])
        mass = np.add.reduceat(weight[order], np.flatnonzero(new))
        return cls(y[first], a[first], b[first], mass, keys[3][first] if pair.n_groups else None)

    def weights_again(self, rng: np.random.Generator) -> FloatArray:
        """Draw the weight of each row among as many drawn of its class, or among groups drawn."""
        if self.group is not None:
            holds_rare = np.zeros(int(self.group.max()) + 1, bool)
            holds_rare[self.group[self.y == 1]] = True
            times = np.zeros(holds_rare.size)
            for stratum in (np.flatnonzero(holds_rare), np.flatnonzero(~holds_rare)):
                if stratum.size:
                    drawn = rng.integers(stratum.size, size=stratum.size)
                    times[stratum] = np.bincount(drawn, minlength=stratum.size)
            return self.weight * times[self.group]
        return drawn_again(rng, self.weight, [np.flatnonzero(self.y == each) for each in (1, 0)])

    def measured(self, measure: Callable[..., float], weight: FloatArray) -> FloatArray:
        """Both values of a measure of the rows of positive weight, refused where not finite."""
        kept = weight > 0.0
        y, weight = self.y[kept], weight[kept]
        values = np.array(
            [measure(y, column[kept], sample_weight=weight) for column in (self.a, self.b)], float
        )
        if not np.isfinite(values).all():
            raise InputError(
                f"the measure returned {values.tolist()} for {y.size} rows, {int(y.sum())} of them "
                "rare.",
                "It must be a finite number for every draw of the rows.",
                ErrorKind.NOT_FINITE,
            )
        return values


def bootstrap_callable(
    pair: ScoredPair,
    measure: Callable[..., float],
    seeds: NDArray[np.uint64],
    progress: bool | str = False,
) -> tuple[FloatArray, FloatArray]:
    """Both values of a measure, shape (2,), and those of each replicate, shape (len(seeds), 2).

    The measure is called as ``measure(y, scores, sample_weight=...)`` with the rows that were drawn
    and how often; a value that is no finite number is refused.
    """
    table = PairTable.of(pair)
    values = table.measured(measure, table.weight)
    drawn = np.empty((seeds.size, 2))
    with track("Bootstrap", seeds.size, enabled=progress) as advance:
        for r, seed in enumerate(seeds):
            rng = np.random.Generator(np.random.PCG64(int(seed)))
            drawn[r] = table.measured(measure, table.weights_again(rng))
            advance()
    return values, drawn


def drawn_again(rng: Any, weight: FloatArray, strata: Sequence[NDArray[np.intp]]) -> FloatArray:
    """Weights of rows drawn with replacement, as many as there are in each stratum.

    Weights that are no frequencies stand for the nearest whole number of rows, at least one.
    """
    again = np.zeros_like(weight)
    for rows in strata:
        total = weight[rows].sum()
        n = min(max(round(float(total)), 1), _MOST_DRAWS)
        again[rows] = rng.multinomial(n, weight[rows] / total) * (total / n)
    return again
