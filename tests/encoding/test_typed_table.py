"""Tables of every make become the same typed columns; what cannot is told by name."""

import datetime as dt
import math
from functools import cache

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse

from draws import draws
from faults import refused
from rareclass.encoding.column_values import RecurringDates
from rareclass.encoding.typed_table import read_table
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind, finding_of

N = 50
WAVE = np.sin(np.arange(N))
WORDS = ["red", "blue", "", None, "  "]


def frame():
    return pd.DataFrame(
        {
            "number": np.arange(N) % 7 * 1.5,
            "truth": [True, None] * (N // 2),
            "chosen": pd.Categorical(["1", "2"] * (N // 2)),
            "zoned": pd.date_range("2020-01-01", periods=N, tz="Europe/Berlin"),
            "word": (WORDS * N)[:N],
            "text": [f"row {k} has words" for k in range(N)],
            "mixed": [1, "u"] * (N // 2),
            "written": ["1.50", "-2"] * (N // 2),
            "code": ["007", "7"] * (N // 2),
            "iso": ["2020-01-01 10:00", "2021-02-03T00:00:01Z"] * (N // 2),
            "whole": pd.array([1, None] * (N // 2), dtype="Int64"),
            "span": pd.to_timedelta([1.5, 3] * (N // 2), unit="s"),
            "constant": ["same"] * N,
            "empty": [None] * N,
        }
    )


KINDS = {
    "number": "number",
    "truth": "number",
    "chosen": "category",
    "zoned": "date",
    "word": "category",
    "text": "text",
    "mixed": "category",
    "written": "number",
    "code": "category",
    "iso": "date",
    "whole": "number",
    "span": "number",
}


@cache
def known():
    return read_table(frame())


def test_kinds_and_values():
    table = known()
    assert {column.name: column.kind for column in table.columns} == KINDS
    dropped = {each.name: each.why_dropped for each in table.remembered if not each.is_used}
    assert dropped == {"constant": "always same", "empty": "every cell is empty"}
    assert table.n_rows == N
    np.testing.assert_array_equal(table.column("truth").values[:2], [1, np.nan])
    assert table.column("chosen").words()[:2].tolist() == ["1", "2"]
    assert table.column("word").words()[:5].tolist() == ["red", "blue", None, None, None]
    assert table.column("mixed").words()[:2].tolist() == ["1", "u"]
    np.testing.assert_array_equal(table.column("written").values[:2], [1.5, -2])
    np.testing.assert_array_equal(table.column("span").values[:2], [1.5, 3])
    midnight_in_berlin = dt.datetime(2020, 1, 1, tzinfo=dt.UTC).timestamp()
    assert table.column("zoned").values[0] == midnight_in_berlin
    stamps = [dt.datetime(2020, 1, 1, 10, tzinfo=dt.UTC), dt.datetime(2021, 2, 3, 0, 0, 1)]
    seconds = [stamp.replace(tzinfo=dt.UTC).timestamp() for stamp in stamps]
    assert table.column("iso").values[:2].tolist() == seconds


def same(one, other):
    for a, b in zip(one.columns, other.columns, strict=True):
        assert (a.name, a.kind) == (b.name, b.kind)
        if a.levels is None:
            np.testing.assert_array_equal(a.values, b.values)
        else:
            assert a.words().tolist() == b.words().tolist()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_every_make_of_table_is_the_same(convert):
    plain = frame().drop(columns="mixed")
    same(read_table(plain), read_table(convert(plain)))


def test_columns_are_found_by_name_in_any_order_and_others_are_not_looked_at():
    table = known()
    shuffled = frame()[list(reversed(KINDS))].assign(other=[[1]] * N)
    same(table, read_table(shuffled, like=table.remembered))


def test_arrays_are_taken_by_position():
    X = np.array([[1.0, 2.0], [3.0, np.nan]])
    table = read_table(X)
    assert table.names == ["x0", "x1"]
    again = read_table(X[:, ::-1].astype(np.float32), like=table.remembered)
    np.testing.assert_array_equal(again.column("x0").values, X[:, 1])
    with refused(ErrorKind.SHAPE, says="X has 1 column"):
        read_table(X[:, :1], like=table.remembered)
    texts = read_table(np.array([["a", "1"], ["b", "2"]]))
    assert [column.kind for column in texts.columns] == ["category", "number"]


def test_take():
    table = known()
    for rows in (np.array([3, 1, 1]), np.arange(N) % 3 == 0, slice(2, 9)):
        taken = table.take(rows)
        same(taken, read_table(frame().iloc[rows], like=table.remembered))
        assert taken.n_rows == len(frame().iloc[rows])


REFUSED = [
    (lambda f: f.assign(number=["1"] * 3 + ["q"] * (N - 3)), "number", 3, "q"),
    (lambda f: f.assign(number=True), "number", 0, True),
    (lambda f: f.assign(number=np.inf), "number", 0, np.inf),
    (lambda f: f.assign(iso="today"), "iso", 0, "today"),
    (lambda f: f.assign(zoned=1), "zoned", None, None),
    (lambda f: f.assign(word=[[1]] * N), "word", None, None),
    (lambda f: f.assign(word=[b"x"] * N), "word", None, None),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("change", "column", "row", "value"), REFUSED)
def test_what_cannot_be_read_is_told_with_column_row_and_value(change, column, row, value):
    table = known()
    with refused(ErrorKind.CELL, column=column, row=row, value=value):
        read_table(change(frame()), like=table.remembered)


def test_columns_that_are_not_there_are_named():
    table = known()
    new = frame().drop(columns="word").rename(columns={"number": "Number"})
    with refused(ErrorKind.MISSING_COLUMN, column="number", says="'number' (is it 'Number'?), 'wo"):
        read_table(new, like=table.remembered)


NO_TABLES = [
    (sparse.csr_matrix(np.eye(2)), ErrorKind.UNSUPPORTED, "toarray()"),
    (pl.LazyFrame({"a": [1]}), ErrorKind.SHAPE, "collect()"),
    (np.arange(3), ErrorKind.SHAPE, "Reshape your data"),
    (np.eye(2) * 1j, ErrorKind.SHAPE, "Complex data not supported"),
    (pd.DataFrame([[1, 2]], columns=["a", "a"]), ErrorKind.COLUMN_NAMES, "'a'"),
    (pa.table([[1], [2]], names=["a", "a"]), ErrorKind.COLUMN_NAMES, "'a'"),
    (np.ones((1, 2)), ErrorKind.TOO_FEW_ROWS, "n_samples=1"),
    (np.ones((0, 2)), ErrorKind.TOO_FEW_ROWS, "no rows"),
    (np.ones((3, 2)), ErrorKind.MISSING_COLUMN, "'x0': always 1, 'x1': always"),
    (np.array([[1.0], [-np.inf]]), ErrorKind.CELL, "-inf"),
]


@pytest.mark.parametrize(("X", "kind", "says"), NO_TABLES)
def test_what_is_no_table_is_refused(X, kind, says):
    with refused(kind, says=says, remedy=False):
        read_table(X)


IDENTIFIERS = [
    ("key", [f"k{k}" for k in range(N)], "different in"),
    ("a", list(range(5, N + 5)), "consecutive"),
    ("a", [str(k * k) for k in range(N, 0, -1)], "order"),
    ("a", [(7 * k) % N for k in range(N)], "consecutive"),
    ("customer_id", [(7 * k) % N * 3 for k in range(N)], "named like"),
]


@pytest.mark.parametrize(("name", "given_cells", "why"), IDENTIFIERS)
def test_what_names_a_row_is_left_out_with_a_warning(name, given_cells, why):
    X = pd.DataFrame({name: given_cells, "beside": [1, 2] * (N // 2)})
    with pytest.warns(UserWarning, match=f"column '{name}' is left out: it is .*{why}") as caught:
        table = read_table(X)
    assert table.names == ["beside"]
    assert finding_of(caught[0].message).values["column"] == name
    assert read_table(X[["beside"]], like=table.remembered).names == ["beside"]
    for again in (X.astype({name: "category"}), pd.concat([X, X])):
        assert read_table(again).names == [name, "beside"]


@pytest.mark.filterwarnings("ignore:column")
def test_types_that_only_pandas_has_are_their_text():
    y = [k % 10 == 0 for k in range(N)]
    numbers = pd.Series(np.arange(N) % 9)
    given = {
        "cut": pd.cut(numbers, 3),
        "interval": pd.interval_range(0, 9, 9)[np.arange(N) % 9],
        "days": pd.period_range("2024-01-01", periods=N, freq="D"),
        "long": pd.Series([2**70 + k % 3 for k in range(N)], dtype=object),
    }
    table = read_table(pd.DataFrame(given | {"y": y}))
    text = {name: [str(cell) for cell in cells] for name, cells in given.items()}
    as_text = read_table(pd.DataFrame(text | {"y": y}))
    for name in given:
        one, other = table.column(name), as_text.column(name)
        assert one.kind == other.kind
        both = [each.values if each.levels is None else each.words() for each in (one, other)]
        np.testing.assert_array_equal(*both)


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "2D", "h", "m", "7s", "s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_times_of_an_array_are_read_in_any_unit(kind, unit):
    given = (np.arange(N) % 30).astype(f"{kind}[{unit}]")
    cells = np.array([*given, "NaT"], given.dtype)[:, None]
    wanted = np.append(given.astype(f"{kind}[us]").astype(float) / 1e6, np.nan)
    hidden = np.ma.masked_array(cells, np.isnat(cells))
    for table in (cells, hidden):
        np.testing.assert_allclose(read_table(table).columns[0].values, wanted, atol=1e-6)


def test_names_and_masks_of_any_table_are_read():
    numbers = np.ma.masked_array(np.arange(N) % 7, np.arange(N) == 3)
    [column] = read_table(numbers[:, None]).columns
    assert np.flatnonzero(np.isnan(column.values)).tolist() == [3]
    table = pd.DataFrame({"": np.arange(N) % 7, "word": ["a", "b"] * (N // 2)})
    batch = pa.RecordBatch.from_pandas(table)
    for each in (table, pl.DataFrame({k: table[k] for k in table}), pa.table(table), batch):
        read = read_table(each)
        assert [column.name for column in read.columns] == ["column_1", "word"]
        assert len(read_table(each, read.remembered).columns) == 2


def lists_of_categories():
    places = pa.array(np.arange(N) % 2, pa.int8())
    return pa.DictionaryArray.from_arrays(places, pa.array([{"b": 1}, {"b": 2}]))


@pytest.mark.parametrize(
    "two", [[(1,), 3], [frozenset("a"), "b"], [1j, 2j], [b"a", b"b"], [object(), object()], None]
)
def test_objects_without_a_text_of_their_own_are_left_out(two):
    if two is None:
        tables = [pa.table({"a": lists_of_categories(), "n": WAVE})]
    else:
        cells = np.array([*two, None], dtype=object)[np.arange(N) % 3]
        columns = [pd.Series(cells), pd.Series(cells).astype("category")]
        tables = [pd.DataFrame({"a": column, "n": WAVE}) for column in columns]
    for table in tables:
        with pytest.warns(UserWarning, match="'a' is left out: cells of type") as told:
            read = read_table(table)
        assert [finding_of(each.message).kind for each in told] == [FindingKind.UNUSABLE]
        assert (read.names, read.remembered[0].kind) == (["n"], "unusable")
        with (
            pytest.warns(UserWarning, match="left out"),
            refused(ErrorKind.MISSING_COLUMN, says="'a': cells of type"),
        ):
            read_table(nw.from_native(table).select("a").to_native())


CELLS = st.one_of(
    *(st.none(), st.booleans(), st.integers(-9, 9), st.floats(-9, 9), st.just("\ud800")),
    st.text("ab1 .", max_size=3),
)


@pytest.mark.filterwarnings("ignore:column")
@draws(60)
@given(st.lists(CELLS, min_size=2, max_size=8))
@example([None, "1b"])
@example(["\ud800", "b"])
def test_any_column_of_objects_is_read_again_as_it_was(drawn):
    """Whatever was read in training can be read at scoring, row by row, and is the same."""
    X = np.array([[cell, k % 2] for k, cell in enumerate(drawn)], dtype=object)
    table = read_table(X)
    same(table, read_table(X, like=table.remembered))
    for k in range(len(drawn)):
        same(table.take([k]), read_table(X[k : k + 1], like=table.remembered))


MOMENT = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))


def seconds(moment):
    return moment.replace(tzinfo=dt.UTC).timestamp()


@draws(60)
@given(st.lists(MOMENT, min_size=2, max_size=6, unique=True))
def test_the_calendar(moments):
    dates = np.array([[seconds(moment)] for moment in moments])
    recurring = RecurringDates(absolute_time=True).fit(dates)
    found = dict(
        zip([part for part, *_ in recurring.features_], recurring.transform(dates).T, strict=True)
    )
    for k, moment in enumerate(moments):
        day = (moment - moment.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds()
        turns = {
            "hour": day / 86400,
            "weekday": moment.weekday() / 7,
            "month": (moment.month - 1) / 12,
        }
        for unit, turn in turns.items():
            for wave, function in (("sine", math.sin), ("cosine", math.cos)):
                if f"{unit} ({wave})" in found:
                    wanted = function(2 * math.pi * turn)
                    assert np.isclose(found[f"{unit} ({wave})"][k], wanted, atol=1e-6)
        if "day of the month" in found:
            assert found["day of the month"][k] == moment.day
        assert np.isclose(found["time"][k], seconds(moment) / 86400)


def test_what_does_not_vary_is_left_out():
    week = 7 * 86400.0
    recurring = RecurringDates().fit(np.array([[0.0, week], [week, 3 * week], [np.nan, 0.0]]))
    names = [(part, first, second) for part, first, second in recurring.features_]
    assert names == [("day of the month", 0, 0), ("day of the month", 1, 1), ("days", 0, 1)]
    assert recurring.n_cycles_ == 0
    days = recurring.transform(np.array([[0.0, 1.5 * 86400], [np.nan, 0.0]]))[:, 2]
    np.testing.assert_array_equal(days, [1.5, np.nan])


def test_rows_without_weight_do_not_vary():
    dates = np.array([[0.0], [3600.0]])
    assert RecurringDates().fit(dates, np.array([1.0, 0.0])).features_ == []
    assert RecurringDates().fit(dates, np.ones(2)).features_ != []
