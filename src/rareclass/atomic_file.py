"""Files that are either written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rareclass.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`, which takes the place of `path` on success.

    When the block ends normally the file is flushed to disk and renamed over `path`; when it
    raises (Ctrl-C included) the temporary file is removed and `path` is as it was.

    Parameters
    ----------
    path : Path
        The file to write.

    Yields
    ------
    Path
        An empty temporary file in the same folder, with the same suffix.

    Raises
    ------
    InputError
        When the folder does not exist or cannot be written to.
    """
    temporary = _temporary_beside(path)
    try:
        yield temporary
        _flush_to_disk(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path, option: str = "--out") -> None:
    """Raise `InputError` now when `path` could not be written later.

    Parameters
    ----------
    path : Path
        The file that will be written.
    option : str
        The option that named it, for the message.
    """
    if path.is_dir():
        raise InputError(f"{option} {path} is a folder.", "Give the name of a file.")
    _temporary_beside(path).unlink()


def _temporary_beside(path: Path) -> Path:
    folder = path.parent
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise InputError(
            f"Cannot write {path}: {folder} {what}.", f"Create it first: mkdir -p {folder}"
        )
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{path.stem}-", suffix=path.suffix)
    except OSError as error:
        raise InputError(
            f"Cannot write {path}: {error.strerror}.",
            "Choose a folder that you may write to.",
        ) from error
    os.close(handle)
    os.chmod(name, 0o666 & ~_umask())  # mkstemp makes files that only the owner may read
    return Path(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _flush_to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
