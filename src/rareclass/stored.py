"""Values as JSON and arrays: the form in which models, hunts and streams are stored.

`pack` turns a value into a tree that JSON can write and a table of arrays beside it; `unpack` turns
these back. None, truth values, whole numbers, finite floats, text, lists and dictionaries are their
own JSON; everything else is a dictionary with the key "/", which names its kind:

    {"/": "array", "name": "003.coef"}          an array of the table
    {"/": "tuple", "items": [...]}              also "set", "objects" (an array of objects), "dict"
    {"/": "scalar", "dtype": "<f4", "value": 1} a number or text of NumPy; "float" for nan and inf
    {"/": "generator", "state": {...}}          a random generator
    {"/": "csr array", "state": {...}}          sparse rows; also "csr matrix"
    {"/": "rank_rc", "state": {...}}            an object of a registered class
    {"/": "same", "as": 2}                      the object or array number 2, counted from 0

Kinds are our names and no module paths: moving a class changes no file, and nothing in a file can
execute or choose what is imported. An object that occurs twice is stored once and comes back as
one object. Cost: O(bytes), no copies of arrays.

`read_fields` makes a typed record of plain JSON.
"""

import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from inspect import signature
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    IO,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import numpy as np
from scipy import sparse

T = TypeVar("T")

_KIND = "/"
_JSON = "json"


@runtime_checkable
class Storable(Protocol):
    """A class that says itself what of it is stored."""

    def to_state(self) -> dict[str, Any]:
        """Return all that `from_state` needs, by name."""

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the object that `to_state` described; raise `ValueError` where it is none."""


class KeptPart:
    """Part of an estimator that a file keeps: the attributes that a subclass annotates."""

    @classmethod
    def of(cls, fitted: "KeptPart") -> Self:
        """Return the part of a fitted estimator, which inherits from the class."""
        part, known = cls(), vars(fitted)
        vars(part).update({name: known[name] for name in cls.__annotations__ if name in known})
        return part


def _state_of(value: Any) -> dict[str, Any]:
    """Return what is stored of an object, by name.

    By its own `Storable` methods, else by the fields of a dataclass or named tuple, else by its
    attributes, which come back without a call of ``__init__``.
    """
    if isinstance(value, Storable):
        return value.to_state()
    if is_dataclass(value):
        return {n.name: attrgetter(n.name)(value) for n in fields(value) if n.init}
    if isinstance(value, tuple):
        return dict(value._asdict())  # type: ignore[attr-defined]
    return dict(vars(value))


def _object_of(place: str, state: dict[str, Any]) -> Any:
    """Return the object that `_state_of` described; raises whatever its class raises."""
    module, _, path = place.partition(":")
    cls: Any = attrgetter(path)(import_module(module))
    if issubclass(cls, Storable):
        return cls.from_state(state)
    if is_dataclass(cls) or issubclass(cls, tuple):
        return cls(**state)
    made = cls.__new__(cls)
    made.__dict__.update(state)
    return made


# Classes whose objects can be stored, "module:Class" by the names that files have for them. A
# module is imported when a file holds an object of its class.
Kinds = Mapping[str, str]
NO_KINDS: Kinds = {}
_CSR = {"csr array": sparse.csr_array, "csr matrix": sparse.csr_matrix}


class Stored(NamedTuple):
    """A value that was packed."""

    tree: Any  # JSON
    arrays: dict[str, np.ndarray]


def pack(value: Any, kinds: Kinds = NO_KINDS) -> Stored:
    """Take a value apart into JSON and arrays.

    Raises `TypeError` for an object of a class without a kind, and `ValueError` for one that
    contains itself, naming where it stands.

    >>> tree, arrays = pack({"coef": np.zeros(2), "classes": ("no", "yes"), "n": 3})
    >>> tree["coef"], tree["classes"], tree["n"]
    ({'/': 'array', 'name': '000.coef'}, {'/': 'tuple', 'items': ['no', 'yes']}, 3)
    >>> unpack(Stored(tree, arrays))
    {'coef': array([0., 0.]), 'classes': ('no', 'yes'), 'n': 3}
    """
    packer = _TreePacker(kinds)
    return Stored(packer.pack(value, ""), packer.arrays)


def unpack(stored: Stored, kinds: Kinds = NO_KINDS) -> Any:
    """Put a value together again.

    Raises `ValueError`, `KeyError` or `TypeError` where the tree is none that `pack` makes, and
    what classes raise on a state that is none of theirs: a file may hold anything.
    """
    return _TreeUnpacker(kinds, stored.arrays).unpack(stored.tree)


def plain_data(value: Any) -> Any:
    """Return what JSON has of a record: fields by name, arrays as lists, kinds as text.

    >>> plain_data(Stored({"n": 1}, {"coef": np.zeros(2)}))
    {'tree': {'n': 1}, 'arrays': {'coef': [0.0, 0.0]}}
    """
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if is_dataclass(value):
        value = {each.name: attrgetter(each.name)(value) for each in fields(value)}
    elif isinstance(value, tuple) and "_fields" in vars(type(value)):
        value = value._asdict()  # type: ignore[attr-defined]
    if isinstance(value, Mapping):
        return {key: plain_data(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(each) for each in value]
    return value


class PlainData:
    """Record of which JSON has all fields."""

    def as_plain_data(self) -> dict[str, Any]:
        """Return the record as dictionaries and numbers."""
        return plain_data(self)


def write_stored(file: IO[bytes], stored: Stored, compress: bool = False) -> None:
    """Write a packed value as a zip file of arrays, the JSON among them as bytes.

    Compressed, it takes a fifth of the bytes for trees and words, and some ten times as long.
    """
    text = json.dumps(stored.tree, allow_nan=False)
    members = stored.arrays | {_JSON: np.frombuffer(text.encode(), np.uint8)}
    how = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", how, compresslevel=1) as archive:
        for name, array in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def read_stored(file: IO[bytes]) -> Stored:
    """Read what `write_stored` wrote; arrays of objects are refused."""
    with np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return Stored(json.loads(arrays.pop(_JSON).tobytes()), arrays)


class _TreePacker:
    def __init__(self, kinds: Kinds) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._names = {place: name for name, place in kinds.items()}
        # By id: the object, so that no other takes its id, and its number; None while it is packed.
        self._known: dict[int, tuple[Any, int | None]] = {}
        self._n_known = 0

    def pack(self, value: Any, where: str) -> Any:
        if isinstance(value, np.generic):
            return _made("scalar", dtype=value.dtype.str, value=self.pack(value.item(), where))
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else _made("float", value=repr(value))
        if type(value) is list:
            return self._all(value, where)
        if type(value) in (tuple, set, frozenset):
            items = value if isinstance(value, tuple) else sorted(value, key=repr)
            return _made(type(value).__name__, items=self._all(items, where))
        if type(value) is dict:
            if all(type(key) is str for key in value) and _KIND not in value:
                return {key: self.pack(item, f"{where}.{key}") for key, item in value.items()}
            pairs = [[self.pack(key, where), self.pack(item, where)] for key, item in value.items()]
            return _made("dict", items=pairs)
        return self._shared(value, where)

    def _all(self, values: Any, where: str) -> list[Any]:
        return [self.pack(each, f"{where}.{k}") for k, each in enumerate(values)]

    def _shared(self, value: Any, where: str) -> Any:
        if id(value) in self._known:
            number = self._known[id(value)][1]
            if number is None:
                raise ValueError(
                    f"{type(value).__name__} contains itself: {where[1:] or 'the value itself'}"
                )
            return _made("same", **{"as": number})
        self._known[id(value)] = value, None
        made = self._object(value, where)
        self._known[id(value)] = value, self._n_known
        self._n_known += 1
        return made

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        if isinstance(value, np.ndarray) and type(value) in (np.ndarray, np.memmap):
            if value.dtype == object:
                items = self._all(value.ravel().tolist(), where)
                return _made("objects", shape=list(value.shape), items=items)
            if not value.dtype.hasobject:
                # Keys may be any text, a category of the data for one; numbers keep names apart.
                plain = (c if c.isascii() and (c.isalnum() or c in "_.") else "_" for c in where)
                name = f"{len(self.arrays):03d}{''.join(plain)[:80]}"
                self.arrays[name] = value
                return _made("array", name=name)
        if isinstance(value, np.random.Generator):  # of PCG64, the only one that this package makes
            return _made("generator", state=self.pack(value.bit_generator.state, where))
        for name, of_scipy in _CSR.items():
            if type(value) is of_scipy:
                parts = {part: vars(value)[part] for part in ("data", "indices", "indptr")}
                parts["shape"] = tuple(int(n) for n in value.shape)
                return _made(name, state=self.pack(parts, where))
        kind = self._names.get(f"{type(value).__module__}:{type(value).__qualname__}")
        if kind is None:
            raise TypeError(
                f"cannot store {type(value).__name__}: {where[1:] or 'the value itself'}"
            )
        return _made(kind, state=self.pack(_state_of(value), where))


class _TreeUnpacker:
    def __init__(self, kinds: Kinds, arrays: Mapping[str, np.ndarray]) -> None:
        self._kinds, self._arrays = kinds, arrays
        self._known: list[Any] = []

    def unpack(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.unpack(each) for each in tree]
        if not isinstance(tree, dict):
            return tree
        if _KIND not in tree:
            return {key: self.unpack(item) for key, item in tree.items()}
        kind = tree[_KIND]
        if kind in _PLAIN:
            return _PLAIN[kind](self.unpack(tree["items"]))
        if kind == "float":
            return float(tree["value"])
        if kind == "scalar":
            dtype = np.dtype(tree["dtype"])
            if dtype.hasobject:
                raise ValueError(f"a scalar of type {tree['dtype']}")
            return np.array(self.unpack(tree["value"]), dtype)[()]
        if kind == "same":
            return self._known[tree["as"]]
        found = self._object(kind, tree)
        self._known.append(found)
        return found

    def _object(self, kind: str, tree: dict[str, Any]) -> Any:
        if kind == "array":
            return self._arrays[tree["name"]]
        if kind == "objects":
            items = self.unpack(tree["items"])
            flat = np.fromiter(items, object, len(items))
            return flat.reshape(tree["shape"])
        state = self.unpack(tree["state"])
        if kind == "generator":
            generator = np.random.Generator(np.random.PCG64())
            generator.bit_generator.state = state
            return generator
        if kind in _CSR:
            parts = (state["data"], state["indices"], state["indptr"])
            matrix = _CSR[kind](parts, shape=state["shape"])
            matrix.check_format(full_check=True)
            return matrix
        if kind not in self._kinds:
            raise ValueError(f"there is no kind {kind!r}")
        return _object_of(self._kinds[kind], state)


_PLAIN: dict[str, type[Any]] = {kind.__name__: kind for kind in (tuple, set, frozenset, dict)}


def _made(kind: str, **parts: Any) -> dict[str, Any]:
    return {_KIND: kind, **parts}


def required(told: Mapping[str, Any], name: str) -> Any:
    """Return an entry; raises `ValueError` where it is missing."""
    if name not in told:
        raise ValueError(f"{name} is missing from its facts")
    return told[name]


def read_fields(kind: type[T], told: Any, where: str = "") -> T:
    """Read a dataclass or a NamedTuple from a dictionary with its fields; other keys may be there.

    A NamedTuple may also be a list, as `json.dumps` writes it. Raises `ValueError` where a field
    without a default is missing, or has another type.
    """
    if not isinstance(told, dict):
        raise ValueError(f"{where or kind.__name__} of its facts is not a dictionary")
    return kind(
        **{
            name: typed_value(hint, required(told, name), name)
            for name, (hint, has_default) in _fields_of(kind).items()  # type: ignore[arg-type]
            if name in told or not has_default
        }
    )


@cache
def _fields_of(kind: type[Any]) -> dict[str, tuple[Any, bool]]:
    """Type of each field of a dataclass or a NamedTuple, and whether the field has a default."""
    hints, given = get_type_hints(kind), signature(kind).parameters.values()
    return {each.name: (hints[each.name], each.default is not each.empty) for each in given}


def typed_value(hint: Any, value: Any, name: str) -> Any:
    """Return a value of JSON as the type that a hint names; `ValueError` where it is another."""
    if hint is Any or hint is type(value) or (hint is float and type(value) is int):
        return value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        hint = next(each for each in arguments if each is not NoneType)
        return None if value is None else typed_value(hint, value, name)
    if origin is Literal and value in arguments:
        return value
    if origin is tuple and isinstance(value, list):
        return tuple(typed_value(arguments[0], each, name) for each in value)
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {key: typed_value(arguments[1], each, name) for key, each in value.items()}
    if isinstance(hint, type) and issubclass(hint, StrEnum) and isinstance(value, str):
        return hint(value)
    if isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, tuple)):
        if isinstance(value, list) and issubclass(hint, tuple):  # as JSON writes a NamedTuple
            names = hint._fields  # type: ignore[attr-defined]
            value = dict(zip(names, value, strict=len(value) > len(names)))
        return read_fields(hint, value, name)
    in_words = {int: "whole number", float: "number", str: "text", bool: "truth value"}
    wanted = "list" if origin is tuple else in_words.get(hint, str(hint))
    raise ValueError(f"{name} of its facts is {str(value)[:40]!r}, which is no {wanted}")


def finite_vector(value: Any, name: str, length: int | None = None) -> np.ndarray:
    """Return an array of finite numbers in one dimension; `ValueError` where it is none."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"{name} is not a list of numbers")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} has {len(array)} numbers, not {length}")
    return array
