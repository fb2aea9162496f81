"""Rows on a device: what is asked of a block is worked out where its arrays are."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from rareclass.array_api import is_elsewhere, n_bytes, to_numpy
from rareclass.errors import InputError
from rareclass.labels.row_numbers import RowNumbers
from rareclass.machine import size_text
from rareclass.rows.devices import Arriving, Device, check_is_dense, told_when_full
from rareclass.rows.memory import ArrayRows
from rareclass.rows.protocol import Block, Budget, Memo, SentOnce
from rareclass.rows.source import RowSource

# Of a device's free memory: for the rows themselves, for what solvers hold, for all that lives
# from pass to pass.
_OF_ROWS, _OF_SOLVERS, _OF_ALL = 0.4, 0.2, 0.8
# Bytes of a row's weight, and of a kernel entry in a product; arrays of the size of a block's
# kernel that are there while it is worked on.
_WEIGHT_BYTES, _KERNEL_BYTES, _KERNELS_AT_WORK = 8, 8, 4
# A device is idle between its calls: blocks are as large as memory lets them, up to so many bytes.
# But a part of the rows is made of blocks, and needs some to choose of.
_MOST_WORK_BYTES, _BLOCKS, _LEAST_BLOCK_ROWS = 2**31, 32, 4096


class DeviceMemo(Memo):
    """What a block on a device remembers; see `Memo`."""

    def keep(self, name: Any, key: Any, array: Any) -> None:
        """Keep an array, if the budget allows and `name` is free.

        numpy's is copied: others may be written into what it lies in.
        """
        if not is_elsewhere(array):
            super().keep(name, key, array)
        elif name not in self and self._budget.left - n_bytes(array) >= self._budget.reserve:
            self.put(name, key, array, n_bytes(array))


class DeviceRows(ArrayRows):
    """Chosen rows of a source on a device, in blocks; see `ArrayRows`.

    Functions are given blocks and broadcast values whose arrays are the device's, in the array
    API; results come back as numpy's. Rows that are held stay there from their first use on.
    Others are sent again in every pass, the next block while the device works on the last.

    What is broadcast moves by these rules: arrays are sent; what has a method ``on_device(send)``
    is what that returns, once for a `SentOnce`; arrays in other tuples are sent; the rest is as it
    is.

    Parameters
    ----------
    device : Device
    source, index, weight, settings
        As of `ArrayRows`; rows are dense, and `budget` is of the device's memory.
    holds_rows : bool
        Whether rows stay on the device.
    work_bytes : int
        What a block takes while it is worked on, to be told when the device's memory is full.
    """

    def __init__(
        self,
        device: Device,
        source: RowSource,
        index: RowNumbers | None = None,
        weight: np.ndarray | None = None,
        *,
        holds_rows: bool = True,
        work_bytes: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__(source, index, weight, **settings)
        self.device: Device = device
        self._holds_rows, self._work_bytes = holds_rows, work_bytes
        self._memos = [DeviceMemo(self.budget) for _ in self._places]
        self._weights: dict[int, Any] = {}
        self._held: dict[int, Any] = {}
        self._was_read = dict.fromkeys(range(len(self._places)), True)
        self._known: weakref.WeakKeyDictionary[SentOnce, Any] = weakref.WeakKeyDictionary()

    def sum(self, fn: Callable[..., tuple], *broadcast: Any) -> tuple:
        """Add ``fn(block, *broadcast)``, a tuple of numbers and arrays, over all blocks."""
        if not self.n_rows:
            raise ValueError("there are no rows to sum over.")
        total: list[Any] = []
        with self._told_when_full():
            for part in self._each(fn, broadcast):
                total = [a + b for a, b in zip(total, part, strict=True)] if total else list(part)
            return tuple(to_numpy(entry)[()] for entry in total)

    def map(self, fn: Callable[..., Any], *broadcast: Any) -> np.ndarray:
        """Join ``fn(block, *broadcast)``, one result a row, in row order."""
        with self._told_when_full():
            parts = [to_numpy(part) for part in self._each(fn, broadcast)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _each(self, fn: Callable[..., Any], broadcast: tuple) -> Iterator[Any]:
        there = [self._sent(value) for value in broadcast]
        for block in self._on_device():
            yield fn(block, *there)

    def _sent(self, value: Any) -> Any:
        """A broadcast value with its arrays on the device."""
        if isinstance(value, np.ndarray):
            return self.device.put(value)
        if isinstance(value, SentOnce):
            there = self._known.get(value)
            if there is None:
                there = self._known[value] = value.on_device(self._sent)
            return there
        if hasattr(value, "on_device"):
            return value.on_device(self._sent)
        if isinstance(value, tuple | list):
            parts = map(self._sent, value)
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return value

    def _on_device(self) -> Iterator[Block]:
        """The blocks, each with its rows and weights on the device when they are asked for."""
        blocks = list(zip(self._blocks, super().blocks(), strict=True))
        arriving: dict[int, Arriving] = {}
        for k, (number, block) in enumerate(blocks):
            self._send(number, block, arriving)
            if k + 1 < len(blocks):
                self._send(*blocks[k + 1], arriving)
            self._was_read[number] = False
            yield Block(
                block.start,
                block.stop,
                self._weight(number, block),
                block.memo,
                block.keeps_arrays,
                partial(self._rows, number, block, arriving),
            )
            arriving.pop(number, None)

    def _send(self, number: int, block: Block, arriving: dict[int, Arriving]) -> None:
        """Send the rows of a block ahead, if they are not there and the last pass read them."""
        if number not in arriving and number not in self._held and self._was_read[number]:
            arriving[number] = self.device.send(block.take())

    def _rows(self, number: int, block: Block, arriving: dict[int, Arriving]) -> Any:
        self._was_read[number] = True
        if number in self._held:
            return self._held[number]
        if number not in arriving:
            arriving[number] = self.device.send(block.take())
        rows = arriving[number].wait()
        if self._holds_rows:
            self._held[number] = rows
        return rows

    def _weight(self, number: int, block: Block) -> Any:
        if number not in self._weights:
            self._weights[number] = self.device.put(block.weight)
        return self._weights[number]

    def _told_when_full(self) -> AbstractContextManager[None]:
        """Say what was to fit when the device's memory is full."""
        return told_when_full(
            self.device,
            lambda: (
                f"it holds {size_text(sum(map(n_bytes, self._held.values())))} of rows and "
                f"{size_text(self.budget.total - self.budget.left)} of kernels; a block of "
                f"{self._largest_block:,} rows takes {size_text(self._work_bytes)} while it is "
                "worked on"
            ),
        )

    @property
    def _largest_block(self) -> int:
        return max((stop - start for _, start, stop in self._places), default=0)


def solvers_with_room(device: Device, n_landmarks: int, most: int) -> int:
    """How many solvers' matrices of landmarks fit into a part of what a device has free."""
    room = int(_OF_SOLVERS * device.free_bytes() / matrix_bytes(n_landmarks))
    return max(1, min(most, room))


def matrix_bytes(n_landmarks: int) -> int:
    """What a matrix of landmarks takes."""
    return 8 * max(n_landmarks, 1) ** 2


def rows_on_device(
    device: Device,
    source: RowSource,
    index: RowNumbers | None = None,
    weight: np.ndarray | None = None,
    *,
    n_landmarks: int,
    n_solvers: int = 0,
    reserve: int = 0,
    n_jobs: int | None = None,
    keeps_arrays: bool = True,
) -> DeviceRows:
    """Rows whose kernel against landmarks is to be worked out, sized for what a device has free.

    Rows are held where they take less than half of it. A block of kernels takes at most an eighth
    of the rest, and what remains is for kernels that are kept; `reserve` of its bytes are for
    whatever else blocks remember. Each of `n_solvers` has a matrix of landmarks there.

    Raises `InputError` for sparse rows and rows on a cluster.
    """
    check_is_dense(device, source.is_sparse)
    if source.as_rows is not None:
        raise InputError(
            f"device={str(device)!r} works on rows of this machine, not on those of a cluster.",
            "Leave device=None.",
        )
    n_rows = source.n_rows if index is None else len(index)
    free = device.free_bytes()
    row_bytes = source.n_features * source.dtype.itemsize
    holds_rows = n_rows * row_bytes <= _OF_ROWS * free
    matrices = n_solvers * matrix_bytes(n_landmarks)
    left = _OF_ALL * free - n_rows * (_WEIGHT_BYTES + holds_rows * row_bytes) - matrices
    a_row = _KERNELS_AT_WORK * _KERNEL_BYTES * max(n_landmarks, 1)
    most = min(_MOST_WORK_BYTES, left / 2) / a_row
    block_rows = int(max(1, min(most, max(_LEAST_BLOCK_ROWS, -(-n_rows // _BLOCKS)))))
    work_bytes = min(block_rows, n_rows) * a_row
    remembered = max(int(left - work_bytes), 0)
    return DeviceRows(
        device,
        source,
        index,
        weight,
        holds_rows=holds_rows,
        work_bytes=work_bytes,
        block_rows=block_rows,
        budget=Budget(remembered, min(reserve, remembered // 4)),
        n_jobs=n_jobs,
        keeps_arrays=keeps_arrays,
    )
