"""Refusals of the operating system, put into a command at its n-th write, sync, rename or array."""

import builtins
import errno
import io
import os
import threading
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest

from draws import thorough

# What a system may answer to each operation.
ERRORS = {
    "open": (errno.EACCES, errno.ENOSPC, errno.EMFILE, errno.EROFS),
    "write": (errno.ENOSPC, errno.EIO, errno.EDQUOT),
    "sync": (errno.EIO, errno.ENOSPC),
    "rename": (errno.EACCES, errno.EIO, errno.ENOSPC),
    "make folder": (errno.ENOSPC, errno.EACCES, errno.EIO),
}
# Of so many writes of a file after each other, these are counted; thorough runs count all.
_ALIKE, _FIRST = 32, 3
_ARRAYS = ("empty", "zeros", "ones", "full", "concatenate", "empty_like", "zeros_like", "full_like")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Refusals:
    """Counts the operations on files below a folder, or new arrays, and refuses the n-th.

    `at` is the number of the first that is refused, from 0; None refuses nothing. With `lasting`,
    all later ones are refused as well, as a full disk does. `choice` picks among the errors that an
    operation may meet. Of many writes of one file some are counted.
    """

    def __init__(self, folder, at=None, lasting=False, choice=0):
        self.folder, self.at, self.lasting, self.choice = str(folder), at, lasting, choice
        self.seen: list[str] = []
        self._times = Counter[tuple[str, object]]()
        self._lock = threading.Lock()

    @property
    def has_refused(self):
        return self.at is not None and len(self.seen) > self.at

    def meet(self, operation, what):
        with self._lock:
            self._times[operation, what] += 1
            is_like_those_before = self._times[operation, what] % _ALIKE > _FIRST
            if operation == "write" and is_like_those_before and not thorough():
                return
            number = len(self.seen)
            self.seen.append(f"{operation} {what}")
        if self.at is None or number < self.at or (number > self.at and not self.lasting):
            return
        if operation == "array":
            raise MemoryError(f"refused: array {number}")
        errors = ERRORS[operation]
        code = errors[(number + self.choice) % len(errors)]
        raise OSError(code, os.strerror(code), str(what))

    def is_below(self, what):
        if isinstance(what, int):
            try:
                what = os.readlink(f"/proc/self/fd/{what}")
            except OSError:
                return False
        return os.path.abspath(os.fsdecode(what)).startswith(self.folder)  # type: ignore[arg-type]


class _Raw(io.FileIO):
    refusals: Refusals

    def write(self, data):
        self.refusals.meet("write", self.name)
        return super().write(data)

    def truncate(self, size=None):
        self.refusals.meet("write", self.name)
        return super().truncate(size)


def _counting(refusals, file, mode, buffering=-1, encoding=None, errors=None, newline=None, **own):
    if own.get("opener") is None and not isinstance(file, int):
        refusals.meet("open", file)
    raw = _Raw(file, mode.replace("b", "").replace("t", ""), **own)
    raw.refusals = refusals
    if buffering == 0:
        return raw
    size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
    buffered = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw, size)
    if "b" in mode:
        return buffered
    return io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline, buffering == 1)


@contextmanager
def refusing_files(refusals):
    real_open, real_os_open = io.open, os.open

    def opened(file, mode="r", *more, **named):
        if {*mode} & {*"wax+"} and refusals.is_below(file):
            return _counting(refusals, file, mode, *more, **named)
        return real_open(file, mode, *more, **named)

    def os_opened(path, flags, mode=0o777, *, dir_fd=None):
        if flags & _WRITES and refusals.is_below(path):
            refusals.meet("open", path)
        return real_os_open(path, flags, mode, dir_fd=dir_fd)

    def counted(operation, real):
        def wrapped(what, *more, **named):
            if refusals.is_below(what):
                refusals.meet(operation, what)
            return real(what, *more, **named)

        return wrapped

    operations = {"replace": "rename", "rename": "rename", "fsync": "sync", "mkdir": "make folder"}
    operations |= dict.fromkeys(("write", "truncate", "ftruncate"), "write")
    with pytest.MonkeyPatch.context() as patch:
        for name, operation in operations.items():
            patch.setattr(os, name, counted(operation, getattr(os, name)))
        patch.setattr(os, "open", os_opened)
        patch.setattr(io, "open", opened)
        patch.setattr(builtins, "open", opened)
        yield


@contextmanager
def refusing_arrays(refusals):
    def counted(name, real):
        def wrapped(*given, **named):
            refusals.meet("array", name)
            return real(*given, **named)

        return wrapped

    with pytest.MonkeyPatch.context() as patch:
        for name in _ARRAYS:
            patch.setattr(np, name, counted(name, getattr(np, name)))
        yield
