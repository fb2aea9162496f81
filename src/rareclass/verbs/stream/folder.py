"""The folder of a stream: made, claimed by one process at a time, never somebody else's."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rareclass.errors import InputError
from rareclass.verbs.stream.checkpoint import checkpoints_in

LOCK = "rareclass-stream.lock"


@contextmanager
def claimed(folder: Path) -> Iterator[Path]:
    """Make the folder if need be and keep other processes out of it until the block ends.

    The lock is the operating system's: it goes with the process, however that ends.

    Parameters
    ----------
    folder : Path
        Where the stream keeps its checkpoints, log, scores and rejected rows.

    Raises
    ------
    InputError
        When it cannot be made, holds files of something else, or is in use.
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(
            f"--checkpoint {folder} is a file.", "Give the name of a folder."
        ) from None
    except OSError as error:
        raise _unusable(folder, error) from error
    _check_ours(folder)
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise _unusable(folder, error) from error
    is_locked = False
    try:
        _lock(handle, folder)
        is_locked = True
        _remove_left_over(folder)
        yield folder
    finally:
        if is_new and is_locked:  # otherwise it is another process's, which has just made it too
            _remove_if_unused(folder)
        os.close(handle)


def _check_ours(folder: Path) -> None:
    """Files are removed and cut here: a folder that a stream did not make is left alone."""
    if (folder / LOCK).exists() or checkpoints_in(folder):
        return
    other = next(iter(sorted(folder.iterdir())), None)
    if other is not None:
        raise InputError(
            f"--checkpoint {folder} holds files of something else, {other.name!r} for one.",
            "Give a new folder, or an empty one.",
        )


def _lock(handle: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"--checkpoint {folder} is in use by another running rareclass stream.",
            "Wait for it to end, stop it with Ctrl-C, or give another folder.",
        ) from None
    except OSError:  # a network disk without locks: nothing can be said
        return


def _remove_left_over(folder: Path) -> None:
    """Remove temporary files of a process that was killed while it wrote a checkpoint."""
    for path in folder.glob(".checkpoint-*.npz"):
        path.unlink()


def _remove_if_unused(folder: Path) -> None:
    """Leave nothing behind a stream that could not begin."""
    if [path.name for path in folder.iterdir()] == [LOCK]:
        with suppress(OSError):
            (folder / LOCK).unlink()
            folder.rmdir()


def _unusable(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"Cannot use the folder {folder}: {error.strerror}.", "Give another with --checkpoint."
    )
