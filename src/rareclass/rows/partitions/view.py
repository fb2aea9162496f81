"""Which rows of each part are meant, and how their blocks are cut and remember."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rareclass.labels.row_numbers import RowNumbers
from rareclass.rows.protocol import SentOnce


class BlockSettings(NamedTuple):
    """How blocks are cut and remember, wherever they are."""

    dtype: str
    block_rows: int
    budget: int  # bytes that blocks of one place may remember
    reserve: int  # of them not for large arrays
    keeps_arrays: bool


class Piece(NamedTuple):
    """The rows of one part: which, their weights, and the number of the first among all."""

    first: int
    n_rows: int
    chosen: np.ndarray | None  # a bit for each row of the part; None means all of them
    weight: np.ndarray | None

    @property
    def places(self) -> np.ndarray | None:
        """Which rows of the part, by their place in it."""
        return None if self.chosen is None else np.flatnonzero(np.unpackbits(self.chosen))

    @property
    def stretch(self) -> tuple[int, int]:
        """First row among all, and the one after the last."""
        return self.first, self.first + self.n_rows


class View(SentOnce):
    """Chosen rows of a table in parts, as blocks: every place is sent the pieces that it holds."""

    def __init__(self, settings: BlockSettings, pieces: dict[int, Piece]) -> None:
        self.settings, self.pieces = settings, pieces

    def part(self, parts: Iterable[int]) -> "View":
        """What a place with such parts is sent."""
        return View(self.settings, {k: self.pieces[k] for k in parts if k in self.pieces})

    def blocks(self) -> list[tuple[int, int]]:
        """First row and the one after the last of each block, in the numbers of all."""
        size = self.settings.block_rows
        return [
            (start, min(start + size, piece.first + piece.n_rows))
            for piece in self.pieces.values()
            for start in range(piece.first, piece.first + piece.n_rows, size)
        ]


def cut(
    settings: BlockSettings,
    offsets: np.ndarray,
    index: RowNumbers | None,
    weight: np.ndarray | None,
) -> View:
    """The view of chosen rows of a table.

    Parts begin at `offsets`, the last of which is the number of rows; `index` are increasing row
    numbers, None for all; `weight` has an entry for each chosen row.
    """
    if index is not None and (np.diff(index) <= 0).any():
        raise ValueError("rows of a table in parts are chosen in increasing order.")
    edges = offsets if index is None else np.searchsorted(index, offsets)
    pieces = {}
    for k, (start, stop) in enumerate(pairwise(edges)):
        if start == stop:
            continue
        chosen, n_part = None, int(offsets[k + 1] - offsets[k])
        if index is not None and stop - start < n_part:
            bits = np.zeros(n_part, dtype=bool)
            bits[index[start:stop] - offsets[k]] = True
            chosen = np.packbits(bits)
        of_part: Any = None if weight is None else weight[start:stop]
        pieces[k] = Piece(int(start), int(stop - start), chosen, of_part)
    return View(settings, pieces)
