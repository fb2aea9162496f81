"""One writer at a time: what a process writes is its own until it is done, or gone.

The lock is the operating system's, on a small file beside what is written: it goes with the
process, however that ends, and one that a dead process left behind stops nobody.
"""

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

from rareclass.errors import InputError

# How often a file that was removed while it was opened is opened anew.
_TRIES = 20
_held: dict[str, SimpleNamespace] = {}  # by name: what this process holds, and how often


@contextmanager
def being_written(path: Path, what: str = "") -> Iterator[None]:
    """Keep other processes from writing a file or folder until the block ends.

    `what` it is called in messages. The same process may say so again, within. Where there are no
    locks, as on some network disks, nothing is kept out.

    Raises `InputError`, with the number of the other process, where one is writing it.
    """
    take_hold(path, what)
    try:
        yield
    finally:
        let_go(path)


def take_hold(path: Path, what: str = "") -> None:
    """Begin what `being_written` does; `let_go` ends it."""
    name = _name_of(path)
    held = _held.get(name)
    if held is None:
        lock = path.parent / f".{path.name}.lock"
        held = _held[name] = SimpleNamespace(handle=lock_file(lock, what or str(path)), times=0)
        held.lock, held.process = lock, os.getpid()
    held.times += 1


def let_go(path: Path) -> None:
    """End what `take_hold` began."""
    name = _name_of(path)
    held = _held.get(name)
    if held is None:
        return
    held.times -= 1
    if held.times:
        return
    if held.handle is not None and held.process == os.getpid():
        release_file(held.handle, held.lock, remove=True)
    del _held[name]


@atexit.register
def _remove_left_over() -> None:
    """What a second Ctrl-C kept `let_go` from removing."""
    for held in _held.values():
        if held.handle is not None and held.process == os.getpid():
            with suppress(OSError):
                held.lock.unlink()


def lock_file(lock: Path, what: str) -> int | None:
    """An open handle of a lock file that no other process holds; None where there are no locks.

    Raises `InputError` where another does.
    """
    for _ in range(_TRIES):
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:  # who writes there is told why it cannot
            return None
        try:
            _lock(handle)
        except BlockingIOError:
            raise _refused(handle, what) from None
        except OSError:
            os.close(handle)
            return None
        if _is_still(handle, lock):
            os.truncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
            return handle
        os.close(handle)
    return None


def release_file(handle: int, lock: Path, remove: bool) -> None:
    """Let others have it; the file is removed while it is held, so that nobody has it half."""
    if remove:
        with suppress(OSError):  # Windows removes no file that is open
            lock.unlink()
    os.close(handle)
    if remove and os.name == "nt":
        with suppress(OSError):
            lock.unlink()


def _refused(handle: int, what: str) -> InputError:
    owner = ""
    with suppress(OSError):
        owner = os.read(handle, 20).decode(errors="replace").strip()
    os.close(handle)
    by = f", process {owner}" if owner.isdecimal() else ""
    return InputError(
        f"{what} is in use by another running rareclass{by}.",
        "Wait for it to end, stop it with Ctrl-C, or give another name.",
    )


def _lock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        # A byte far beyond the number of the process, which others are to read.
        os.lseek(handle, 2**30, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            raise BlockingIOError from None
        finally:
            os.lseek(handle, 0, os.SEEK_SET)
        return
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_still(handle: int, lock: Path) -> bool:
    """Whether the file that was locked is the one of this name: it may have been removed since."""
    try:
        here, there = os.fstat(handle), os.stat(lock)
    except OSError:
        return False
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _name_of(path: Path) -> str:
    return os.path.realpath(path)
