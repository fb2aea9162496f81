"""Values as JSON and arrays: what goes in comes out, and a file can make nothing else."""

import io
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse

from rareclass.stored import Stored, pack, read_fields, read_stored, unpack, write_stored


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass(frozen=True)
class Settings:
    C: float
    names: tuple[str, ...] = ()


class Learner:
    def __init__(self, C):
        self.C = C
        self.coef_ = np.arange(3.0)


class Window:
    def __init__(self, size):
        self.size = size

    def to_state(self):
        return {"size": self.size}

    @classmethod
    def from_state(cls, state):
        if state["size"] < 1:
            raise ValueError("a window without rows")
        return cls(state["size"])


CLASSES = {"point": Point, "settings": Settings, "learner": Learner, "window": Window}
PLACES = {name: f"{cls.__module__}:{cls.__qualname__}" for name, cls in CLASSES.items()}
KINDS = PLACES


def there_and_back(value, kinds=KINDS):
    file = io.BytesIO()
    write_stored(file, pack(value, kinds))
    file.seek(0)
    return unpack(read_stored(file), kinds)


keys = st.text(st.characters(), max_size=4)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | keys
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(keys | st.integers(), inner, max_size=3)
        | st.builds(Point, inner, inner)
    ),
    max_leaves=12,
)


@given(value=values)
@example(value={"/": 1, "a": (-0.0, [float("inf")], {3: ("x",)})})
@example(value={"/": "array", "name": "json"})
@example(value={"\ud800": 2**100})
def test_what_goes_in_comes_out(value):
    again = there_and_back(value)
    assert repr(again) == repr(value)


def test_arrays_scalars_and_generators_come_back_to_the_last_bit():
    rng = np.random.default_rng(3)
    rng.normal()
    value = {
        "a/../b": np.array([0.1, -0.0, np.nextafter(1, 2), np.nan]),
        "words": np.array(["ä", "b"]),
        "mixed": np.array([["a", None], [1, (2.5,)]], object),
        "nodes": np.array([(1, 0.5)], [("left", "i4"), ("gain", "f8")]),
        "empty": np.empty((0, 3), np.float32),
        "share": np.float32(0.1),
        "label": np.str_("yes"),
        "nan": float("nan"),
        "rng": rng,
    }
    again = there_and_back(value)
    for name in ("a/../b", "words", "mixed", "nodes", "empty"):
        assert again[name].dtype == value[name].dtype
        np.testing.assert_array_equal(again[name], value[name])
    assert np.signbit(again["a/../b"][1])
    assert (again["share"], type(again["share"])) == (value["share"], np.float32)
    assert type(again["label"]) is np.str_
    assert again["nan"] != again["nan"]
    assert again["rng"].normal() == rng.normal()


def test_objects_by_fields_by_their_own_methods_and_by_attributes():
    value = [Settings(0.5, ("a",)), Window(7), Learner(2.0)]
    settings, window, learner = there_and_back(value)
    assert settings == value[0]
    assert window.size == 7
    assert vars(learner).keys() == {"C", "coef_"}
    for make in (sparse.csr_array, sparse.csr_matrix):
        rows = there_and_back(make(np.eye(3)))
        assert type(rows) is make
        np.testing.assert_array_equal(rows.toarray(), np.eye(3))


def test_what_is_shared_stays_shared():
    array, learner = np.zeros(3), Learner(1.0)
    stored = pack([array, learner, (learner, array), learner.coef_], KINDS)
    assert len(stored.arrays) == 2
    first, one, (two, second), coef = unpack(stored, KINDS)
    assert first is second
    assert one is two
    assert coef is one.coef_
    holder = Learner(1.0)
    holder.coef_ = [holder]
    with pytest.raises(ValueError, match="contains itself"):
        pack(holder, KINDS)


@pytest.mark.parametrize("value", [object(), print, Learner, np.ma.array([1]), b"bytes", 1j])
def test_what_has_no_kind_is_not_stored(value):
    with pytest.raises(TypeError, match=r"cannot store .*: a\.0"):
        pack({"a": [value]})


@pytest.mark.parametrize(
    "tree",
    [
        {"/": "os:system", "state": {}},
        {"/": "builtins.eval", "state": {}},
        {"/": "array", "name": "absent"},
        {"/": "window", "state": {"size": 0}},
        {"/": "point", "state": {"z": 1}},
        {"/": "csr array", "state": {"data": [1], "indices": [9], "indptr": [0], "shape": [1]}},
        {"/": "scalar", "dtype": "O", "value": 1},
        {"/": "generator", "state": {"bit_generator": "MT19937"}},
        {"/": ["array"], "name": "a"},
    ],
)
def test_a_tree_that_nobody_packed_is_refused(tree):
    with pytest.raises((ValueError, KeyError, TypeError)):
        unpack(Stored(tree, {}), KINDS)


def test_fields_are_read_by_their_types_and_only_defaults_may_be_missing():
    assert read_fields(Settings, {"C": 1, "names": ["a"], "more": 2}) == Settings(1.0, ("a",))
    assert read_fields(Settings, {"C": 0.5}) == Settings(0.5)
    for kind, told, name in (
        (Settings, {"names": []}, "C"), (Settings, {"C": "1"}, "C"), (Point, {"x": 1}, "y"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"^{name} "):
            read_fields(kind, told)
