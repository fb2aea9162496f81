"""Devices that rows can live on: what an array library has, and CUDA through CuPy."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Protocol

import numpy as np

from rareclass.array_api import to_numpy
from rareclass.errors import InputError
from rareclass.machine import size_text


class Arriving(Protocol):
    """Rows on their way to a device."""

    def wait(self) -> Any:
        """The rows, for work that is asked of the device from now on."""
        ...


class Device(Protocol):
    """Where arrays can be sent, and worked on by the functions of the array API."""

    @property
    def full(self) -> tuple[type[BaseException], ...]:
        """What it raises when its memory is full."""
        ...

    def put(self, array: np.ndarray) -> Any:
        """An array on the device, a copy unless the device works on this process's memory."""
        ...

    def send(self, array: np.ndarray) -> Arriving:
        """The same while the device goes on with what it was asked before."""
        ...

    def free_bytes(self) -> int:
        """Bytes that new arrays may take."""
        ...


@contextmanager
def told_when_full(device: Device, takes: Callable[[], str]) -> Iterator[None]:
    """Say what was to fit when a device's memory is full: `InputError`."""
    try:
        yield
    except device.full as error:
        raise InputError(
            f"The memory of device {device} is full ({error}): {takes()}.",
            "Let other programs give memory back, take fewer landmarks, such as "
            "landmarks=('rare', 1000), or leave device=None.",
        ) from error


def worked_out(device: Device | None, fn: Callable[..., Any], *matrices: np.ndarray) -> Any:
    """``fn`` of some matrices, worked out on a device; here where that is None.

    It is given arrays of the device, and returns one or a tuple of them; they come back as numpy's.
    """
    if device is None:
        return fn(*matrices)
    with told_when_full(device, lambda: f"it was to work on {' and '.join(map(_size, matrices))}"):
        found = fn(*map(device.put, matrices))
        return tuple(map(to_numpy, found)) if isinstance(found, tuple) else to_numpy(found)


def _size(matrix: np.ndarray) -> str:
    shape = " x ".join(f"{n:,}" for n in matrix.shape)
    return f"a matrix of {shape} ({size_text(matrix.nbytes)})"


@dataclass(frozen=True)
class Arrived:
    """Rows that a device has."""

    rows: Any

    def wait(self) -> Any:
        """The rows."""
        return self.rows


@dataclass(frozen=True)
class ArrayLibrary:
    """Any library of the array API on the device that it uses by default.

    Parameters
    ----------
    module : str
        Name of the module whose functions are the standard's, such as "array_api_strict" or
        "numpy".
    memory : int, default=2**31
        Bytes that rows may take there.

    Examples
    --------
    >>> ArrayLibrary("numpy").put(np.ones(2)).tolist()
    [1.0, 1.0]
    """

    module: str
    memory: int = 2**31
    full: ClassVar = (MemoryError,)

    def put(self, array: np.ndarray) -> Any:
        """The array as the library has it."""
        return import_module(self.module).asarray(array)

    def send(self, array: np.ndarray) -> Arrived:
        """The array, at once."""
        return Arrived(self.put(array))

    def free_bytes(self) -> int:
        """As many as were said to be there."""
        return self.memory


@dataclass(frozen=True)
class Cuda:
    """A CUDA device, through CuPy.

    Parameters
    ----------
    number : int, default=0
        Of the device, as CUDA counts them.
    """

    number: int = 0

    def __str__(self) -> str:
        return f"cuda:{self.number}"

    def __reduce__(self) -> Any:
        # What was found of a device is not another process's.
        return Cuda, (self.number,)

    @property
    def _cupy(self) -> Any:
        """CuPy, with this device the one that the thread works on."""
        self._found.cuda.Device(self.number).use()
        return self._found

    @cached_property
    def _found(self) -> Any:
        try:
            cupy = import_module("cupy")
        except ImportError as error:
            raise ImportError(
                f"device={str(self)!r} needs CuPy, which is not here: "
                'pip install "rareclass[gpu]" (for CUDA 12; other versions have wheels of their '
                "own, https://docs.cupy.dev)."
            ) from error
        try:
            n_devices = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise InputError(
                f"device={str(self)!r}: CUDA finds no device here ({error}).",
                "Leave device=None to work on the processor.",
            ) from error
        if self.number >= n_devices:
            raise InputError(
                f"device={str(self)!r}: CUDA has {n_devices} devices here, numbered from 0.",
                f"Give one of them, such as device='cuda:{n_devices - 1}'.",
            )
        return cupy

    @property
    def full(self) -> tuple[type[BaseException], ...]:
        """CuPy's own error."""
        return (self._found.cuda.memory.OutOfMemoryError,)

    @cached_property
    def _ring(self) -> "_PinnedRing":
        return _PinnedRing(self._cupy)

    def put(self, array: np.ndarray) -> Any:
        """A copy in the device's memory."""
        return self._cupy.asarray(array)

    def send(self, array: np.ndarray) -> "_OnItsWay":
        """A copy through pinned memory, on a stream of its own."""
        return self._ring.send(self._cupy, array)

    def free_bytes(self) -> int:
        """What the device has free, and what CuPy holds of it without need."""
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        return int(free + self._cupy.get_default_memory_pool().free_bytes())


class _PinnedRing:
    """Two stretches of pinned host memory in turn: one is filled while the other is copied.

    From memory that the system may move, CUDA copies through a small buffer of its own, and the
    processor waits for it.
    """

    def __init__(self, cupy: Any) -> None:
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._pinned: list[Any] = [None, None]
        self._copied: list[Any] = [None, None]
        self._next = 0

    def send(self, cupy: Any, array: np.ndarray) -> "_OnItsWay":
        """Begin to copy rows; the stretch is waited for where it is still being copied."""
        k, self._next = self._next, 1 - self._next
        if self._copied[k] is not None:
            self._copied[k].synchronize()
        if self._pinned[k] is None or self._pinned[k].nbytes < array.nbytes:
            memory = cupy.cuda.alloc_pinned_memory(array.nbytes)
            self._pinned[k] = np.frombuffer(memory, np.uint8, array.nbytes)
        here = self._pinned[k][: array.nbytes].view(array.dtype).reshape(array.shape)
        here[...] = array
        there = cupy.empty(array.shape, array.dtype)
        # Its memory may be that of rows which work asked for before still reads.
        self._stream.wait_event(cupy.cuda.get_current_stream().record())
        there.set(here, stream=self._stream)
        self._copied[k] = self._stream.record()
        return _OnItsWay(cupy, there, self._copied[k])


@dataclass(frozen=True)
class _OnItsWay:
    """Rows that a stream copies."""

    cupy: Any
    rows: Any
    copied: Any

    def wait(self) -> Any:
        """The rows: the current stream goes on when they are there."""
        self.cupy.cuda.get_current_stream().wait_event(self.copied)
        return self.rows


def check_is_dense(device: Device, is_sparse: bool) -> None:
    """Raise `InputError` for sparse rows, which no device works on."""
    if is_sparse:
        raise InputError(
            f"device={str(device)!r} works on dense rows; these are sparse.",
            "Pass X.toarray() where that fits, or leave device=None.",
        )


def find_device(device: Any) -> Device | None:
    """The device that a parameter `device` means; None is this process's memory.

    Parameters
    ----------
    device : None, "cpu", "cuda", "cuda:k" or a Device

    Raises
    ------
    ValueError
        On anything else.

    Examples
    --------
    >>> find_device("cuda:1")
    Cuda(number=1)
    >>> find_device("cpu") is None
    True
    """
    if device is None or device == "cpu":
        return None
    if hasattr(device, "put"):
        return device
    kind, _, number = str(device).partition(":")
    if kind != "cuda" or not (number.isdecimal() or str(device) == "cuda"):
        raise ValueError(f"device={device!r} is not one of None, 'cpu', 'cuda' or 'cuda:1'.")
    return Cuda(int(number or 0))
