"""Paired stratified bootstrap: both rankings measured on the same rows, or groups, drawn again."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.metrics.cells_of_rows import is_worth_compiling, read_cells
from rareclass.metrics.scored_classes import FloatArray
from rareclass.metrics.scored_pair import ClassPair, ScoredPair
from rareclass.progress import track

_MOST_DRAWN = 2**31 - 1
# Expected draws of an item from which on it gets a binomial number of its own: a binomial costs as
# much as some 25 picks from a table.
_OWN_DRAW_FROM = 25.0
# Replicates are handed out in tasks of about so many entries: some tenths of a second, so that
# Ctrl-C is heard soon, and long beside what a task itself costs.
_ENTRIES_A_TASK = 2_000_000
IntArray = NDArray[np.int64]


class Items(NamedTuple):
    """What is drawn, in its order: items with the entries that each brings into both rankings."""

    mass: FloatArray  # shape (n,): chance of being drawn, up to a factor
    n_draws: int
    ends: IntArray  # shape (n,): where each item's entries end
    at_a: NDArray[np.int32]  # shape (n_entries,): place among the totals of column a
    at_b: NDArray[np.int32]
    weight: FloatArray  # what one draw adds there


def row_items(pair: ClassPair, at_a: IntArray, at_b: IntArray) -> Items:
    """Rows of a class, those at the same place in both rankings together.

    Copies and weights so come to the same draws. Weights that are no frequencies stand for the
    nearest whole number of rows, at least one.
    """
    a, b, mass = _together(at_a, at_b, pair.weight)
    total = float(mass.sum())
    n_draws = min(max(round(total), 1), _MOST_DRAWN)
    weight = np.full(mass.size, total / n_draws)
    return Items(mass, n_draws, np.arange(1, mass.size + 1), a, b, weight)


def group_items(pair: ScoredPair, at_a: list[IntArray], at_b: list[IntArray]) -> tuple[Items, ...]:
    """Groups that hold a rare row, and those that do not: each drawn by itself, with equal chance.

    `at_a` and `at_b` are the places of the rare and of the majority rows.
    """
    group = np.concatenate([pair.rare.group, pair.majority.group])
    a, b = np.concatenate(at_a), np.concatenate(at_b)
    weights = [np.ones(each.a.size) if each.weight is None else each.weight for each in pair[:2]]
    weight = np.concatenate(weights)
    order = np.lexsort((b, a, group))
    group, a, b, weight = group[order], a[order], b[order], weight[order]
    holds_rare = np.zeros(pair.n_groups, bool)
    holds_rare[pair.rare.group] = True
    strata = []
    for wanted in (True, False):
        rows = holds_rare[group] == wanted
        if not rows.any():
            continue
        own = group[rows]
        ends = np.append(np.flatnonzero(own[1:] != own[:-1]) + 1, own.size)
        at = (a[rows].astype(np.int32), b[rows].astype(np.int32))
        strata.append(Items(np.ones(ends.size), ends.size, ends, *at, weight[rows]))
    return tuple(strata)


def all_items(pair: ScoredPair) -> tuple[tuple[Items, ...], tuple[int, int]]:
    """The strata to draw from, and how many distinct rare scores each column has.

    Strata are the classes, or the groups with and without a rare row.
    """
    (size_a, *at_a), (size_b, *at_b) = (
        _places(rare, majority)
        for rare, majority in ((pair.rare.a, pair.majority.a), (pair.rare.b, pair.majority.b))
    )
    if pair.n_groups:
        return group_items(pair, at_a, at_b), (size_a, size_b)
    of_rare = row_items(pair.rare, at_a[0], at_b[0])
    return (of_rare, row_items(pair.majority, at_a[1], at_b[1])), (size_a, size_b)


def bootstrap(
    strata: tuple[Items, ...],
    sizes: tuple[int, int],
    measure: int,
    option: float,
    seeds: NDArray[np.uint64],
    n_jobs: int | None = None,
    progress: bool | str = False,
) -> FloatArray:
    """Both values of each replicate; shape (len(seeds), 2).

    `sizes` are the numbers of distinct rare scores; `measure` and `option` as in the compiled
    code. One replicate costs O(distinct pairs of places), at most O(n).
    """
    from rareclass.metrics import _bootstrap_jit as jit
    from rareclass.rows.memory import count_threads

    tables = _tables(strata)
    out = np.empty((seeds.size, 2))
    d = np.array(sizes, np.int64)

    size = max(_ENTRIES_A_TASK // sum(items.at_a.size for items in strata), 1)

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


def _places(rare: FloatArray, majority: FloatArray) -> tuple[int, IntArray, IntArray]:
    """How many distinct rare scores there are, and the places of both classes among the totals.

    Those are the d rare cells, then the 2 d + 1 cells of the majority.
    """
    distinct = np.unique(rare)
    d = distinct.size
    numbers = np.arange(2.0 * d + 1.0)
    compiled = is_worth_compiling(rare.size + majority.size)
    _, of_rare = read_cells(distinct, rare, None, numbers, compiled)
    _, of_majority = read_cells(distinct, majority, None, numbers, compiled)
    return d, of_rare.astype(np.int64) // 2, of_majority.astype(np.int64) + d


def _together(
    a: IntArray, b: IntArray, weight: FloatArray | None
) -> tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]:
    """Distinct pairs of places, in order, and the weight of each."""
    width = int(b.max()) + 1
    key = a * width + b
    if weight is None:
        distinct, counts = np.unique(key, return_counts=True)
        mass = counts.astype(np.float64)
    else:
        distinct, inverse = np.unique(key, return_inverse=True)
        mass = np.bincount(inverse, weight).astype(np.float64)
    return (distinct // width).astype(np.int32), (distinct % width).astype(np.int32), mass


def _tables(strata: tuple[Items, ...]) -> tuple[Any, ...]:
    """All strata in one set of arrays, as the compiled code takes them."""
    from rareclass.metrics import _bootstrap_jit as jit

    blocks, masses, tails, bounds = [], [], [], [0]
    columns: list[list[NDArray]] = [[], [], [], [], []]
    n_items = 0
    for items in strata:
        order, starts = _blocks(items, jit.BLOCK_ITEMS)
        lengths = np.diff(items.ends, prepend=0)[order]
        begin = (items.ends - np.diff(items.ends, prepend=0))[order]
        entry = np.arange(lengths.sum()) + np.repeat(
            begin - (np.cumsum(lengths) - lengths), lengths
        )
        parts = (items.mass[order], lengths, items.at_a[entry], items.at_b[entry])
        for column, values in zip(columns, (*parts, items.weight[entry]), strict=True):
            column.append(values)
        of_blocks = np.add.reduceat(items.mass[order], starts)
        masses.append(of_blocks)
        tails.append(np.cumsum(of_blocks[::-1])[::-1])
        blocks.append(starts + n_items)
        n_items += order.size
        bounds.append(bounds[-1] + starts.size)
    mass, lengths, at_a, at_b, weight = (np.concatenate(column) for column in columns)
    block = np.append(np.concatenate(blocks), n_items).astype(np.int64)
    keep, other = np.empty(n_items), np.empty(n_items, np.int64)
    jit.alias_tables(mass, block, keep, other)
    return (
        np.array([items.n_draws for items in strata], np.int64),
        np.array(bounds, np.int64),
        block,
        np.concatenate(masses),
        np.concatenate(tails),
        keep,
        other,
        np.append(0, np.cumsum(lengths)).astype(np.int64),
        at_a,
        at_b,
        weight,
    )


def _blocks(items: Items, most: int) -> tuple[IntArray, IntArray]:
    """An order of the items, those drawn alone first, and where each block starts in it."""
    expected = items.mass / items.mass.sum() * items.n_draws
    alone = np.flatnonzero(expected >= _OWN_DRAW_FROM)
    shared = np.flatnonzero(expected < _OWN_DRAW_FROM)
    starts = np.append(np.arange(alone.size), alone.size + np.arange(0, shared.size, most))
    return np.concatenate([alone, shared]), starts
