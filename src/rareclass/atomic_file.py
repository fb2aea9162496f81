"""Files that are either written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from rareclass.errors import InputError
from rareclass.file_lock import being_written
from rareclass.locations import Location
from rareclass.remote_path import RemotePath
from rareclass.scratch_file import scratch_folder


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
