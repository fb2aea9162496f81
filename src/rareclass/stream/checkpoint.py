"""The folder of a stream, one process at a time: its whole state on disk, the last two kept."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rareclass.errors import InputError
from rareclass.files import lock_file, release_file, replacing
from rareclass.model.archive import UNREADABLE, DamagedArchiveError, check_archive, seal
from rareclass.tables.folders import STREAM_LOCK as LOCK

FORMAT = 1
KEPT = 2
_JSON = "json"
_ARRAY = "/array"
_NAME = re.compile(r"checkpoint-(\d{15})\.npz")
_UNREADABLE = (*UNREADABLE, DamagedArchiveError, ValueError, KeyError, TypeError, RecursionError)


class Loaded(NamedTuple):
    """A checkpoint that was read."""

    path: Path
    state: dict[str, Any]
    damaged: tuple[Path, ...] = ()  # newer ones that could not be read


def save_checkpoint(folder: Path, rows: int, state: dict[str, Any]) -> Path:
    """Write a checkpoint, flush it to disk, rename it into place and remove old ones.

    The state is nested dictionaries of arrays and of values that JSON can write, with text as
    keys. No objects: nothing in a checkpoint is ever executed.

    Raises `InputError` when the folder cannot be written to, or the disk is full: the older ones
    stay. `TypeError` for anything that is neither an array of numbers nor JSON.
    """
    arrays: dict[str, np.ndarray] = {}
    plain = _take_out_arrays({"format": FORMAT, "rows": rows, "state": state}, "", arrays)
    text = json.dumps(plain, default=_as_plain)
    arrays[_JSON] = np.frombuffer(text.encode(), np.uint8)
    path = folder / f"checkpoint-{rows:015d}.npz"
    with replacing(path) as temporary:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        seal(temporary)
    sync_folder(folder)
    for old in checkpoints_in(folder)[KEPT:]:
        old.unlink(missing_ok=True)
    return path


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read one checkpoint.

    Raises `InputError` when the file is damaged, or of a format that this version does not know.
    """
    try:
        check_archive(path)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        plain = json.loads(arrays.pop(_JSON).tobytes())
        found = plain["format"]
        state = _put_back_arrays(plain["state"], arrays) if found == FORMAT else {}
    except _UNREADABLE as error:
        raise InputError(
            f"The checkpoint {path} is damaged or cut short.", "Use the one before it."
        ) from error
    if found != FORMAT:
        raise InputError(
            f"{path} has format {found}, this version reads {FORMAT}.",
            "Install the version that made it, or begin anew in another folder.",
        )
    return state


@contextmanager
def sound_state(path: Path) -> Iterator[None]:
    """Name the checkpoint where its state is not one that a stream writes."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # the state of a file can be wrong in any way
        said = str(error).strip().split("\n")[0][:200].rstrip(".")
        raise InputError(
            f"The checkpoint {path} is damaged: its state is none of a stream: "
            f"{type(error).__name__} {said}.",
            "Remove it: the one before it is taken then. Or begin anew in another folder.",
        ) from error


def load_newest(folder: Path) -> Loaded | None:
    """Read the newest checkpoint of a folder that is not damaged; None when there is none.

    Raises `InputError` when there are checkpoints, and all of them are damaged.
    """
    damaged: list[Path] = []
    for path in checkpoints_in(folder):
        try:
            return Loaded(path, load_checkpoint(path), tuple(damaged))
        except InputError as error:
            if not isinstance(error.__cause__, _UNREADABLE):
                raise
            damaged.append(path)
    if damaged:
        raise InputError(
            f"No checkpoint in {folder} can be read: {', '.join(path.name for path in damaged)}.",
            "Restore one from a copy, or begin anew in another folder.",
        )
    return None


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder, the newest first."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if _NAME.fullmatch(path.name)), reverse=True)


def is_checkpoint(path: Path) -> bool:
    """Whether a name given for a model is a folder of a stream, or one of its checkpoints."""
    return path.suffix == ".npz" or bool(checkpoints_in(path))


def rows_of(path: Path) -> int:
    """Return the records of the stream that a checkpoint has behind it, from its name."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise ValueError(f"{path} is not the name of a checkpoint.")
    return int(match[1])


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a rename in it outlives a power cut."""
    if os.name == "nt":  # Windows opens no folders; its renames are on disk when they return
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _take_out_arrays(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """Move arrays to `arrays`; each leaves behind the name that it has there."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value) or _ARRAY in value:
            raise TypeError(f"a checkpoint cannot hold the keys of {name or 'the state'}")
        return {key: _take_out_arrays(item, f"{name}.{key}", arrays) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError(f"a checkpoint cannot hold objects: {name}")
        # Keys may be any text, a category of the data for one; numbers keep the names apart.
        member = f"{len(arrays):03d}{re.sub(r'[^A-Za-z0-9_.]', '_', name)[:80]}"
        arrays[member] = value
        return {_ARRAY: member}
    return value


def _put_back_arrays(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(value, dict):
        return value
    if value.keys() == {_ARRAY}:
        return arrays[value[_ARRAY]]
    return {key: _put_back_arrays(item, arrays) for key, item in value.items()}


def _as_plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a checkpoint cannot hold {type(value).__name__}")


@contextmanager
def claimed(folder: Path) -> Iterator[Path]:
    """Make the folder if need be and keep other processes out of it until the block ends.

    The lock is the operating system's: it goes with the process, however that ends.

    Raises `InputError` when it cannot be made, holds files of something else, or is in use.
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
        (folder / LOCK).touch()
    except OSError as error:
        raise _unusable(folder, error) from error
    handle = lock_file(folder / LOCK, f"--checkpoint {folder}")
    try:
        _remove_left_over(folder)
        yield folder
    finally:
        if is_new:
            _remove_if_unused(folder)
        if handle is not None:
            release_file(handle, folder / LOCK, remove=False)


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
