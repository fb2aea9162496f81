"""Sizes in bytes, from words and in words."""

import re

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_bytes(memory: int | float | str) -> int:
    """Bytes from a number or a text such as ``"2GiB"``, ``"256 MB"``.

    Raises
    ------
    ValueError
        When the text is not a number with one of the units B, kB, MB, GB, TB, KiB, MiB, GiB, TiB.

    Examples
    --------
    >>> parse_bytes("2GiB")
    2147483648
    """
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)\s*", memory, re.IGNORECASE)
        if match is None or match[2].upper() not in _UNITS:
            raise ValueError(f"memory={memory!r} is not a size; write '2GiB', '512MB' or bytes.")
        memory = float(match[1]) * _UNITS[match[2].upper()]
    if not memory > 0:
        raise ValueError(f"memory={memory!r} must be above zero; the default is '2GiB'.")
    return int(memory)


def size_text(n_bytes: float) -> str:
    """A number of bytes in words.

    Examples
    --------
    >>> size_text(3 * 2**30)
    '3.0 GiB'
    >>> size_text(1500)
    '1.5 KiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} TiB"
