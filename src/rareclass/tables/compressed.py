"""Files that may be compressed with gzip or bzip2, found from their content."""

import bz2
import gzip
from pathlib import Path
from typing import BinaryIO, Literal, cast

from rareclass.errors import InputError
from rareclass.tables.opening import cannot_open

Compression = Literal["gzip", "bz2"] | None
COMPRESSED_SUFFIXES: dict[str, Compression] = {".gz": "gzip", ".bz2": "bz2"}


def compression_of(path: Path) -> Compression:
    """Return how a file is compressed.

    Raises
    ------
    InputError
        When it may not be read, or its name says that it is compressed and its content does not.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(3)
    except OSError as error:
        raise cannot_open(path, error) or error from None
    if magic[:2] == b"\x1f\x8b":
        return "gzip"
    if magic == b"BZh":
        return "bz2"
    named = COMPRESSED_SUFFIXES.get(path.suffix.lower())
    if named:
        raise InputError(
            f"{path} is named like a {named} file but is not one.",
            f"If it is plain text, take the {path.suffix} off its name.",
        )
    return None


def open_plain(path: Path, compression: Compression) -> BinaryIO:
    """Open a file so that its uncompressed content is read."""
    if compression == "gzip":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if compression == "bz2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    return path.open("rb")


def plain_suffix(path: Path) -> str:
    """Return the suffix of what is in the file, in lower case.

    Examples
    --------
    >>> plain_suffix(Path("a.CSV.gz")), plain_suffix(Path("b.svm.csv")), plain_suffix(Path("c"))
    ('.csv', '.csv', '')
    """
    if path.suffix.lower() in COMPRESSED_SUFFIXES:
        path = path.with_suffix("")
    return path.suffix.lower()
