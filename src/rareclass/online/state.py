"""The moving state of a learner as named arrays and plain values, for a checkpoint."""

from typing import Any

import numpy as np


def flatten(state: Any, prefix: str = "") -> dict[str, Any]:
    """All that a state holds, by dotted name: arrays, numbers and the generator's state.

    A state is a NamedTuple of arrays, numbers, generators, and tuples of these; what comes back are
    arrays, and values that JSON can write.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class State(NamedTuple):
    ...     coef: np.ndarray
    ...     seen: int
    >>> flatten(State(np.zeros(2), 3))
    {'coef': array([0., 0.]), 'seen': 3}
    """
    flat: dict[str, Any] = {}
    for name, value in state._asdict().items():
        if hasattr(value, "_asdict"):
            flat |= flatten(value, f"{prefix}{name}.")
        elif isinstance(value, np.random.Generator):
            flat[prefix + name] = value.bit_generator.state
        else:
            flat[prefix + name] = value
    return flat


def unflatten(like: Any, flat: dict[str, Any], prefix: str = "") -> Any:
    """The state that `flatten` took apart, in the shape of a state `like` it."""
    values = []
    for name, value in like._asdict().items():
        if hasattr(value, "_asdict"):
            values.append(unflatten(value, flat, f"{prefix}{name}."))
        elif isinstance(value, np.random.Generator):
            generator = np.random.Generator(np.random.PCG64())
            generator.bit_generator.state = flat[prefix + name]
            values.append(generator)
        elif isinstance(value, np.ndarray):
            values.append(np.array(flat[prefix + name], dtype=value.dtype))
        else:
            values.append(type(value)(flat[prefix + name]))
    return type(like)(*values)
