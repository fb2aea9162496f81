"""Rows of floats in a scratch file, written once and read in any order."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rareclass.rows.source import RowSource
from rareclass.scratch_file import Scratch

# Reading past this many bytes costs less than asking the system once more.
_GAP_BYTES = 1 << 15
# Most bytes that are read at once to pick rows from.
_SPAN_BYTES = 8 << 20


class ScratchRows:
    """Rows of floats in a `Scratch`, row after row.

    Rows are read, not mapped: mapped pages would count as memory of this process.

    `expected_rows` is their number where it is known; `folder` is as in `scratch_folder`.
    """

    def __init__(
        self,
        n_features: int,
        dtype: Any,
        folder: str | Path | None = None,
        expected_rows: int | None = None,
    ) -> None:
        self.n_rows, self.n_features, self.dtype = 0, n_features, np.dtype(dtype)
        self._row_bytes = n_features * self.dtype.itemsize
        self._gap = max(1, _GAP_BYTES // self._row_bytes)
        self._span = max(1, _SPAN_BYTES // self._row_bytes)
        expected = None if expected_rows is None else expected_rows * self._row_bytes
        self._scratch = Scratch(folder, expected)

    def append(self, rows: np.ndarray) -> None:
        """Add rows, an array of shape (n, n_features), at the end."""
        if not len(rows):
            return
        self._scratch.append(np.ascontiguousarray(rows, dtype=self.dtype))
        self.n_rows += len(rows)

    def source(self) -> RowSource:
        """Rows written so far; the file lives until they are closed or collected."""
        shape = (self.n_rows, self.n_features)
        return RowSource(shape, self.dtype, self.take, False, self.close)

    def close(self) -> None:
        """Free the room on disk; nothing can be read any more."""
        self._scratch.close()

    def take(self, rows: slice | np.ndarray) -> np.ndarray:
        """Chosen rows, shape (n, n_features), read in as few requests as pay off."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.n_rows)
            if step == 1:
                return self._read(start, max(start, stop))
            rows = np.arange(start, stop, step)
        index = np.asarray(rows, dtype=np.intp)
        if not len(index):
            return self._read(0, 0)
        if index.min() < 0 or index.max() >= self.n_rows:
            raise IndexError(f"rows must lie between 0 and {self.n_rows - 1:,}.")
        if (index[1:] >= index[:-1]).all():
            return self._pick(index)
        order = np.argsort(index, kind="stable")
        out = np.empty((len(index), self.n_features), self.dtype)
        out[order] = self._pick(index[order])
        return out

    def _pick(self, index: np.ndarray) -> np.ndarray:
        """Rows of an increasing index: runs with small gaps are read through and picked from."""
        out = np.empty((len(index), self.n_features), self.dtype)
        step = np.diff(index)
        is_break = (step > self._gap) | (np.diff(index // self._span) > 0)
        edges = np.concatenate([[0], np.flatnonzero(is_break) + 1, [len(index)]])
        for start, stop in pairwise(edges):
            first, last = int(index[start]), int(index[stop - 1])
            if last - first == stop - start - 1 and (step[start : stop - 1] == 1).all():
                self._scratch.read_into(out[start:stop], first * self._row_bytes)
            else:
                block = self._read(first, last + 1)
                np.take(block, index[start:stop] - first, axis=0, out=out[start:stop], mode="clip")
        return out

    def _read(self, start: int, stop: int) -> np.ndarray:
        block = np.empty((stop - start, self.n_features), self.dtype)
        if block.size:
            self._scratch.read_into(block, start * self._row_bytes)
        return block
