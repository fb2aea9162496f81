"""The AUCs of two rankings of the same rows, and what each row says of both (DeLong)."""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from rareclass.metrics.cells_of_rows import is_worth_compiling, read_cells
from rareclass.metrics.rare_cells import RareCells, weigh_distinct
from rareclass.metrics.scored_classes import FloatArray
from rareclass.metrics.scored_pair import ScoredPair


class RowInfluences(NamedTuple):
    """What every row says of a mean over both classes; the weighted sum of each class is 0."""

    value: float
    of_rare: FloatArray  # shape (n_rare,)
    of_majority: FloatArray  # shape (n_majority,)


def auc_influences(pair: ScoredPair) -> tuple[RowInfluences, RowInfluences]:
    """AUC of both columns, and DeLong's structural components of each row less the AUC.

    Of a rare row the share of the majority below it, of a majority row the share of the rare rows
    above it; ties count one half. O(n log n_rare) time, O(n) memory.
    """
    rare, majority = pair.rare, pair.majority
    compiled = is_worth_compiling(rare.a.size + majority.a.size)

    def of_column(scores: tuple[FloatArray, FloatArray]) -> RowInfluences:
        distinct, held = weigh_distinct(scores[0], rare.weight)
        above = np.append(np.cumsum(held[::-1])[::-1], 0.0) / held.sum()
        of_cells = np.empty(2 * distinct.size + 1)
        of_cells[0::2], of_cells[1::2] = above, (above[:-1] + above[1:]) / 2.0
        cells, of_majority = read_cells(distinct, scores[1], majority.weight, of_cells, compiled)
        found = RareCells(distinct, held, tied=cells[1::2], gaps=cells[0::2])
        below = found.majority_below() / found.n_majority
        of_cells[1::2] = below  # where rare rows are
        _, of_rare = read_cells(distinct, scores[0], None, of_cells, compiled)
        auc = float(np.clip(held @ below / found.n_rare, 0.0, 1.0))
        of_rare -= auc
        of_majority -= auc
        return RowInfluences(auc, of_rare, of_majority)

    columns = [(rare.a, majority.a), (rare.b, majority.b)]
    if not compiled:
        return of_column(columns[0]), of_column(columns[1])
    with ThreadPoolExecutor(2) as pool:  # the search lets go of the interpreter
        a, b = pool.map(of_column, columns)
    return a, b
