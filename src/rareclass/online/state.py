"""The moving state of a learner: as named arrays and plain values, and with arrays of its own."""

from typing import Any

import numpy as np


def flatten(state: Any, prefix: str = "") -> dict[str, Any]:
    """All that a state holds, by dotted name: arrays, and values that JSON can write.

    A state is a NamedTuple of arrays, numbers, generators, and tuples of these.

    >>> from typing import NamedTuple
    >>> class State(NamedTuple):
    ...     coef: np.ndarray
    ...     seen: int
    >>> flatten(State(np.zeros(2), 3))
    {'coef': array([0., 0.]), 'seen': 3}
    """
    flat: dict[str, Any] = {}
    for name, value in _parts(state):
        if isinstance(value, tuple):
            flat |= flatten(value, f"{prefix}{name}.")
        elif isinstance(value, np.random.Generator):
            flat[prefix + name] = value.bit_generator.state
        else:
            flat[prefix + name] = value
    return flat


def unflatten(like: Any, flat: dict[str, Any], prefix: str = "") -> Any:
    """The state that `flatten` took apart, in the shape of a state `like` it.

    Raises `ValueError` where an array has another shape than there, but for lengths that grow with
    the stream; or holds numbers that are not finite: compiled code takes both at their word.
    """
    values = []
    for name, value in _parts(like):
        if isinstance(value, tuple):
            values.append(unflatten(value, flat, f"{prefix}{name}."))
        elif isinstance(value, np.random.Generator):
            generator = np.random.Generator(np.random.PCG64())
            generator.bit_generator.state = flat[prefix + name]
            values.append(generator)
        elif isinstance(value, np.ndarray):
            values.append(_like(value, flat[prefix + name], prefix + name))
        else:
            values.append(type(value)(flat[prefix + name]))
    return tuple(values) if type(like) is tuple else type(like)(*values)


def writable(state: Any) -> Any:
    """Return the state with copies of the arrays that cannot be written to; itself without such.

    Compiled code changes a state in place. Of a learner that was loaded memory-mapped, or that came
    to another process, arrays are read-only.

    >>> from typing import NamedTuple
    >>> class State(NamedTuple):
    ...     coef: np.ndarray
    >>> state = State(np.zeros(2))
    >>> state.coef.flags.writeable = False
    >>> writable(state) is state, writable(state).coef.flags.writeable
    (False, True)
    """
    parts = [
        writable(part)
        if isinstance(part, tuple)
        else np.array(part)
        if isinstance(part, np.ndarray) and not part.flags.writeable
        else part
        for part in state
    ]
    if all(new is old for new, old in zip(parts, state, strict=True)):
        return state
    return tuple(parts) if type(state) is tuple else type(state)(*parts)


def _parts(state: Any) -> list[tuple[str, Any]]:
    """Parts of a tuple, by the names of its fields or by number."""
    if type(state) is tuple:
        return [(str(number), value) for number, value in enumerate(state)]
    return list(state._asdict().items())


def _like(begun: np.ndarray, kept: Any, name: str) -> np.ndarray:
    """An array that was kept, of the shape and type of the one that a new learner begins with."""
    array = np.asarray(kept)
    # What begins with no room at all makes it as rows come.
    fits = array.ndim == begun.ndim and all(
        have == wanted or wanted == 0 for have, wanted in zip(array.shape, begun.shape, strict=True)
    )
    if not fits or array.dtype.kind not in "fiub":
        raise ValueError(f"{name} is not what this learner keeps: {array.dtype} {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds a number that is not finite")
    return np.array(array, dtype=begun.dtype)
