"""The encoder follows the stream, and never sees where a batch was cut."""

import io
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rareclass.encoding.schema import Schema
from rareclass.encoding.streams import TAILS, OnlineEncoder
from rareclass.stored import pack, read_stored, unpack, write_stored
from rareclass.stream.state import KINDS
from rareclass.tables.text_reader import Batch

SCHEMA = Schema("y", {"a": "number", "c": "category", "b": "number", "d": "category"})
NUMBER = Schema("y", {"a": "number"})
WORD = Schema("y", {"c": "category"})


def batch(**columns):
    cells = {
        name: pl.Series(values, dtype=pl.String)
        if any(isinstance(value, str) for value in values) or name in "cd"
        else pl.Series(values, dtype=pl.Float64)
        for name, values in columns.items()
    }
    n = max(map(len, cells.values()))
    return Batch(pl.DataFrame(cells), np.arange(n), "a.csv", [], n, {})


def through_files(encoder):
    file = io.BytesIO()
    write_stored(file, pack(encoder, KINDS))
    file.seek(0)
    return unpack(read_stored(file), KINDS)


def plain_statistics(x, half_life):
    weights = np.zeros(0)
    for t in range(1, len(x) + 1):
        a = max(1 / t, 1 - 2 ** (-1 / half_life))
        weights = np.append(weights * (1 - a), a)
    mean = float(weights @ x)
    return mean, float(weights @ (x - mean) ** 2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("tails", "drawn_in"),
    [("asinh", math.asinh), ("clip", lambda z: min(max(z, -10), 10)), ("linear", lambda z: z)],
)
@pytest.mark.parametrize("half_life", [3.0, 20.0, 1e6])
def test_scaling_is_the_weighted_mean_and_deviation_up_to_the_row(half_life, tails, drawn_in):
    x = np.random.default_rng(0).normal(50, 3, size=120)
    x[70] = 1e6
    X = OnlineEncoder(NUMBER, half_life=half_life, tails=tails).encode(batch(a=x)).X[:, 0]
    assert X[0] == 0
    for i in range(1, len(x)):
        mean, variance = plain_statistics(x[: i + 1], half_life)
        z = (x[i] - mean) / variance**0.5
        assert X[i] == pytest.approx(drawn_in(z), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("past", "new"), [(10_000, 100), (72, 72)])
def test_all_rows_count_alike_until_the_past_halves_in_half_life_rows(past, new):
    encoder = OnlineEncoder(NUMBER, half_life=100)
    encoder.encode(batch(a=np.r_[np.ones(past), np.zeros(new)]))
    assert encoder.to_state()["statistics"][0, 1] == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("unit", [1000.0, 0.01])
def test_a_change_of_unit_is_followed(unit):
    rng = np.random.default_rng(0)
    encoder = OnlineEncoder(NUMBER, half_life=200, tails="clip")
    encoder.encode(batch(a=rng.normal(5, 1, size=5000)))
    encoder.encode(batch(a=unit * rng.normal(5, 1, size=4000)))
    X = encoder.encode(batch(a=unit * rng.normal(5, 1, size=1000))).X
    assert abs(X.mean()) < 0.2
    assert X.std() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("value", [0.1, 1.5e9 + 0.1, -3.0e38, 1e-300])
def test_a_constant_column_is_0(value):
    X = OnlineEncoder(NUMBER, half_life=10).encode(batch(a=np.full(1000, value))).X
    assert not X.any()


def test_a_column_that_has_become_constant_goes_to_0():
    encoder = OnlineEncoder(NUMBER, half_life=1000)
    encoder.encode(batch(a=1.5e9 + np.random.default_rng(0).normal(size=2000)))
    X = encoder.encode(batch(a=np.full(200_000, 1.5e9 + 0.3))).X
    assert np.abs(X[-1000:]).max() < 1e-6


def test_an_empty_cell_is_0_beside_an_indicator_born_there():
    encoder = OnlineEncoder(NUMBER)
    filled = OnlineEncoder(NUMBER).encode(batch(a=[1, 3, 8])).X[:, 0]
    X, births = encoder.encode(batch(a=[1, np.nan, 3, 8, np.nan]))
    np.testing.assert_array_equal(X[:, 0], [filled[0], 0, filled[1], filled[2], 0])
    assert X[:, 1].tolist() == [0, 1, 0, 0, 1]
    assert births.tolist() == [0, 1]
    assert encoder.feature_names == ["a", "a is missing"]
    assert encoder.encode(batch(a=[2.0])).births.tolist() == [0, 0]


def test_categories_are_born_in_order_and_the_late_share_one_feature():
    encoder = OnlineEncoder(WORD, max_categories=2)
    X, births = encoder.encode(batch(c=["u", "u", "v", None, "w", "x", "u", "other"]))
    assert encoder.feature_names == ["c=u", "c=v", "c is missing", "c=other"]
    assert births.tolist() == [0, 2, 3, 4]
    assert X.argmax(axis=1).tolist() == [0, 0, 1, 2, 3, 3, 0, 3]
    assert X.sum(axis=1).tolist() == [1] * 8


def test_a_value_spelt_other_is_not_the_shared_feature():
    encoder = OnlineEncoder(WORD, max_categories=1)
    assert encoder.encode(batch(c=["other", "w", "other"])).X.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert encoder.feature_names == ["c='other'", "c=other"]


def test_within_a_row_features_are_born_in_the_order_of_the_columns():
    encoder = OnlineEncoder(SCHEMA)
    rows = batch(a=[np.nan, 1], c=["u", "v"], b=[1, np.nan], d=[None, "w"])
    births = encoder.encode(rows).births
    born_first = ["a", "a is missing", "c=u", "b", "d is missing"]
    assert encoder.feature_names == [*born_first, "c=v", "b is missing", "d=w"]
    assert births.tolist() == [0] * 5 + [1] * 3


def test_memory_is_bounded():
    encoder = OnlineEncoder(WORD, max_categories=5)
    for k in range(20):
        encoder.encode(batch(c=[f"{k}-{i}" for i in range(50)]))
    assert encoder.n_features == 6
    assert len(encoder.to_state()["features"]) == 6


def test_scoring_changes_nothing():
    encoder = OnlineEncoder(SCHEMA, max_categories=1, tails="linear")
    encoder.encode(batch(a=[1, 3], c=["u", "u"], b=[1, np.nan], d=["x", "y"]))
    before = through_files(encoder)
    rows = batch(a=[2, np.nan], c=["new", None], b=[1, np.nan], d=["new", "x"])
    X, births = encoder.encode(rows, learn=False)
    assert encoder.feature_names == ["a", "c=u", "b", "d=x", "b is missing", "d=other"]
    assert X.tolist() == [[0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 0]]
    assert births.tolist() == [0] * 6
    assert same_state(encoder, before)
    X = encoder.encode(batch(a=[4], c=["u"], b=[9], d=[None]), learn=False).X
    assert X.tolist() == [[2, 1, 0, 0, 0, 0]]  # a: mean 2, deviation 1; b has not varied


def test_scoring_before_the_first_row_has_no_features():
    rows = batch(a=[1.0, np.nan], c=["u", None], b=[1.0, 2.0], d=["x", "y"])
    encoder = OnlineEncoder(SCHEMA)
    assert encoder.encode(rows, learn=False).X.shape == (2, 0)
    empty = batch(a=[], c=[], b=[], d=[])
    assert encoder.encode(empty).X.shape == (0, 0)
    assert encoder.encode(rows).births.tolist()[0] == 0


def same_state(one, other):
    a, b = one.to_state(), other.to_state()
    return a.pop("statistics").tobytes() == b.pop("statistics").tobytes() and a == b


NUMBERS = st.one_of(
    st.just(np.nan),
    st.sampled_from([0.0, -0.0, 1.0, 1.1, 1e9 + 0.1, 1e-310]),
    st.floats(-3e38, 3e38),
)
WORDS = st.one_of(st.none(), st.sampled_from(["u", "v", "w", "x", "other", "ü", ""]))
ROWS = st.lists(st.tuples(NUMBERS, WORDS, NUMBERS, WORDS), min_size=1, max_size=25)


def rows_of(rows):
    return batch(**{name: [row[k] for row in rows] for k, name in enumerate("acbd")})


@given(
    ROWS,
    st.sampled_from([1.0, 4.0, 1e5]),
    st.integers(1, 3),
    st.sampled_from(sorted(TAILS)),
    st.data(),
)
def test_cuts_and_checkpoints_leave_no_trace(rows, half_life, most, tails, data):
    whole = OnlineEncoder(SCHEMA, most, half_life, tails)
    expected = whole.encode(rows_of(rows))
    assert (np.diff(expected.births) >= 0).all()
    assert np.isfinite(expected.X).all()
    for column, birth in enumerate(expected.births):
        assert not expected.X[:birth, column].any()
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=6).map(sorted))
    saved = data.draw(st.lists(st.booleans(), min_size=len(cuts) + 1, max_size=len(cuts) + 1))
    encoder = OnlineEncoder(SCHEMA, most, half_life, tails)
    X = np.zeros_like(expected.X)
    births = np.full(len(expected.births), -1)
    for start, stop, save in zip([0, *cuts], [*cuts, len(rows)], saved, strict=True):
        if save:
            encoder = through_files(encoder)
        encoder.encode(rows_of(rows[:stop]), learn=False)  # a look in between
        old = encoder.n_features
        part = encoder.encode(rows_of(rows[start:stop]))
        assert part.X.shape == (stop - start, encoder.n_features)
        assert not part.births[:old].any()
        births[old : encoder.n_features] = part.births[old:] + start
        X[start:stop, : encoder.n_features] = part.X
    assert X.tobytes() == expected.X.tobytes()
    np.testing.assert_array_equal(births, expected.births)
    assert encoder.feature_names == whole.feature_names
    assert same_state(encoder, whole)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_categories": 0}, "max_categories=0 must be a whole number above 0"),
        ({"half_life": 0}, "half_life=0 must be a number of rows above 0"),
        ({"half_life": float("nan")}, "half_life=nan must be"),
        ({"tails": "fat"}, "tails must be one of asinh, clip, linear, not 'fat'"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    with pytest.raises(ValueError, match=message):
        OnlineEncoder(NUMBER, **parameters)


def test_raw_cells_are_refused_before_anything_changes():
    encoder = OnlineEncoder(SCHEMA)
    for rows in (batch(a=[1.0], c=["u"], b=[1.0]), batch(a=["1"], c=["u"], b=[1.0], d=["x"])):
        with pytest.raises(ValueError, match="has not been parsed"):
            encoder.encode(rows)
    assert encoder.n_features == 0
