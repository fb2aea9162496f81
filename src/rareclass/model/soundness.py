"""Say whether the parts of a model that came from a file can be what a training made.

A file opens without executing anything, but its numbers may be anything: damaged, exchanged, or
made up to do harm. Compiled code takes indices at their word and reads wherever they point. So
each class whose arrays are indices, or go to compiled code, has a method ``check_parts``, which
raises `ValueError`; here it is called on every part of a model, and numbers are looked at.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

# Attributes of this package that say by NaN that there is nothing to say.
_MAY_BE_NAN = {
    ("TableEncoder", "low_"),
    ("TableEncoder", "high_"),
    # No row is called rare above infinity, or every one.
    ("RareClassifier", "offset_"),
    ("RankRC", "offset_"),
    ("MIBC", "offset_"),
    ("OrdinalRankRC", "thresholds_"),
    # What a training tells of itself; no score depends on it.
    ("RareClassifier", "held_out_score_"),
    ("RareClassifier", "feature_importances_"),
    ("MIBC", "C"),  # infinite: no rare row is given up
    # Infinite where a split parts missing values from all others; NaN is refused there.
    ("TreeSum", "threshold"),
}
_OPAQUE = (str, bytes, int, bool, np.dtype, type)
_MOST_PARTS = 5_000_000


def check_parts(*parts: Any) -> None:
    """Look at everything that these objects hold. O(bytes).

    What other packages learned may hold infinities and NaN, which they know the meaning of, and
    so may parameters (``C=inf``): a score that is not finite is told when there is one.

    Raises `ValueError` naming the part: numbers learned here that are not finite, sparse matrices
    whose indices point outside of them, and what a class finds itself by ``check_parts``.
    """
    for where, value, is_learned_here in _walk(parts):
        kind = type(value)
        if isinstance(value, np.ndarray | np.floating | float):
            number = np.asarray(value)
            if is_learned_here and number.dtype.kind == "f" and not np.isfinite(number).all():
                raise ValueError(f"{where} holds a number that is not finite")
        elif sparse.issparse(value):
            value.check_format(full_check=True)
            if is_learned_here and not np.isfinite(value.data).all():
                raise ValueError(f"{where} holds a number that is not finite")
        elif hasattr(kind, "check_parts"):
            try:
                value.check_parts()
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise ValueError(f"{where}, a {kind.__name__}: {error}") from error


def _walk(parts: tuple[Any, ...]) -> Iterator[tuple[str, Any, bool]]:
    """Every object within objects once, with the way to it and whether it was learned here."""
    # What is being looked at is held: an object that is gone gives its number to another.
    todo = [(type(part).__name__, part, True) for part in reversed(parts)]
    seen: dict[int, Any] = {}
    while todo:
        where, value, is_learned_here = todo.pop()
        if value is None or isinstance(value, _OPAQUE) or id(value) in seen:
            continue
        seen[id(value)] = value
        if len(seen) > _MOST_PARTS:
            raise ValueError("it has too many parts")
        yield where, value, is_learned_here
        todo += reversed(
            [
                (f"{where}.{name}", each, is_learned_here and not _is_foreign(value, name))
                for name, each in _held_by(value)
            ]
        )


def _is_foreign(holder: Any, name: str) -> bool:
    """Say whether an attribute is another package's, or a parameter of an estimator."""
    if isinstance(holder, dict | list | tuple | set | frozenset | np.ndarray):
        return False
    is_ours = type(holder).__module__.partition(".")[0] == "rareclass"
    return not is_ours or (hasattr(holder, "get_params") and name == name.strip("_"))


def _held_by(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((str(key)[:80], each) for key, each in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        names = getattr(value, "_fields", None) or range(len(value))
        yield from ((str(name), each) for name, each in zip(names, value, strict=True))
    elif isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            yield from ((str(k), each) for k, each in enumerate(value.reshape(-1)))
    elif not sparse.issparse(value):
        kind = type(value).__name__
        held = getattr(value, "__dict__", {})
        for name, each in held.items() if isinstance(held, dict) else ():
            if (kind, name) not in _MAY_BE_NAN:
                yield str(name), each


def finite_vector(value: Any, name: str, length: int | None = None) -> np.ndarray:
    """An array of finite numbers in one dimension; `ValueError` where it is none."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"{name} is no list of numbers")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} has {len(array)} numbers, not {length}")
    return array
