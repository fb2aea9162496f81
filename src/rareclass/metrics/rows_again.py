"""Rows, or groups of rows, drawn again for a measure of which nothing is known."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.metrics.scored_classes import FloatArray
from rareclass.metrics.scored_pair import ScoredPair
from rareclass.progress import track

_MOST_DRAWN = 2**31 - 1


class _Table(NamedTuple):
    """Rows in an order that does not depend on how they were given, equal ones together."""

    y: NDArray[np.int64]
    a: FloatArray
    b: FloatArray
    weight: FloatArray
    group: NDArray[np.intp] | None


def values_of_draws(
    pair: ScoredPair,
    measure: Callable[..., float],
    seeds: NDArray[np.uint64],
    progress: bool | str = False,
) -> tuple[FloatArray, FloatArray]:
    """Both values of a measure, shape (2,), and those of each replicate, shape (len(seeds), 2).

    The measure is called as ``measure(y, scores, sample_weight=...)`` with the rows that were drawn
    and how often; a value that is no finite number is refused.
    """
    table = _table(pair)
    values = _both(measure, table, table.weight)
    drawn = np.empty((seeds.size, 2))
    with track("Bootstrap", seeds.size, enabled=progress) as advance:
        for r, seed in enumerate(seeds):
            rng = np.random.Generator(np.random.PCG64(int(seed)))
            drawn[r] = _both(measure, table, _weights_again(table, rng))
            advance()
    return values, drawn


def _table(pair: ScoredPair) -> _Table:
    y = np.repeat([1, 0], [pair.rare.a.size, pair.majority.a.size])
    a = np.concatenate([pair.rare.a, pair.majority.a])
    b = np.concatenate([pair.rare.b, pair.majority.b])
    weight = np.concatenate(
        [np.ones(each.a.size) if each.weight is None else each.weight for each in pair[:2]]
    )
    keys = [b, a, -y]
    if pair.n_groups:
        keys.append(np.concatenate([pair.rare.group, pair.majority.group]))
    order = np.lexsort(keys)
    new = np.append(True, np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0))
    first = order[new]
    mass = np.add.reduceat(weight[order], np.flatnonzero(new))
    group = keys[3][first] if pair.n_groups else None
    return _Table(y[first], a[first], b[first], mass, group)


def _weights_again(table: _Table, rng: np.random.Generator) -> FloatArray:
    """The weight of each row among as many drawn of its class, or among groups drawn."""
    if table.group is not None:
        holds_rare = np.zeros(int(table.group.max()) + 1, bool)
        holds_rare[table.group[table.y == 1]] = True
        times = np.zeros(holds_rare.size)
        for stratum in (np.flatnonzero(holds_rare), np.flatnonzero(~holds_rare)):
            if stratum.size:
                drawn = rng.integers(stratum.size, size=stratum.size)
                times[stratum] = np.bincount(drawn, minlength=stratum.size)
        return table.weight * times[table.group]
    again = np.empty(table.y.size)
    for label in (1, 0):
        rows = table.y == label
        total = table.weight[rows].sum()
        n = min(max(round(total), 1), _MOST_DRAWN)
        again[rows] = rng.multinomial(n, table.weight[rows] / total) * (total / n)
    return again


def _both(measure: Callable[..., float], table: _Table, weight: FloatArray) -> FloatArray:
    kept = weight > 0.0
    y, weight = table.y[kept], weight[kept]
    values = np.array(
        [measure(y, column[kept], sample_weight=weight) for column in (table.a, table.b)], float
    )
    if not np.isfinite(values).all():
        raise ValueError(
            f"the measure returned {values.tolist()} for {y.size} rows, {int(y.sum())} of them "
            "rare; it must be a finite number for every draw of the rows."
        )
    return values
