"""Files that are whole or absent: written aside and renamed, locked while they are written."""

import atexit
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol

from rareclass.errors import InputError
from rareclass.remote import RemotePath
from rareclass.scratch_file import scratch_folder

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


class Location(Protocol):
    """Something that has a name for short, and as text one to be found by."""

    @property
    def name(self) -> str:
        """What it is called for short."""
        ...

    def __str__(self) -> str: ...


class Destination(Protocol):
    """Somewhere else than on this machine's disks, where whole files are taken to."""

    @property
    def suffix(self) -> str:
        """How the name of such a file ends."""
        ...

    def put(self, file: Path) -> None:
        """Take a file, whole or not at all."""
        ...


@contextmanager
def replacing(path: Path | Destination) -> Iterator[Path]:
    """Yield a temporary file beside `path`, which takes its place on success.

    For another destination it is a file of the scratch folder, which is taken there on success.
    When the block ends normally the file is flushed to disk and renamed over `path`; when it
    raises (Ctrl-C included) the temporary file is removed and `path` is as it was.

    Raises `InputError` when the folder does not exist or cannot be written to, the disk is full, or
    another process is writing the file.
    """
    if not isinstance(path, Path):
        with tempfile.TemporaryDirectory(prefix="rareclass-", dir=scratch_folder()) as folder:
            temporary = Path(folder, f"whole{path.suffix}")
            yield temporary
            try:
                path.put(temporary)
            except InputError as error:
                raise _kept(temporary, error) from None
        return
    with being_written(path):
        temporary = _temporary_beside(path)
        try:
            yield temporary
            flush_to_disk(temporary)
            os.replace(temporary, path)
        except OSError as error:
            raise _unwritable(path, error) from error
        finally:
            temporary.unlink(missing_ok=True)


def check_writable(path: Path, option: str = "--out") -> None:
    """Raise `InputError` now when `path`, which `option` named, could not be written later."""
    if isinstance(path, RemotePath):
        path.check_writable(option)
        return
    if os.path.isdir(path):
        raise InputError(f"{option} {path} is a folder.", "Give the name of a file.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(
            f"{option} {path} is a pipe or a device.", "Give the name of a regular file."
        )
    _temporary_beside(path).unlink()


def check_not_input(path: Path, option: str, inputs: Mapping[str, Location]) -> None:
    """Raise `InputError` when `path` is one of the files read, `inputs` by their names."""
    for what, read in inputs.items():
        if isinstance(path, RemotePath) and path == read:
            raise InputError(f"{option} {path} is {what}.", "Give another name.")
        if not isinstance(path, Path) or not isinstance(read, Path):
            continue
        if os.path.exists(path) and os.path.exists(read) and os.path.samefile(path, read):
            raise InputError(f"{option} {path} is {what}.", "Give another name.")


def check_not_inside(path: Path, option: str, read: Location) -> None:
    """Raise `InputError` when `path` would be a part of the table that a folder is."""
    if not isinstance(read, Path | RemotePath):
        return
    if isinstance(path, RemotePath) != isinstance(read, RemotePath):
        return
    if read.is_dir() and read.resolve() in path.resolve().parents:
        raise InputError(
            f"{option} {path} is inside the folder to be read, and would be a part of its table.",
            "Choose another folder.",
        )


def flush_to_disk(path: Path) -> None:
    """Return once the file is on the disk and not only in the machine's memory."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _temporary_beside(path: Path) -> Path:
    folder = path.parent
    if not os.path.isdir(folder):
        what = "is not a folder" if os.path.exists(folder) else "does not exist"
        raise InputError(
            f"Cannot write {path}: {folder} {what}.", f"Create it first: mkdir -p {folder}"
        )
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{path.stem}-", suffix=path.suffix)
    except OSError as error:
        raise _unwritable(path, error) from error
    os.close(handle)
    with suppress(OSError):  # some file systems have no modes
        os.chmod(name, 0o666 & ~_umask())  # mkstemp makes files that only the owner may read
    return Path(name)


def _kept(file: Path, error: InputError) -> InputError:
    """The error of a file that could not be taken where it belongs, and stays here instead."""
    handle, name = tempfile.mkstemp(prefix="rareclass-", suffix=file.suffix, dir=scratch_folder())
    os.close(handle)
    os.replace(file, name)
    return InputError(error.message, f"{error.remedy} What was to be written is in {name}.")


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"Cannot write {path}: {error.strerror or error}.",
        "Choose a folder that you may write to, on a disk with room.",
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
