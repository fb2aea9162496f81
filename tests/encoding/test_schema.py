"""What columns of a stream are taken for, and which rows are turned away and why."""

import datetime as dt
import json
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_series_equal

from faults import refused
from rareclass.encoding.schema import Schema, find_schema
from rareclass.encoding.target import labels_as_text, read_rare_or_rest
from rareclass.errors import ErrorKind, InputError
from rareclass.labels.spelling import label_value
from rareclass.labels.two_classes import label_array
from rareclass.stored import pack, unpack
from rareclass.stream import state
from rareclass.tables.columns import ID_LEAST_ROWS, facts_of, kind_of
from rareclass.tables.reading import CellReading, text_of_values
from rareclass.tables.text_reader import TEXT_LIMIT, Batch, Rejected


def batch(**columns):
    cells = {
        name: pl.Series(values) if isinstance(values, np.ndarray) else text_of_values(values)
        for name, values in columns.items()
    }
    n = max(map(len, cells.values()), default=0)
    return Batch(pl.DataFrame(cells), np.arange(2, n + 2), "pay.csv", [], n, {"offset": 9})


def reasons(schema, rows):
    return {row.line: row.reason for row in schema.check(rows)[1]}


KINDS = {
    "whole": (["1", "-2", "3"], "number"),
    "spaced": ([" 1.5", "2e3 ", "+4"], "number"),
    "gaps": (["", "NA", "7"], "number"),
    "truth": (["true", "False", "1"], "number"),
    "objects": ([True, 2, 3.5], "number"),
    "float_array": (np.array([1.0, np.nan, 2.0]), "number"),
    "infinite": (["inf", "1", "2"], "number"),
    "huge": ([10**400, 1, 2], "number"),
    "mostly": (["1", "2", "abc"], "category"),
    "words": (["a", "b", "a"], "category"),
    "mixed": ([1, "b", None], "category"),
    "date": (["2020-01-31", "", "2021-12-01"], "time"),
    "moment": (["2020-01-31T10:00:00Z", "2020-01-31 10:00", "2020-02-01"], "time"),
    "no_date": (["2020-01-31", "2020-02-30", "2020-01-01"], "category"),
    "local_date": (["31.01.2020", "01.02.2020", "02.02.2020"], "time"),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_kind_of_a_column(name):
    cells, kind = KINDS[name]
    schema = find_schema(batch(**{name: cells, "beside": [1, 2, 3], "y": [0, 1, 0]}), "y")
    assert schema.kinds == {name: kind, "beside": "number"}
    assert (name in schema.features) is (kind != "time")


def test_target_id_and_dropped_columns_are_left_out_and_categories_can_be_forced():
    rows = batch(n=["7", "8"], code=["1", "2"], junk=["a", "b"], row=[71, "r2"], y=["0", "1"])
    schema = find_schema(rows, "y", id_column="row", drop=["junk"], categories=["code"])
    assert schema.features == {"n": "number", "code": "category"}
    good, rejected = schema.check(rows)
    assert rejected == []
    assert good.frame["code"].to_list() == ["1", "2"]
    assert good.frame["row"].to_list() == ["71", "r2"]
    assert (
        set(find_schema(rows, "y").check(rows)[0].frame.columns)
        == set(good.frame.columns)
        == set(rows.frame.columns)
    )
    assert good.frame["junk"].to_list() == ["a", "b"]  # as it came


def test_notes_tell_what_may_have_gone_wrong():
    n = 30
    rows = batch(
        a=[str(k) for k in range(n - 2)] + ["abc", "def"],
        blank=[""] * n,
        when=["2020-01-01"] * n,
        ident=[f"k{k}" for k in range(n)],
        y=["0", "1"] * (n // 2),
    )
    notes = find_schema(rows, "y").notes
    assert "'a' holds 28 numbers but, in line 30, 'abc': read as a category." in notes[0]
    assert "'blank' is empty in the first 30 rows: read as a number" in notes[1]
    assert "'when' holds dates" in notes[2]
    assert "'ident' has another word in each" in notes[3]
    assert "drop=['ident']" in notes[3]


def kinds_of(n, keep=(), **columns):
    rows = batch(**columns, beside=[k % 7 for k in range(n)], y=["0", *["1"] * (n - 1)])
    return find_schema(rows, "y", keep=keep).kinds


@given(
    st.integers(ID_LEAST_ROWS, 60), st.integers(-1000, 2000), st.sampled_from([-3, -1, 1, 2, 60])
)
def test_running_numbers_are_not_learned_from(n, start, step):
    """As in a file; so few of them in another order are numbers like others."""
    running = [start + step * k for k in range(n)]
    mixed = running[1::2] + running[::2]
    as_text = [str(value) for value in running]
    kinds = kinds_of(n, running=running, mixed=mixed, as_text=as_text)
    assert [kinds[name] for name in ("running", "mixed", "as_text")] == ["id", "number", "id"]
    facts = facts_of(pl.Series("running", running))
    assert kind_of(facts, True, False)[0] == "id-like"
    assert kinds_of(n, ["running"], running=running)["running"] == "number"


@given(st.integers(100, 150), st.data())
def test_a_clock_is_not_learned_from(n, data):
    """Numbers that never fall, many of them different, whole or not; one empty cell is enough."""
    steps = data.draw(st.lists(st.sampled_from([0.0, 0.25, 1.0, 30.0]), min_size=n, max_size=n))
    clock = np.cumsum([1.5, *steps[1:]]).tolist()
    rises = 2 * len(set(clock)) >= n
    back = [*clock[:-1], clock[0] - 1.0]
    kinds = kinds_of(n, clock=clock, back=back, gap=[None, *clock[1:]], falls=clock[::-1])
    learned = [kinds[name] == "number" for name in ("clock", "back", "gap", "falls")]
    assert learned == [not rises, True, True, not rises]
    few = kinds_of(99, clock=[value + 0.5 for value in clock[:99]])
    assert few["clock"] == "number"


@pytest.mark.parametrize("n", [999, 1000])
def test_what_names_a_row_must_differ_in_many_rows(n):
    """Whole numbers of a name like customer_id, and words of any."""
    shuffled, words = [(7 * k) % n * 11 for k in range(n)], [f"k{k}" for k in range(n)]
    kinds = kinds_of(n, customer_id=shuffled, amount=shuffled)
    assert (kinds["customer_id"], kinds["amount"]) == ("id" if n == 1000 else "number", "number")
    rows = batch(ident=words, beside=[k % 7 for k in range(n)], y=["0", *["1"] * (n - 1)])
    schema = find_schema(rows, "y")
    assert schema.kinds["ident"] == ("id" if n == 1000 else "category")
    assert ("keep=['ident']" in schema.notes[0]) is (n == 1000)
    for how in ({"keep": ["ident"]}, {"categories": ["ident"]}):
        assert find_schema(rows, "y", **how).kinds["ident"] == "category"


@pytest.mark.parametrize("n", [ID_LEAST_ROWS - 1, ID_LEAST_ROWS])
def test_another_word_in_each_row_is_noted_from_so_many_rows_on(n):
    rows = batch(
        ident=[f"k{k}" for k in range(n)],
        twice=[f"k{max(k, 1)}" for k in range(n)],
        y=["0", *["1"] * (n - 1)],
    )
    noted = ["'ident'" in note for note in find_schema(rows, "y").notes]
    assert noted == [True] * (n == ID_LEAST_ROWS)


@pytest.mark.parametrize(
    ("n_words", "n_values", "kind"),
    [(1, 1000, "number"), (50, 1000, "number"), (51, 1000, "category"), (1, 20, "category")],
)
def test_a_few_words_among_many_numbers_are_mistakes(n_words, n_values, kind):
    cells = [str(row % n_values) for row in range(1000)]
    cells[500 : 500 + n_words] = ["lots"] * n_words
    rows = batch(a=[*cells, "", "NA"], y=["0", "1"] * 501)
    schema = find_schema(rows, "y")
    assert schema.kinds == {"a": kind}
    assert f"'a' holds {1000 - n_words} numbers but, in line 502, 'lots'" in schema.notes[0]
    assert ("categories=['a'] takes words" in schema.notes[0]) is (kind == "number")
    rejected = reasons(schema, rows) if kind == "number" else {}
    wanted = range(502, 502 + n_words) if kind == "number" else ()
    assert rejected == dict.fromkeys(wanted, "column 'a': 'lots' is not a number")
    assert find_schema(rows, "y", categories=["a"]).kinds == {"a": "category"}


ERRORS = [
    ({"target": "Y"}, "pay.csv has no column 'Y'. Did you mean 'y'"),
    ({"target": "y", "drop": ["amunt"]}, "no column 'amunt'. Did you mean 'amount'?"),
    ({"target": "y", "categories": ["q"]}, "no column 'q'"),
    ({"target": "y", "id_column": "q"}, "no column 'q'"),
    ({"target": "y", "drop": ["amount"]}, "no column to learn from"),
    ({"target": "amount"}, r"'amount' holds '3', '4', and which of them is rare.*positive="),
]


@pytest.mark.parametrize(("options", "message"), ERRORS)
def test_errors_name_the_column_and_the_remedy(options, message):
    with pytest.raises(InputError, match=message):
        find_schema(batch(amount=["3", "4"], y=["0", "1"]), **options)


def test_no_rows_is_an_error_with_the_first_fault_of_the_reader():
    fault = Rejected("pay.csv", 2, "3 fields where the header has 2", "1,2,3")
    rows = batch(amount=[], y=[])._replace(rejected=[fault])
    with pytest.raises(InputError, match=r"no row could be read .* 3 fields where"):
        find_schema(rows, "y")


def test_bad_rows_are_taken_out_with_line_reason_and_text():
    schema = Schema("y", {"amount": "number", "land": "category"})
    rows = batch(
        amount=["1", "abc", "inf", " 2.5 ", "-1e999", "4e38", "x" * 900, "?"],
        land=["DE", "DE", "FR", " True", "", "FR", "FR", None],
        y=["0", "1", "1", "1", "0", "0", "0", ""],
    )
    good, rejected = schema.check(rows)
    assert [row.line for row in rejected] == [3, 4, 6, 7, 8]
    assert [row.reason for row in rejected[:4]] == [
        "column 'amount': 'abc' is not a number",
        "column 'amount' is infinite",
        "column 'amount' is infinite",
        "column 'amount': '4e38' is too large to compute with",
    ]
    assert len(rejected[4].reason) < 120
    assert len(rejected[4].text) == TEXT_LIMIT
    assert rejected[0].file == "pay.csv"
    assert json.loads(rejected[0].text) == {"amount": "abc", "land": "DE", "y": "1"}
    assert good.lines.tolist() == [2, 5, 9]
    np.testing.assert_array_equal(good.frame["amount"], [1.0, 2.5, np.nan])
    assert good.frame["land"].to_list() == ["DE", "true", None]
    np.testing.assert_array_equal(good.frame["y"], [0.0, 1.0, np.nan])
    assert (good.file, good.n_read, good.position) == (rows.file, rows.n_read, rows.position)


def test_columns_that_are_unknown_or_not_there():
    schema = Schema("y", {"a": "number", "b": "category", "when": "time"}, dropped=("junk",))
    rows = batch(a=["1", "2"], b=["", "v"], x=["", "5"], y=["0", "1"])
    assert reasons(schema, rows) == {3: "unknown column 'x'"}
    assert reasons(schema, batch(y=["0", "1"])) == dict.fromkeys((2, 3), "no column 'a'")
    good, rejected = schema.check(batch(a=["1", "2"], b=["u", "v"]))
    assert rejected == []
    assert good.frame["y"].is_nan().all()  # labels are waited for


def test_a_list_is_no_category_and_no_number():
    cells = pl.DataFrame({"x": [[1], [2]], "y": ["0", "1"]})
    rows = Batch(cells, np.array([2, 3]), "pay.parquet", [], 2, {})
    for kind, name in (("number", "numbers"), ("category", "words")):
        reason = (
            f"Column 'x' holds cells of type List(Int64), where the model was trained on {name}"
        )
        assert reasons(Schema("y", {"x": kind}), rows) == {2: reason, 3: reason}
    found = find_schema(rows._replace(frame=cells.with_columns(z=pl.Series([1.5, 2.5]))), "y")
    assert found.kinds == {"x": "unusable", "z": "number"}
    assert found.features == {"z": "number"}
    assert "'x' holds cells of type List(Int64): not learned from" in found.notes[0]


def test_half_a_surrogate_pair_is_text_that_can_be_written():
    schema = Schema("y", {"a": "number", "b": "category"})
    half = json.loads(r'"\ud800"')
    good, rejected = schema.check(batch(a=["1", half, "3"], b=[half, "v", "w"], y=["0", "0", "0"]))
    assert good.frame["a"].to_list() == [1.0, 3.0]
    assert [value.encode() for value in good.frame["b"]] == [b"\\ud800", b"w"]
    assert [(row.text + row.reason).encode() != b"" for row in rejected] == [True]


WITHOUT_POSITIVE = {
    1: [1, True, "1", "1.0", " TRUE", "Yes", 1.0, "+1"],
    0: [0, False, "0", "0.0", "false", "NO ", 0.0, "-1"],
    None: ["", None, float("nan"), "NA"],
}


@pytest.mark.parametrize("label", WITHOUT_POSITIVE)
def test_labels_that_need_no_name(label):
    schema = Schema("y", {"a": "number"})
    for cell in WITHOUT_POSITIVE[label]:
        good, rejected = schema.check(batch(a=[1], y=[cell]))
        assert rejected == []
        expected = np.nan if label is None else float(label)
        np.testing.assert_array_equal(good.frame["y"], [expected])


def test_other_labels_are_rejected_until_one_is_named():
    rows = batch(a=[1, 2, 3, 4], y=["1", "2", "0", "fraud"])
    assert reasons(Schema("y", {"a": "number"}), rows) == {
        3: "column 'y': '2' is neither 1, true or yes nor 0, -1, false or no; name the rare label "
        "with positive=",
        5: "column 'y': 'fraud' is neither 1, true or yes nor 0, -1, false or no; name the rare "
        "label with positive=",
    }
    for positive, expected in {"fraud": [0, 0, 0, 1], "2.0": [0, 1, 0, 0]}.items():
        good, rejected = Schema("y", {"a": "number"}, positive=positive).check(rows)
        assert rejected == []
        assert good.frame["y"].to_list() == expected
    like_empty = Schema("y", {"a": "number"}, positive="none")
    good, _ = like_empty.check(batch(a=[1, 2, 3], y=["none", "", "some"]))
    np.testing.assert_array_equal(good.frame["y"], [1.0, np.nan, 0.0])


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(["", "1", " 2.5", "NA", "abc", "inf", "true", "1_000", "1,5", "-", "1e400"]),
    st.text(max_size=4),
)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=12), st.data())
def test_a_row_is_judged_and_read_by_itself(rows, data):
    """The fast ways, taken where all cells are alike, read as the slow ones do."""
    schema = Schema("y", {"a": "number", "b": "category"}, positive="1")
    whole = batch(**{n: [row[k] for row in rows] for k, n in enumerate("aby")})
    good, rejected = schema.check(whole)
    cut = data.draw(st.integers(0, len(rows)))
    parts = []
    for part in (slice(0, cut), slice(cut, None)):
        cells = whole.frame[part]
        parts.append(schema.check(whole._replace(frame=cells, lines=whole.lines[part])))
    for name in "aby":
        joined = pl.concat([part.frame[name] for part, _ in parts])
        assert_series_equal(joined, good.frame[name])
    assert [*parts[0][1], *parts[1][1]] == rejected
    assert np.concatenate([part.lines for part, _ in parts]).tolist() == good.lines.tolist()


def test_a_schema_survives_a_checkpoint():
    kinds = {"b": "number", "a": "category", "when": "time"}
    schema = Schema("y", kinds, ("x",), "id", ("fraud",), ("note",), {"b": CellReading("number")})
    again = unpack(pack(schema, state.KINDS), state.KINDS)
    assert again == schema
    assert list(again.features) == ["b", "a"]
    assert again.notes == schema.notes


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["none", "-", "?", "x"])])
def test_marks_of_empty_cells_may_be_labels(dtype):
    labels = labels_as_text(pl.Series(["none", "-", "?", "x", None], dtype=dtype))
    assert labels.to_list() == ["none", "-", "?", "x", None]


@pytest.mark.parametrize("rest", ["none", "NA", "?", "null", "-", "nan", "no", "0"])
def test_marks_of_emptiness_are_labels_to_a_stream_as_they_are_to_a_fit(rest):
    """Where the rare label is named, all but nothing at all is a label of the rest."""
    text = pl.Series(["fraud", rest, "", None, " "])
    read = read_rare_or_rest(text, "fraud")
    assert read.is_nan().to_list() == labels_as_text(text).is_null().to_list()
    np.testing.assert_array_equal(read[:2], [1.0, 0.0])
    assert read_rare_or_rest(text[1:2], rest).to_list() == [1.0]


def test_long_whole_numbers_are_different_labels():
    for largest in (2**53, 10**19, 10**25, 10**400):
        labels = [str(largest + k) for k in range(5)]
        assert (
            len({label_value(label) for label in (*labels, *(f"-{each}" for each in labels))}) == 10
        )
        for label in labels:
            assert label_value(f" +00{label} ") == label_value(label)
    assert label_value("9007199254740991.0") == label_value("9007199254740991") == 2.0**53 - 1


@pytest.mark.parametrize(
    "cells",
    [
        [[1]],
        [{"a": 1}, None],
        [b"a", b"b"],
        np.ones(1, "m8[ms]"),
        [dt.time(1), None],
        [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)],
        [None, dt.datetime(2024, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo"))],
    ],
)
def test_types_that_are_no_labels_are_refused_from_a_column_and_in_python(cells):
    cells = pl.Series("y", cells)
    for read in (labels_as_text, lambda y: read_rare_or_rest(y, "a")):
        with refused(ErrorKind.LABELS, column="y"):
            read(cells)
    with refused(ErrorKind.LABELS):
        label_array(np.array([*cells.drop_nulls(), None], dtype=object)[:-1])
