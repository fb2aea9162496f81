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
from pathlib import Path
from typing import IO

import numpy as np

from rareclass.machine import available_memory

# Deflate packs to a thousandth at most; arrays of zeros come near.
_MOST_TIMES = 1032
# Models have a few hundred members, checkpoints fewer.
_MOST_MEMBERS = 100_000
_MOST_JSON = 2**28
_DIGEST = b"rareclass blake2b "
_CHUNK = 2**20


# What zipfile raises on files that are damaged, besides `DamagedArchiveError`.
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
    UnicodeDecodeError,
)


class DamagedArchiveError(Exception):
    """What is wrong with an archive, in a few words."""


def check_archive(path: Path) -> None:
    """Hold what a zip file says of its members, and arrays of themselves, against their bytes.

    Every member is unpacked once, a MiB at a time: O(bytes) time, O(1) memory. Where the file has
    a digest (`seal`), members are compared with it.

    Raises `DamagedArchiveError`, with the member and what is wrong with it.
    """
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        _check_names(entries)
        _check_sizes(entries, file.seek(0, os.SEEK_END))
        digests = {}
        for entry in entries:
            with archive.open(entry) as member:
                _check_array(entry, member)
            with archive.open(entry) as member:
                digests[entry.filename] = _digest_of(entry, member)
        sealed = archive.comment
    if sealed and sealed != _DIGEST + _of_all(digests):
        raise DamagedArchiveError("its parts are not those that were written")


def seal(path: Path) -> None:
    """Write a digest of all members into a zip file, as its comment."""
    with zipfile.ZipFile(path, "a") as archive:
        digests = {}
        for entry in archive.infolist():
            with archive.open(entry) as member:
                digests[entry.filename] = _digest_of(entry, member)
        archive.comment = _DIGEST + _of_all(digests)


def _check_names(entries: list[zipfile.ZipInfo]) -> None:
    """Each member has a plain name of its own: nothing is ever unpacked to disk, but by others."""
    names = [entry.filename for entry in entries]
    if len(names) > _MOST_MEMBERS:
        raise DamagedArchiveError(f"it has {len(names):,} members")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DamagedArchiveError(f"it has the member {_shown(twice)} twice")
    for name in names:
        parts = name.replace("\\", "/").split("/")
        if not name.isprintable() or len(name) > 500 or {"", ".."} & {*parts} or ":" in name:
            raise DamagedArchiveError(f"it has a member with the strange name {_shown(name)}")


def _check_sizes(entries: list[zipfile.ZipInfo], n_bytes: int) -> None:
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
    """An array has as many bytes as its header says."""
    if not entry.filename.endswith(".npy"):
        return
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
    told = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or told != entry.file_size - member.tell():
        raise DamagedArchiveError(
            f"{name} says that it is an array of shape {shape}, {told:,} bytes, and has "
            f"{entry.file_size - member.tell():,}"
        )


def _digest_of(entry: zipfile.ZipInfo, member: IO[bytes]) -> bytes:
    """Read a member to its end; `DamagedArchiveError` where it is longer than the archive says."""
    digest, n_bytes = hashlib.blake2b(digest_size=16), 0
    while chunk := member.read(_CHUNK):
        digest.update(chunk)
        n_bytes += len(chunk)
    if n_bytes != entry.file_size:
        raise DamagedArchiveError(f"{_shown(entry.filename)} is cut short")
    return digest.digest()


def _of_all(digests: dict[str, bytes]) -> bytes:
    """One digest for members by their names, in whatever order they stand."""
    whole = hashlib.blake2b(digest_size=16)
    for name in sorted(digests):
        whole.update(name.encode() + b"\0" + digests[name])
    return whole.hexdigest().encode()


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:80] + "...")
