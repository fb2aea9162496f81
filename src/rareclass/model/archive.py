"""The zip archives that models and checkpoints are: looked at before anything of them is read.

An archive says how large its members are, and an array in it how many numbers it has. Either may
lie, by accident or on purpose: what is said is held against the bytes that are there before memory
is taken for it. A digest of all members tells those that were changed or exchanged since.
"""

import hashlib
import math
import os
import zipfile
import zlib
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from rareclass.errors import ErrorKind, InputError, is_system_fault
from rareclass.files import replacing
from rareclass.machine import available_memory
from rareclass.stored import Stored, read_stored, write_stored

# Deflate packs to a thousandth at most; arrays of zeros come near.
_MOST_TIMES = 1032
# Models have a few hundred members, checkpoints fewer.
_MOST_MEMBERS = 100_000
_MOST_JSON = 2**28
_DIGEST = b"rareclass blake2b "
# What zipfile and NumPy raise on files that are damaged.
_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError,
    KeyError, TypeError, ValueError,
)  # fmt: skip


class DamagedArchiveError(Exception):
    """Fault of an archive, in a few words; "" where it is not known."""


def damaged(path: Path, why: str = "") -> InputError:
    """Return the error of a model file that is not as it was written; `why` in a few words."""
    because = f": {why}" if why else ""
    return ErrorKind.DAMAGED_FILE.error(
        f"The model file {path} is damaged or cut short{because}.", "Copy it again, or fit again."
    )


def in_brief(error: Exception) -> str:
    """Return the first line of an error's message, with the error's type where it says little."""
    said = str(error).strip().split("\n")[0][:200].rstrip(".")
    return said if isinstance(error, ValueError) and said else f"{type(error).__name__} {said}"


def write_archive(
    path: Path, stored: Stored, compress: bool = False, like: Path | None = None
) -> None:
    """Write a stored value with a digest; `path` is replaced only once the new file is whole.

    The file has the permissions of the former one, or of `like`.

    Raises `InputError` when `path` cannot be written.
    """
    with replacing(path, like) as temporary:
        with temporary.open("wb") as file:
            write_stored(file, stored, compress)
        seal(temporary)


def read_archive(path: Path) -> Stored | None:
    """Check an archive and read the value in it; None where it holds no stored value.

    Raises `DamagedArchiveError`.
    """
    try:
        if "json.npy" not in check_archive(path):
            return None
        with path.open("rb") as file:
            return read_stored(file)
    except _UNREADABLE as error:
        if is_system_fault(error):
            raise
        raise DamagedArchiveError("") from error


def check_archive(path: Path) -> set[str]:
    """Hold what a zip file says of its members, and arrays of themselves, against their bytes.

    Return the names of the members. Every member is unpacked once, a MiB at a time: O(bytes) time,
    O(1) memory. Where the file has a digest (`seal`), members are compared with it.

    Raises `DamagedArchiveError`, with the member and what is wrong with it.
    """
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        _check_entries(entries, file.seek(0, os.SEEK_END))
        for entry in entries:
            if entry.filename.endswith(".npy"):
                with archive.open(entry) as member:
                    _check_array(entry, member)
        digest = _digest_of(archive)
        if archive.comment and archive.comment != digest:
            raise DamagedArchiveError("its parts are not those that were written")
    return {entry.filename for entry in entries}


def seal(path: Path) -> None:
    """Write a digest of all members into a zip file, as its comment."""
    # Opened here: where a file cannot be opened, `zipfile` would make it anew and lose its content.
    with path.open("r+b") as file, zipfile.ZipFile(file, "a") as archive:
        archive.comment = _digest_of(archive)


def _check_entries(entries: list[zipfile.ZipInfo], n_bytes: int) -> None:
    """Check that each member has a plain name of its own, and that their sizes can be."""
    names = [entry.filename for entry in entries]
    if len(names) > _MOST_MEMBERS:
        raise DamagedArchiveError(f"it has {len(names):,} members")
    if any(entry.flag_bits & 1 for entry in entries):
        raise DamagedArchiveError("it is encrypted")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DamagedArchiveError(f"it has the member {_shown(twice)} twice")
    for name in names:
        parts = name.replace("\\", "/").split("/")
        if not name.isprintable() or len(name) > 500 or {"", ".."} & {*parts} or ":" in name:
            raise DamagedArchiveError(f"it has a member with the strange name {_shown(name)}")
    packed = sum(entry.compress_size for entry in entries)
    unpacked = sum(entry.file_size for entry in entries)
    if packed > n_bytes or unpacked > _MOST_TIMES * n_bytes:
        raise DamagedArchiveError(
            f"its members say that they take {unpacked:,} bytes, more than a file of {n_bytes:,} "
            "bytes can hold"
        )
    for entry in entries:
        if entry.filename.endswith(".json") and entry.file_size > _MOST_JSON:
            raise DamagedArchiveError(f"{_shown(entry.filename)} has {entry.file_size:,} bytes")
    if unpacked > available_memory():
        raise DamagedArchiveError(f"its members take {unpacked:,} bytes, more than memory has free")


def _check_array(entry: zipfile.ZipInfo, member: IO[bytes]) -> None:
    """Check that an array has as many bytes as its header says."""
    name = _shown(entry.filename)
    try:
        version = np.lib.format.read_magic(member)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = read(member)
    except Exception as error:  # text that is read as Python's can be wrong in any way
        raise DamagedArchiveError(f"{name} does not begin as an array does") from error
    if dtype.hasobject:
        raise DamagedArchiveError(f"{name} is an array of objects, which none of ours is")
    said, held = math.prod(shape) * dtype.itemsize, entry.file_size - member.tell()
    if min(shape, default=0) < 0 or said != held:
        raise DamagedArchiveError(
            f"{name} says that it is an array of shape {shape}, {said:,} bytes, and has {held:,}"
        )


def _digest_of(archive: zipfile.ZipFile) -> bytes:
    """Read all members to their ends; return one digest of them, in whatever order they stand."""
    digests, new_digest = {}, partial(hashlib.blake2b, digest_size=16)
    for entry in archive.infolist():
        with archive.open(entry) as member:
            digest = hashlib.file_digest(member, new_digest)  # type: ignore[arg-type]
            n_bytes = member.tell()
        if n_bytes != entry.file_size:
            raise DamagedArchiveError(f"{_shown(entry.filename)} is cut short")
        digests[entry.filename] = digest.digest()
    whole = new_digest()
    for name in sorted(digests):
        whole.update(name.encode() + b"\0" + digests[name])
    return _DIGEST + whole.hexdigest().encode()


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:80] + "...")
