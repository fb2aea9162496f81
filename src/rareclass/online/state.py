"""The moving state of a learner: buffers of rows, and all of it as named arrays and plain values.

Bounded buffers hold the rows seen last, or a uniform sample of all rows seen. Class 1 is the rare
one, class 0 the majority, and every array has one plane a class. Which slot a row goes to is known
before any learning: the compiled loops draw no random numbers.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from rareclass.folds.majority_part import reservoir_slots
from rareclass.parameters import check_choice, check_whole

POLICIES = ("fifo", "reservoir")


class DenseBuffers(NamedTuple):
    """Two ring buffers of dense rows."""

    # shape (2, n_features, capacity): one pass over a feature of all rows is contiguous
    rows: np.ndarray
    seen: np.ndarray  # shape (2,): rows of each class so far; min(seen, capacity) slots are filled

    @classmethod
    def empty(cls, n_features: int, capacity: int) -> Self:
        """Two buffers without rows."""
        return cls(np.zeros((2, n_features, capacity)), np.zeros(2, np.int64))

    def grown(self, n_features: int) -> Self:
        """The same rows with zeros in the new features."""
        more = n_features - self.rows.shape[1]
        return self._replace(rows=np.pad(self.rows, ((0, 0), (0, more), (0, 0))))

    def scores(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``coef . x`` of the buffered rows: of the rare ones, of the majority."""
        scores = coef @ self.rows
        filled = np.minimum(self.seen, self.rows.shape[2])
        return scores[1, : filled[1]], scores[0, : filled[0]]


class SparseBuffers(NamedTuple):
    """Two ring buffers of sparse rows, each row in a slot that takes the widest row so far."""

    indices: np.ndarray  # shape (2, capacity, width), as values: the non-zeros of a row
    values: np.ndarray
    lengths: np.ndarray  # shape (2, capacity): how many of them a row has
    seen: np.ndarray  # shape (2,): rows of each class so far

    @classmethod
    def empty(cls, capacity: int) -> Self:
        """Two buffers without rows."""
        return cls(
            np.zeros((2, capacity, 0), np.int64),
            np.zeros((2, capacity, 0)),
            np.zeros((2, capacity), np.int64),
            np.zeros(2, np.int64),
        )

    def check_within(self, n_features: int) -> None:
        """Raise `ValueError` where compiled code would leave the buffers."""
        room = self.indices.shape
        if self.values.shape != room or self.lengths.shape != room[:2]:
            raise ValueError("the parts of a buffer are not of one size")
        if (self.lengths < 0).any() or (self.lengths > room[2]).any() or (self.seen < 0).any():
            raise ValueError("a buffer is said to hold more than it does")
        if self.indices.size and not 0 <= self.indices.min() <= self.indices.max() < n_features:
            raise ValueError(f"a buffer holds a feature beyond {n_features}")

    def fitting(self, width: int) -> Self:
        """The same rows in slots that take `width` non-zeros, a power of two."""
        have = self.indices.shape[2]
        if width <= have:
            return self
        room = ((0, 0), (0, 0), (0, (1 << (width - 1).bit_length()) - have))
        return self._replace(indices=np.pad(self.indices, room), values=np.pad(self.values, room))

    def scores(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``coef . x`` of the buffered rows: of the rare ones, of the majority."""
        used = np.arange(self.indices.shape[2]) < self.lengths[:, :, None]
        scores = (np.where(used, self.values, 0.0) * coef[self.indices]).sum(axis=2)
        filled = np.minimum(self.seen, self.indices.shape[1])
        return scores[1, : filled[1]], scores[0, : filled[0]]


def slots(
    policy: str, capacity: int, seen: np.ndarray, sign: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The slot of its class's buffer that each row goes to; -1 where it is not stored.

    "fifo": the n-th row of a class replaces the oldest, slot ``(n - 1) % capacity``. "reservoir":
    as `reservoir_slots` has it, with a draw for every row, labelled or not. `seen` are the rows of
    each class before these, `sign` is +1 rare, -1 majority, 0 for a row without a label, which is
    not stored.
    """
    slot = np.full(len(sign), -1, np.int64)
    draws = rng.random(len(sign)) if policy == "reservoir" else None
    for code, of_class in ((0, sign < 0), (1, sign > 0)):
        rows = np.flatnonzero(of_class)
        nth = seen[code] + 1 + np.arange(len(rows))
        if draws is None:
            slot[rows] = (nth - 1) % capacity
        else:
            slot[rows] = reservoir_slots(nth, draws[rows], capacity)
    return slot


def share_of_others(seen: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """For each row, the share of the other class among all labelled rows up to it; see `slots`.

    >>> share_of_others(np.array([3, 0]), np.array([1, -1])).tolist()
    [0.75, 0.2]
    """
    rare = seen[1] + np.cumsum(sign > 0)
    majority = seen[0] + np.cumsum(sign < 0)
    return np.where(sign > 0, majority, rare) / np.maximum(rare + majority, 1)


def check_buffer(buffer_size: Any, policy: Any) -> None:
    """Raise `ValueError` unless there is at least one slot and the policy is a known one."""
    check_whole("buffer_size", buffer_size)
    check_choice("policy", policy, POLICIES)


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
