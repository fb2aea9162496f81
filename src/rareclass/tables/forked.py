"""Processes that were forked from one whose polars had threads: polars waits for them forever."""

import os
from pathlib import Path

from rareclass.errors import ErrorKind, InputError

_had_threads = _has_lost_threads = False


def _look_for_threads() -> None:
    """Note whether this process, about to be forked, has threads of polars; Linux only."""
    global _had_threads
    _had_threads = False
    for name in Path("/proc/self/task").glob("*/comm"):
        try:
            _had_threads |= name.read_text().startswith("polars-0")
        except OSError:  # a thread that has ended
            continue


def _lose_threads() -> None:
    global _has_lost_threads
    _has_lost_threads |= _had_threads


def check_not_forked() -> None:
    """Raise `InputError` in a process that would wait forever for threads left in its parent."""
    if _has_lost_threads:
        raise InputError(
            "This process was forked from one that had worked on tables, whose threads are missing "
            "here.",
            "Start processes with loky, spawn or forkserver, or fork before the first table.",
            ErrorKind.UNSUPPORTED,
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_look_for_threads, after_in_child=_lose_threads)
