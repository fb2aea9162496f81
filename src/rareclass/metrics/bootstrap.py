"""Paired stratified bootstrap: both rankings measured on the same rows, or groups, drawn again.

Named measures (`bootstrap`) are functions of the cells around the rare scores, so what is drawn are
items: distinct places that rows have in both rankings, or groups of rows, counted by compiled code.
A measure of which nothing is known (`bootstrap_callable`) is called with the rows that were drawn.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError
from rareclass.machine import track
from rareclass.metrics.rare_cells import is_worth_compiling, read_cells
from rareclass.metrics.scored_classes import ClassPair, FloatArray, ScoredPair, whole_rows

# Expected draws of an item from which on it gets a binomial number of its own: a binomial costs as
# much as some 25 picks from a table.
_OWN_DRAW_FROM = 25.0
# Replicates are handed out in tasks of about so many entries: some tenths of a second, so that
# Ctrl-C is heard soon, and long beside what a task itself costs.
_ENTRIES_A_TASK = 2_000_000
IntArray = NDArray[np.int64]
Places = NDArray[np.int32]


class Items(NamedTuple):
    """Items that are drawn of one stratum, with the entries that each brings into both rankings."""

    mass: FloatArray  # shape (n,): chance of being drawn, up to a factor
    n_draws: int
    ends: IntArray  # shape (n,): where each item's entries end
    at_a: Places  # shape (n_entries,): place among the totals of column a
    at_b: Places
    weight: FloatArray  # what one draw adds there


class Strata(NamedTuple):
    """Items of each stratum: the classes, or the groups with and those without a rare row."""

    items: tuple[Items, ...]
    n_distinct: tuple[int, int]  # distinct rare scores of each column


class _ColumnPlaces(NamedTuple):
    """Places of the rows of one score column among its totals.

    The totals are the d rare cells, then the 2 d + 1 cells of the majority.
    """

    n_distinct: int
    of_rare: IntArray
    of_majority: IntArray


class _DrawTables(NamedTuple):
    """All strata in one set of arrays, as `_bootstrap_jit.replicates` takes and describes them."""

    n_draws: IntArray
    strata: IntArray
    block: IntArray
    block_mass: FloatArray
    mass_from: FloatArray
    keep: FloatArray
    other: IntArray
    entry: IntArray
    at_a: Places
    at_b: Places
    weight: FloatArray


def all_items(pair: ScoredPair) -> Strata:
    """Collect the items of both classes, or of the groups with and without a rare row."""
    a, b = (
        _places(rare, majority)
        for rare, majority in ((pair.rare.a, pair.majority.a), (pair.rare.b, pair.majority.b))
    )
    if pair.n_groups:
        items = group_items(pair, a, b)
    else:
        of_rare = row_items(pair.rare, a.of_rare, b.of_rare)
        items = (of_rare, row_items(pair.majority, a.of_majority, b.of_majority))
    return Strata(items, (a.n_distinct, b.n_distinct))


def row_items(pair: ClassPair, at_a: IntArray, at_b: IntArray) -> Items:
    """Rows of a class, those at the same place in both rankings together.

    Copies and weights so come to the same draws. Weights that are no frequencies stand for the
    nearest whole number of rows, at least one.
    """
    width = int(at_b.max()) + 1
    key = at_a * width + at_b
    if pair.weight is None:
        distinct, counts = np.unique(key, return_counts=True)
        mass = counts.astype(np.float64)
    else:
        distinct, inverse = np.unique(key, return_inverse=True)
        mass = np.bincount(inverse, pair.weight).astype(np.float64)
    n_draws = whole_rows(float(mass.sum()))
    a, b = (distinct // width).astype(np.int32), (distinct % width).astype(np.int32)
    weight = np.full(mass.size, float(mass.sum()) / n_draws)
    return Items(mass, n_draws, np.arange(1, mass.size + 1), a, b, weight)


def group_items(pair: ScoredPair, a: _ColumnPlaces, b: _ColumnPlaces) -> tuple[Items, ...]:
    """Groups that hold a rare row, and those that do not: each drawn apart, with equal chance."""
    group = np.concatenate([pair.rare.group, pair.majority.group])
    at_a = np.concatenate([a.of_rare, a.of_majority])
    at_b = np.concatenate([b.of_rare, b.of_majority])
    weight = _weights(pair)
    order = np.lexsort((at_b, at_a, group))
    group, at_a, at_b, weight = group[order], at_a[order], at_b[order], weight[order]
    holds_rare = np.zeros(pair.n_groups, bool)
    holds_rare[pair.rare.group] = True
    strata = []
    for with_rare in (True, False):
        rows = holds_rare[group] == with_rare
        if not rows.any():
            continue
        own = group[rows]
        ends = np.append(np.flatnonzero(own[1:] != own[:-1]) + 1, own.size)
        at = (at_a[rows].astype(np.int32), at_b[rows].astype(np.int32))
        strata.append(Items(np.ones(ends.size), ends.size, ends, *at, weight[rows]))
    return tuple(strata)


def bootstrap(
    strata: Strata,
    measure: int,
    option: float,
    seeds: NDArray[np.uint64],
    n_jobs: int | None = None,
    progress: bool | str = False,
) -> FloatArray:
    """Both values of each replicate; shape (len(seeds), 2).

    `measure` and `option` as in the compiled code. One replicate costs O(distinct pairs of places),
    at most O(n).
    """
    from rareclass.metrics import _bootstrap_jit as jit
    from rareclass.rows.memory import count_threads

    tables = _draw_tables(strata.items)
    out = np.empty((seeds.size, 2))
    d = np.array(strata.n_distinct, np.int64)
    size = max(_ENTRIES_A_TASK // sum(items.at_a.size for items in strata.items), 1)

    def run(first: int) -> int:
        part = slice(first, first + size)
        jit.replicates(seeds[part], *tables, d, measure, float(option), out[part])
        return seeds[part].size

    firsts = range(0, seeds.size, size)
    n_threads = min(count_threads(n_jobs), len(firsts))
    pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
    try:
        with track("Bootstrap", seeds.size, enabled=progress) as advance:
            for done in map(run, firsts) if pool is None else pool.map(run, firsts):
                advance(done)
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)  # at Ctrl-C what has not begun is dropped
    return out


def _places(rare: FloatArray, majority: FloatArray) -> _ColumnPlaces:
    distinct = np.unique(rare)
    d = distinct.size
    numbers = np.arange(2.0 * d + 1.0)
    compiled = is_worth_compiling(rare.size + majority.size)
    _, of_rare = read_cells(distinct, rare, None, numbers, compiled)
    _, of_majority = read_cells(distinct, majority, None, numbers, compiled)
    return _ColumnPlaces(d, of_rare.astype(np.int64) // 2, of_majority.astype(np.int64) + d)


def _draw_tables(strata: Sequence[Items]) -> _DrawTables:
    from rareclass.metrics import _bootstrap_jit as jit

    blocks, masses, tails, bounds = [], [], [], [0]
    columns: list[tuple[NDArray, ...]] = []
    n_items = 0
    for items in strata:
        # Items drawn alone come first, then blocks of others.
        expected = items.mass / items.mass.sum() * items.n_draws
        alone = np.flatnonzero(expected >= _OWN_DRAW_FROM)
        shared = np.flatnonzero(expected < _OWN_DRAW_FROM)
        order = np.concatenate([alone, shared])
        of_shared = alone.size + np.arange(0, shared.size, jit.BLOCK_ITEMS)
        starts = np.append(np.arange(alone.size), of_shared)
        every_length = np.diff(items.ends, prepend=0)
        lengths, begin = every_length[order], (items.ends - every_length)[order]
        before = np.cumsum(lengths) - lengths
        entry = np.arange(lengths.sum()) + np.repeat(begin - before, lengths)
        of_entries = (items.at_a[entry], items.at_b[entry], items.weight[entry])
        columns.append((items.mass[order], lengths, *of_entries))
        of_blocks = np.add.reduceat(items.mass[order], starts)
        masses.append(of_blocks)
        tails.append(np.cumsum(of_blocks[::-1])[::-1])
        blocks.append(starts + n_items)
        n_items += order.size
        bounds.append(bounds[-1] + starts.size)
    mass, lengths, at_a, at_b, weight = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    block = np.append(np.concatenate(blocks), n_items).astype(np.int64)
    keep, other = np.empty(n_items), np.empty(n_items, np.int64)
    jit.alias_tables(mass, block, keep, other)
    return _DrawTables(
        n_draws=np.array([items.n_draws for items in strata], np.int64),
        strata=np.array(bounds, np.int64),
        block=block,
        block_mass=np.concatenate(masses),
        mass_from=np.concatenate(tails),
        keep=keep,
        other=other,
        entry=np.append(0, np.cumsum(lengths)).astype(np.int64),
        at_a=at_a,
        at_b=at_b,
        weight=weight,
    )


class PairTable(NamedTuple):
    """Rows in an order that does not depend on how they were given, equal ones together."""

    y: IntArray
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
        mass = np.add.reduceat(_weights(pair)[order], np.flatnonzero(new))
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
        again = np.empty(self.y.size)
        for label in (1, 0):
            rows = self.y == label
            total = self.weight[rows].sum()
            n = whole_rows(total)
            again[rows] = rng.multinomial(n, self.weight[rows] / total) * (total / n)
        return again

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


def _weights(pair: ScoredPair) -> FloatArray:
    """Weights of the rare rows, then of the majority."""
    return np.concatenate(
        [
            np.ones(rows.a.size) if rows.weight is None else rows.weight
            for rows in (pair.rare, pair.majority)
        ]
    )
