"""Files that are whole or absent: written aside and renamed, locked while they are written."""

import atexit
import ctypes
import io
import os
import re
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Protocol

from rareclass.errors import ErrorKind, InputError, setting
from rareclass.remote import RemotePath
from rareclass.scratch_file import scratch_folder

if TYPE_CHECKING:
    from polars import DataFrame

# Endings of tables that are written, CSV the first.
TABLE_SUFFIXES = (".csv", ".parquet", ".pq")
# Attempts to lock a file that others remove in between.
_TRIES = 20
# Attempts to remove a folder into which others still write, and seconds between them.
_MOST_REMOVALS, _BETWEEN_REMOVALS = 100, 0.05
# Bytes of a name to which others can be added: file systems take 255.
_LONG_NAME = 200
# Arguments of Linux' renameat2: paths as they stand; exchange the two.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class Location(Protocol):
    """Path, URL or query: its text is where it is found, its name is short."""

    @property
    def name(self) -> str:
        """Short name."""

    def __str__(self) -> str: ...


@contextmanager
def replacing(path: Path, like: Path | None = None) -> Iterator[Path]:
    """Yield a temporary file beside `path`, which takes its place on success.

    For a URL it is a file of the scratch folder, which is copied there on success.
    When the block ends normally the file is flushed to disk and renamed over `path`, or over the
    file that a link leads to, and has the permissions of the former file, or of `like`; when it
    raises (Ctrl-C included) the temporary file is removed and `path` is as it was.

    Raises `InputError` when the folder does not exist or cannot be written to, the disk is full, or
    another process is writing the file.
    """
    if isinstance(path, RemotePath):
        with tempfile.TemporaryDirectory(prefix="rareclass-", dir=scratch_folder()) as folder:
            temporary = Path(folder, f"whole{path.suffix}")
            yield temporary
            try:
                path.put(temporary)
            except InputError as error:
                raise _kept(temporary, error) from None
        return
    with being_written(path), writing(path):
        target = _behind_links(path)
        temporary = _temporary_beside(target, like or target)
        try:
            yield temporary
            flush_to_disk(temporary)
            _take_permissions(temporary, like or target)
            os.replace(temporary, target)
            sync_folder(target.parent)
        finally:
            temporary.unlink(missing_ok=True)


def csv_bytes(frame: "DataFrame", **options: Any) -> memoryview:
    """Return a data frame as CSV, to be written by Python; `options` are those of polars.

    Older releases of polars say nothing when the last bytes that they write have no room.
    """
    content = io.BytesIO()
    frame.write_csv(content, **options)
    return content.getbuffer()


def write_table(path: Path, frame: "DataFrame") -> None:
    """Write a data frame as Parquet or, by any other ending, as CSV: whole or not at all."""
    with replacing(path) as temporary:
        if path.suffix.lower() in TABLE_SUFFIXES[1:]:
            frame.write_parquet(temporary)
        else:
            temporary.write_bytes(csv_bytes(frame))


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder beside `path`, which takes its place with all its files on success.

    Folder and files have the permissions of those that they replace. When the block raises, the
    new folder is removed and `path` is as it was. On Linux the two are exchanged in one step. On
    other systems a process that is killed between two renames leaves the former folder beside
    `path`, and the next call puts it back.

    Raises `InputError` as `replacing` does.
    """
    target = path.resolve()
    aside, former = _name_beside(target), target.with_name(f".{_shortened(target.name)}-former")
    with being_written(path), writing(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        if former.exists() and not target.exists():
            os.replace(former, target)
        try:
            aside.mkdir(0o700 if target.exists() else 0o777)
            yield aside
            for file in aside.iterdir():
                flush_to_disk(file)
                _take_permissions(file, target / file.name)
            _take_permissions(aside, target)
            if not (target.exists() and _exchange(aside, target)):
                _rename_over(aside, target, former)
            sync_folder(target.parent)
        finally:
            _remove_folder(aside)
            if target.exists():
                _remove_folder(former)


@contextmanager
def writing(
    path: Location, remedy: str = "Choose a folder that you may write to, on a disk with room."
) -> Iterator[None]:
    """Raise `InputError` in place of an `OSError` of what the block does to a file or folder."""
    try:
        yield
    except OSError as error:
        raise ErrorKind.UNWRITABLE.error(
            f"Cannot write {path}: {error.strerror or error}.", remedy
        ) from error


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return False where the system cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):  # another system than Linux
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0)


def _rename_over(aside: Path, target: Path, former: Path) -> None:
    """Rename a folder to `target`; one that is there becomes `former` until then."""
    if target.exists():
        _remove_folder(former)
        os.replace(target, former)
    try:
        os.replace(aside, target)
    except OSError:
        if former.exists():
            os.replace(former, target)
        raise


def _remove_folder(folder: Path) -> None:
    """Remove a folder into which tasks that cannot be stopped may still be writing."""
    for _ in range(_MOST_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_BETWEEN_REMOVALS)


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a rename in it outlives a power cut."""
    if os.name != "nt":  # Windows opens no folders; its renames are on disk when they return
        flush_to_disk(folder)


def flush_to_disk(path: Path) -> None:
    """Return once a file or folder is on the disk and not only in the machine's memory."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _take_permissions(new: Path, former: Path) -> None:
    """Give a file or folder the owner and the mode of the one that it replaces, if any.

    Where the group cannot be kept, nobody else gains what it was allowed.
    """
    try:
        old = os.stat(former)
    except OSError:
        return
    now = os.stat(new)
    with suppress(OSError):  # only the superuser gives a file to another owner
        if old.st_uid != now.st_uid:
            os.chown(new, old.st_uid, -1)
    kept = stat.S_IMODE(old.st_mode)
    try:
        if old.st_gid != now.st_gid:
            os.chown(new, -1, old.st_gid)
    except OSError:
        kept &= ~stat.S_IRWXG
    with suppress(OSError):  # a disk without modes
        os.chmod(new, kept)


def _behind_links(path: Path) -> Path:
    return Path(os.path.realpath(path)) if os.path.islink(path) else path


def _temporary_beside(path: Path, former: Path) -> Path:
    """Make an empty file beside `path`; where it will replace `former`, only its owner reads it."""
    folder = path.parent
    if not os.path.isdir(folder):
        what, remedy = "does not exist", f"Create it first: mkdir -p {quote(str(folder))}"
        there = next(each for each in (folder, *folder.parents) if os.path.exists(each))
        if not os.path.isdir(there):
            folder, what, remedy = there, "is not a folder", "Choose another name."
        raise ErrorKind.UNWRITABLE.error(f"Cannot write {path}: {folder} {what}.", remedy)
    temporary = _name_beside(path)
    with writing(path):
        # Not by `tempfile`: a new file obeys the umask.
        mode = 0o600 if os.path.exists(former) else 0o666
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    return temporary


def _name_beside(path: Path) -> Path:
    return path.with_name(f".{_shortened(path.stem)}-{uuid.uuid4().hex[:12]}{path.suffix}")


def _shortened(name: str) -> str:
    """Return a name that leaves room for more letters; a long one is replaced by its digest."""
    written = os.fsencode(name)
    return name if len(written) <= _LONG_NAME else blake2b(written, digest_size=16).hexdigest()


def _remove_killed(path: Path) -> None:
    """Remove what killed processes left of a file or folder that this process alone writes now."""
    stem, suffix = map(re.escape, (_shortened(path.stem), path.suffix))
    name = re.compile(rf"\.{stem}-[0-9a-f]{{12}}{suffix}")
    with suppress(OSError):
        for left in [each for each in path.parent.iterdir() if name.fullmatch(each.name)]:
            _remove_folder(left) if left.is_dir() else left.unlink(missing_ok=True)


def _kept(file: Path, error: InputError) -> InputError:
    """Keep a file that could not be copied to its destination, and name it in the error."""
    handle, name = tempfile.mkstemp(prefix="rareclass-", suffix=file.suffix, dir=scratch_folder())
    os.close(handle)
    os.replace(file, name)
    remedy = f"{error.remedy} What was to be written is in {name}."
    return error.kind.error(error.message, remedy)


def check_writable(path: Path, option: str) -> None:
    """Raise `InputError` now where `path`, the value of `option`, could not be written later."""
    if isinstance(path, RemotePath):
        path.check_writable(option)
        return
    if os.path.exists(path) and not os.path.isfile(path):
        what = "folder" if os.path.isdir(path) else "pipe or a device"
        raise ErrorKind.UNWRITABLE.error(f"{option} {path} is a {what}.", "Name a regular file.")
    target = _behind_links(path)
    _temporary_beside(target, target).unlink(missing_ok=True)


def check_output(
    path: Path,
    option: str,
    overwrite: bool,
    inputs: Mapping[str, Location],
    may_be_inside: bool = False,
    suffixes: Sequence[str] = (),
) -> None:
    """Refuse an output that cannot be written, replaces what is read, or lies in a folder read.

    `suffixes` are those of its formats: any other is refused.
    """
    if suffixes:
        check_suffix(path, option, *suffixes)
    check_not_input(path, option, inputs)
    for read in () if may_be_inside else inputs.values():
        check_not_inside(path, option, read)
    check_new(path, option, overwrite)
    check_writable(path, option)


def check_new(path: Path, option: str, overwrite: bool) -> None:
    """Raise `InputError` when a file would be replaced that the user did not say may be."""
    if isinstance(path, RemotePath):
        path.check_writable(option)
    if path.is_file() and not overwrite:
        remedy = f"Give another name, or {setting('overwrite')} to replace it."
        raise ErrorKind.EXISTING_FILE.error(f"{option} {path} exists already.", remedy)


def check_suffix(path: Path, option: str, *suffixes: str) -> None:
    """Raise `InputError` where the name of an output, the value of `option`, names no format."""
    if path.suffix.lower() not in suffixes:
        raise ErrorKind.SETTING.error(f"{option} {path} does not end in {' or '.join(suffixes)}.")


def check_own_folder(folder: Path, option: str, others: Iterable[str]) -> None:
    """Raise `InputError` where a folder, the value of `option`, is a file or holds `others`."""
    if folder.exists() and not folder.is_dir():
        raise ErrorKind.EXISTING_FILE.error(f"{option} {folder} is a file.", "Name a folder.")
    for other in others:
        message = f"{option} {folder} holds other files, such as {other!r}."
        raise ErrorKind.EXISTING_FILE.error(message, "Give a new folder, or an empty one.")


def check_not_input(path: Path, option: str, inputs: Mapping[str, Location]) -> None:
    """Raise `InputError` where `path` is one of the files read, `inputs` by their names."""
    for what, read in inputs.items():
        is_same = path == read
        if isinstance(path, Path) and isinstance(read, Path):
            is_same = path.resolve() == read.resolve()
            is_same |= path.exists() and read.exists() and path.samefile(read)
        if is_same:
            raise ErrorKind.EXISTING_FILE.error(f"{option} {path} is {what}.", "Give another name.")


def check_not_inside(path: Path, option: str, read: Location) -> None:
    """Raise `InputError` where `path` would become a part of the table in the folder `read`."""
    if not isinstance(read, Path | RemotePath):
        return
    is_far = isinstance(path, RemotePath), isinstance(read, RemotePath)
    if is_far[0] == is_far[1] and read.is_dir() and read.resolve() in path.resolve().parents:
        raise ErrorKind.EXISTING_FILE.error(
            f"{option} {path} is inside the folder to be read, and would be a part of its table.",
            "Choose another folder.",
        )


# -- locks ---------------------------------------------------------------------------------------


@dataclass
class _Lock:
    """Lock of this process on a file or folder, counted."""

    path: Path  # of the lock file
    handle: int | None  # None where there are no locks
    process: int  # a child process inherits the table of locks, and holds none of them
    times: int = 0


_locks: dict[str, _Lock] = {}  # by real path


@contextmanager
def being_written(path: Path, what: str = "") -> Iterator[None]:
    """Keep other processes from writing a file or folder, `what` in messages, until the block ends.

    The same process may nest such blocks. Where there are no locks, as on some network disks,
    nothing is kept out.

    Raises `InputError`, with the number of the other process, where one is writing it.
    """
    name = os.path.realpath(path)
    if name not in _locks:
        target = Path(name)
        lock = target.with_name(f".{_shortened(target.name)}.lock")
        held = _Lock(lock, lock_file(lock, what or str(path)), os.getpid())
        if held.handle is not None:
            _remove_killed(target)
        _locks[name] = held
    held = _locks[name]
    held.times += 1
    try:
        yield
    finally:
        held.times -= 1
        if not held.times:
            if held.handle is not None and held.process == os.getpid():
                release_file(held.handle, held.path, remove=True)
            del _locks[name]


@atexit.register
def _remove_left_over() -> None:
    """Remove lock files that `being_written` did not, because of a second Ctrl-C."""
    for held in _locks.values():
        if held.handle is not None and held.process == os.getpid():
            with suppress(OSError):
                held.path.unlink()


def lock_file(lock: Path, what: str) -> int | None:
    """Open and lock a lock file; returns its handle, or None where there are no locks.

    Raises `InputError` where another process holds the lock.
    """
    for _ in range(_TRIES):
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:  # writing the file itself will say why
            return None
        try:
            _lock(handle)
        except BlockingIOError:
            raise _in_use(handle, what) from None
        except OSError:
            os.close(handle)
            return None
        # Another process may have removed the file in the meantime.
        with suppress(OSError):
            if os.path.samestat(os.fstat(handle), os.stat(lock)):
                with suppress(OSError):  # without room for the number the lock holds all the same
                    os.truncate(handle, 0)
                    os.write(handle, str(os.getpid()).encode())
                return handle
        os.close(handle)
    return None


def release_file(handle: int, lock: Path, remove: bool) -> None:
    """Unlock a lock file; it is removed while it is locked, so that nobody locks a removed file."""
    if remove:
        with suppress(OSError):  # Windows removes no file that is open
            lock.unlink()
    os.close(handle)
    if remove and os.name == "nt":
        with suppress(OSError):
            lock.unlink()


def _in_use(handle: int, what: str) -> InputError:
    owner = ""
    with suppress(OSError):
        owner = os.read(handle, 20).decode(errors="replace").strip()
    os.close(handle)
    by = f", process {owner}" if owner.isdecimal() else ""
    return ErrorKind.LOCKED.error(
        f"{what} is in use by another running rareclass{by}.",
        "Wait for it to end, stop it with Ctrl-C, or give another name.",
    )


def _lock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        # A byte far beyond the number of the process, which others must be able to read.
        os.lseek(handle, 2**30, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            raise BlockingIOError from None
        finally:
            os.lseek(handle, 0, os.SEEK_SET)
        return
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
