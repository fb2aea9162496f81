"""Functions and what they are broadcast, as bytes; what never changes goes by its name."""

import hashlib
import io
import itertools
import pickle
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle

from rareclass.rows.protocol import SentOnce, Token


class Names:
    """Names for what is sent once, as long as somebody holds it."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._name_of: weakref.WeakKeyDictionary[SentOnce, str] = weakref.WeakKeyDictionary()
        self.dropped: list[str] = []

    def of(self, value: SentOnce) -> str:
        """The name of a value: always the same one."""
        name = self._name_of.get(value)
        if name is None:
            name = self._name_of[value] = f"{type(value).__name__}-{next(self._numbers)}"
            weakref.finalize(value, self.dropped.append, name)
        return name

    def take_dropped(self) -> list[str]:
        """Names of what nobody holds any more, each once."""
        dropped = self.dropped[:]
        del self.dropped[: len(dropped)]
        return dropped


class _Packer(cloudpickle.Pickler):
    def __init__(self, file: io.BytesIO, names: Names) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._names = names
        self.used: dict[str, SentOnce] = {}

    def persistent_id(self, obj: Any) -> str | None:
        if not isinstance(obj, SentOnce):
            return None
        name = self._names.of(obj)
        self.used[name] = obj
        return name


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, known: Mapping[str, Any]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, pid: Any) -> Any:
        return self._known[pid]


def pack(names: Names, fn: Callable, broadcast: tuple) -> tuple[bytes, dict[str, SentOnce]]:
    """A call as bytes, and what it needs under names beside them.

    Functions and classes that another process cannot import go by value.
    """
    file = io.BytesIO()
    packer = _Packer(file, names)
    packer.dump((fn, broadcast))
    return file.getvalue(), packer.used


def unpack(payload: bytes, known: Mapping[str, Any]) -> tuple[Callable, tuple]:
    """The call again."""
    fn, broadcast = _Unpacker(io.BytesIO(payload), known).load()
    return fn, broadcast


class _Digester(_Packer):
    """As bytes that are the same in every run: names and tokens count from this call on."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, Names())
        self._tokens: dict[Token, int] = {}

    def persistent_id(self, obj: Any) -> None:
        return None  # what is sent once is part of the question, with all that it holds

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Token):
            return int, (self._tokens.setdefault(obj, len(self._tokens)),)
        return super().reducer_override(obj)


def digest(fn: Callable, broadcast: tuple) -> bytes:
    """A name for a question: the same for the same numbers, in this process and in others."""
    file = io.BytesIO()
    _Digester(file).dump((fn, broadcast))
    return hashlib.blake2b(file.getvalue(), digest_size=16).digest()
