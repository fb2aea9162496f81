"""The numbers of all rows but a few, without an array of them."""

from typing import Any

import numpy as np


class AllBut:
    """The numbers 0 to n_rows - 1 without some: reads like an increasing array, holds only those.

    The majority is nearly all of a table, and its row numbers took 4 bytes a row. Place p is the
    number p + k where k of those left out stand before it: left_out[j] - j <= p for j < k.

    Parameters
    ----------
    n_rows : int
    left_out : ndarray of int
        Increasing; those that are left out.

    Examples
    --------
    >>> rows = AllBut(6, np.array([0, 3]))
    >>> len(rows), rows[1:4].tolist(), np.asarray(rows).tolist()
    (4, [2, 4, 5], [1, 2, 4, 5])
    """

    def __init__(self, n_rows: int, left_out: np.ndarray) -> None:
        self.dtype = row_dtype(n_rows)
        self._n_rows, self._left_out = n_rows, left_out
        self._n_before = left_out - np.arange(len(left_out))

    def __len__(self) -> int:
        return self._n_rows - len(self._left_out)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("row numbers that are not in memory cannot be had without a copy.")
        return np.delete(np.arange(self._n_rows, dtype=dtype or self.dtype), self._left_out)

    def __getitem__(self, key: Any) -> Any:
        """What the array has there: a slice, a mask, places, or a single one."""
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1 and start < stop:
                return self._consecutive(start, stop)
            key = np.arange(start, stop, step)
        places = np.asarray(key)
        if places.dtype == bool:
            return np.asarray(self)[places]
        places = self._from_the_start(places)
        number = places + np.searchsorted(self._n_before, places, side="right")
        return number.astype(self.dtype)[()]

    def _consecutive(self, start: int, stop: int) -> np.ndarray:
        """The numbers of consecutive places, few of which are looked up."""
        before = self._n_before.searchsorted(start, side="right")
        up_to = self._n_before.searchsorted(stop - 1, side="right")
        numbers = np.arange(start + before, stop + up_to, dtype=self.dtype)
        if up_to > before:
            kept = np.ones(len(numbers), dtype=bool)
            kept[self._left_out[before:up_to] - numbers[0]] = False
            numbers = numbers[kept]
        return numbers

    def _from_the_start(self, places: np.ndarray) -> np.ndarray:
        """Places of which those below 0 count from the end."""
        n = len(self)
        if places.size and (places.min() < -n or places.max() >= n):
            raise IndexError(f"places must lie between 0 and {n - 1:,}.")
        return np.where(places < 0, places + n, places)

    def searchsorted(self, numbers: Any, side: Any = "left", sorter: None = None) -> Any:
        """How many are below a number (left), or at or below it (right)."""
        numbers = np.asarray(numbers)
        before = np.clip(numbers + (side == "right"), 0, self._n_rows)
        return before - np.searchsorted(self._left_out, before)


# What is indexed like an array of row numbers.
RowNumbers = np.ndarray | AllBut


def row_dtype(n_rows: int) -> type[np.signedinteger]:
    """What row numbers are held in: int32 is half the bytes, where it reaches."""
    return np.int32 if n_rows < 2**31 else np.int64
