"""Blocks of files that are far away, kept in a nameless file on this machine's disk."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rareclass.scratch_file import Scratch

BLOCK_BYTES = 1 << 20
# Blocks that are fetched at once where a file is read from its beginning on.
_AHEAD = 8

Fetch = Callable[[int, int], bytes]


class BlockStore:
    """What has been read of files, by their names; every block is fetched once.

    With `most` blocks, at least 64, the one that was not used for longest makes room for a new one,
    and is fetched again if it is needed again. The file on disk is made when a first block comes.

    Examples
    --------
    >>> store, fetched = BlockStore(), []
    >>> def fetch(start, end):
    ...     fetched.append((start, end))
    ...     return bytes(range(start, end))
    >>> part = bytearray(3)
    >>> store.read("a", 10, fetch, part, 8), part[:2], store.read("a", 10, fetch, part, 0), fetched
    (2, bytearray(b'\\x08\\t'), 3, [(0, 10)])
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._file: Scratch | None = None
        self._place: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, name: str, size: int, fetch: Fetch, buffer: Any, offset: int) -> int:
        """Fill a buffer from byte `offset` of a file of `size` bytes on; return how many."""
        view = memoryview(buffer).cast("B")
        wanted = max(0, min(len(view), size - offset))
        done = 0
        while done < wanted:
            block, start = divmod(offset + done, BLOCK_BYTES)
            length = min(BLOCK_BYTES - start, wanted - done)
            with self._lock:
                if (name, block) not in self._place:
                    self._fetch(name, size, fetch, block, (offset + wanted - 1) // BLOCK_BYTES)
                self._place.move_to_end((name, block))
                assert self._file is not None
                at = self._place[name, block] * BLOCK_BYTES + start
                self._file.read_into(view[done : done + length], at)
            done += length
        return wanted

    def _fetch(self, name: str, size: int, fetch: Fetch, first: int, last: int) -> None:
        """Fetch the block `first`, with those that follow up to `last` or are likely to be next."""
        if (name, first - 1) in self._place:
            last = max(last, first + _AHEAD - 1)
        last = min(last, first + 4 * _AHEAD - 1, (size - 1) // BLOCK_BYTES)
        end = first
        while end < last and (name, end + 1) not in self._place:
            end += 1
        data = fetch(first * BLOCK_BYTES, min(size, (end + 1) * BLOCK_BYTES))
        for block in range(first, end + 1):
            start = (block - first) * BLOCK_BYTES
            self._keep(name, block, data[start : start + BLOCK_BYTES])

    def _keep(self, name: str, block: int, data: bytes) -> None:
        if self._file is None:
            self._file = Scratch()
        place = len(self._place)
        if self._most is not None and place >= self._most:
            _, place = self._place.popitem(last=False)
        if len(data) < BLOCK_BYTES:  # the last one of its file
            data = data.ljust(BLOCK_BYTES, b"\0")
        self._file.write_at(data, place * BLOCK_BYTES)
        self._place[name, block] = place
