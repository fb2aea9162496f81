"""A column means the same to a file's reader, to a stream's, and to RareClassifier's.

Each column stands as text in a CSV file for `rareclass fit`, comes through the stream's reader, and
is given to RareClassifier as a column of pandas, polars and Arrow. Typed columns do the same
through Parquet. All must find one kind and the same values.
"""

import csv
import datetime as dt
import json
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from draws import draws
from faults import refused
from rareclass.encoding.schema import Schema, find_schema
from rareclass.encoding.training_table import (
    plan_reading,
    read_training_table,
    stream_training_table,
)
from rareclass.encoding.typed_table import read_table
from rareclass.errors import ErrorKind, InputError
from rareclass.findings import TableWarning
from rareclass.serving.requests import RefusedError, rows_of_json
from rareclass.tables.cells import (
    canonical_words,
    is_empty,
    is_missing,
    without_empty_marks,
    word_of,
)
from rareclass.tables.columns import Column
from rareclass.tables.frames import series_of_objects
from rareclass.tables.reading import CellReading, read_cells, text_of_values
from rareclass.tables.sources import open_source
from rareclass.tables.table_file import open_table
from tables.readings import head_of

N = 120
NOISE = np.random.default_rng(0).normal(size=N)
UTC = dt.UTC
DAY_OF = dt.date(2024, 3, 5)


class Read(NamedTuple):
    """A column as some reader has it: truth values as 0 and 1, dates as seconds since 1970."""

    kind: str
    values: list[Any] | None


class Meant(NamedTuple):
    cells: list[Any]
    kind: str
    values: list[Any] | None


def repeated(cells):
    return (list(cells) * N)[:N]


def seconds(*times):
    return [dt.datetime(*time, tzinfo=UTC).timestamp() for time in times]


NOON, DAY = (2024, 12, 31, 12), (2024, 12, 31)
IDS = [f"u{k * 7919 % 99991}" for k in range(N)]
LONG = ["1234567890123456789", "1234567890123456790"]
ICD = [*(f"{250 + k // 2}.83" for k in range(N - 2)), "V53", "E87"]
MANY = [*(str(k // 2) for k in range(N - 2)), "A1", "a1"]
TEXT = {
    "marks of emptiness": Meant(["1.5", "2", "NA", "7"], "number", [1.5, 2.0, None, 7.0]),
    "more marks": Meant(
        ["1", "\\N", "(null)", "n.a.", "-", "?", "NaN", " null ", "2"],
        "number",
        [1.0, *[None] * 7, 2.0],
    ),
    "day first": Meant(["31.12.2024", "01.02.2024"], "date", seconds(DAY, (2024, 2, 1))),
    "month first": Meant(["12/31/2024", "02/01/2024"], "date", seconds(DAY, (2024, 2, 1))),
    "two-digit years": Meant(["31/12/24", "01/02/71"], "date", seconds(DAY, (1971, 2, 1))),
    "iso days": Meant(["2024-12-31", "NA", "2024-02-01"], "date", None),
    "iso times": Meant(["2024-12-31T12:00:00", "2024-12-31 00:00"], "date", seconds(NOON, DAY)),
    "iso with Z": Meant(
        ["2024-12-31T12:00:00Z", "2024-12-31T00:00:00.000Z"], "date", seconds(NOON, DAY)
    ),
    "iso with offsets": Meant(
        ["2024-12-31T14:00:00+02", "2024-12-30T22:30:00-0130"], "date", seconds(NOON, DAY)
    ),
    "am and pm": Meant(["12/31/2024 12:00 PM", "12/31/2024 12:00 AM"], "date", seconds(NOON, DAY)),
    "month names": Meant(["31 December 2024", "1 May 2024"], "date", seconds(DAY, (2024, 5, 1))),
    "rfc 2822": Meant(
        ["Tue, 31 Dec 2024 12:00:00 +0000", "Tue, 31 Dec 2024 02:00:00 +0200"],
        "date",
        seconds(NOON, DAY),
    ),
    "percent": Meant(["12%", "7.5 %"], "number", [12.0, 7.5]),
    "euros": Meant(["€3.50", "€ 12"], "number", [3.5, 12.0]),
    "dollars": Meant(["$1,200", "$1,234.50", "950"], "number", [1200.0, 1234.5, 950.0]),
    "thousands": Meant(["1,234", "1,234,567", "12"], "number", [1234.0, 1234567.0, 12.0]),
    "decimal commas": Meant(["0,5", "12,25", "1.234,5"], "number", [0.5, 12.25, 1234.5]),
    "apostrophes": Meant(["1'234", "12"], "number", [1234.0, 12.0]),
    "in brackets": Meant(["(1,234.5)", "12"], "number", [-1234.5, 12.0]),
    "two currencies": Meant(["$5", "€5"], "words", ["$5", "€5"]),
    "percent at times": Meant(["5%", "5"], "words", ["5%", "5"]),
    "versions": Meant(["1.2.3", "1.2.4"], "words", ["1.2.3", "1.2.4"]),
    "words and numbers": Meant(["3.0", "two", "3.00", "3"], "words", ["3", "two", "3", "3"]),
    "truth values": Meant(["true", "False", ""], "truth", [1.0, 0.0, None]),
    "truth values and numbers": Meant(["true", "0", "1"], "number", [1.0, 0.0, 1.0]),
    "zip codes": Meant(["007", "7", "01067"], "words", ["007", "7", "01067"]),
    "numbers, one with a zero before it": Meant(["007", "7.5"], "number", [7.0, 7.5]),
    "diagnoses": Meant(ICD, "words", ICD),
    "a word that recurs": Meant(MANY, "words", MANY),
    "yes and no": Meant(["yes", "no"], "words", ["yes", "no"]),
    "too long for a number": Meant(LONG, "words", LONG),
    "all empty": Meant(["", "NA"], "dropped", None),
    "constant": Meant(["same"], "dropped", None),
    "ids": Meant(IDS, "dropped", None),
}
UTC_TIMES = [dt.datetime(*NOON, tzinfo=UTC), dt.datetime(*DAY, tzinfo=UTC)]
TYPED = {
    "nullable whole numbers": (pa.int64(), Meant([1, None, 3], "number", [1.0, None, 3.0])),
    "decimals": (
        pa.decimal128(10, 2),
        Meant([Decimal("1.50"), Decimal("3.00")], "number", [1.5, 3.0]),
    ),
    "wide decimals": (
        pa.decimal256(50, 2),
        Meant([Decimal("1.50"), None, Decimal("3.00")], "number", [1.5, None, 3.0]),
    ),
    "durations": (
        pa.duration("ms"),
        Meant([dt.timedelta(seconds=1.5), dt.timedelta(seconds=3)], "number", [1.5, 3.0]),
    ),
    "truth values": (pa.bool_(), Meant([True, False, None], "truth", [1.0, 0.0, None])),
    "days": (pa.date32(), Meant([dt.date(*DAY), None], "date", [*seconds(DAY), None])),
    "times": (pa.timestamp("us"), Meant([dt.datetime(*NOON)], "date", None)),
    "times in UTC": (pa.timestamp("us", "UTC"), Meant(UTC_TIMES, "date", seconds(NOON, DAY))),
    "times in Tokyo": (
        pa.timestamp("us", "Asia/Tokyo"),
        Meant(UTC_TIMES, "date", seconds((2024, 12, 31, 21), (2024, 12, 31, 9))),
    ),
    "times of day": (pa.time64("us"), Meant([dt.time(1), dt.time(2)], "number", [3600.0, 7200.0])),
    "branch numbers": (pa.int64(), Meant(list(map(int, LONG)), "words", LONG)),
    "NA beside nulls": (pa.string(), Meant(["DE", "NA", None], "words", ["DE", "NA", None])),
}


def trained(path):
    return read_training_table(plan_reading(open_table(path), "y"))


def by_fit(table):
    column = table.columns[0]
    if not column.is_used:
        return Read("dropped", None)
    cells = table.frame["x"]
    if column.reads_as == "string":
        return Read("words", cells.to_list())
    if column.reads_as == "date":
        return Read("date", (cells.dt.timestamp("us") / 1e6).to_list())
    return Read("number", cells.to_list())


def by_stream(path):
    batch = head_of(path, n=10_000)
    assert batch is not None
    schema = find_schema(batch, "y")
    good, rejected = schema.check(batch)
    assert not rejected
    kind = {"category": "words", "time": "date"}.get(schema.kinds["x"], "number")
    cells = good.frame["x"]
    return Read(kind, None if kind == "date" else cells.to_list())


def by_classifier(cells):
    frame = pd.DataFrame({"noise": NOISE})
    if isinstance(cells, pd.Series):
        X = frame.assign(x=cells)
    elif isinstance(cells, pl.Series):
        X = pl.DataFrame({"x": cells, "noise": NOISE})
    else:
        X = pa.table({"x": cells, "noise": NOISE})
    table = read_table(X)
    if "x" not in table.names:
        return Read("dropped", None)
    column = table.column("x")
    like = read_table(X, like=table.remembered).column("x")
    if column.levels is not None:
        assert like.words().tolist() == column.words().tolist()
        return Read("words", column.words().tolist())
    np.testing.assert_array_equal(like.values, column.values)
    values = [None if cell != cell else cell for cell in column.values.tolist()]
    return Read(column.kind, values)


def written_csv(cells, folder):
    path = folder / "t.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "noise", "y"])
        writer.writerows(zip(cells, NOISE, [k % 10 == 0 for k in range(N)], strict=True))
    return path


def checked(read, meant, who):
    kind = "truth" if (read.kind, meant.kind) == ("number", "truth") else read.kind
    assert kind == meant.kind, who
    if meant.values is not None and read.values is not None:
        assert read.values == repeated(meant.values), who


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:column")
@pytest.mark.parametrize("name", TEXT)
def test_text_means_the_same_to_all(tmp_path, name):
    meant = TEXT[name]
    cells = repeated(meant.cells)
    path = written_csv(cells, tmp_path)
    checked(by_fit(trained(path)), meant, "fit")
    if meant.kind != "dropped":  # a stream does not know yet what its column will be
        checked(by_stream(path), meant, "stream")
    columns = {
        "pandas objects": pd.Series(cells, dtype=object),
        "pandas strings": pd.Series(cells, dtype="string"),
        "polars": pl.Series(cells),
        "arrow": pa.array(cells),
    }
    for who, column in columns.items():
        checked(by_classifier(column), meant, who)


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:column")
@pytest.mark.parametrize("name", TYPED)
def test_typed_cells_mean_the_same_to_all(tmp_path, name):
    dtype, meant = TYPED[name]
    cells = repeated(meant.cells)
    if name == "times":
        cells = [cells[0] + dt.timedelta(hours=k % 7) for k in range(N)]
    array = pa.array(cells, dtype)
    path = tmp_path / "t.parquet"
    y = [k % 10 == 0 for k in range(N)]
    pa.parquet.write_table(pa.table({"x": array, "noise": NOISE, "y": y}), path)
    checked(by_fit(trained(path)), meant, "fit")
    if meant.kind != "words":  # streams read marks in any text, and long numbers as they are
        checked(by_stream(path), meant, "stream")
    checked(by_classifier(array), meant, "arrow")
    if not pa.types.is_decimal256(dtype):
        checked(by_classifier(pl.Series(pl.from_arrow(array))), meant, "polars")
    arrow_type = pd.ArrowDtype(dtype)
    checked(by_classifier(pd.Series(cells, dtype=arrow_type)), meant, "pandas on Arrow")
    if name != "times in Tokyo":  # the objects are times in UTC
        checked(by_classifier(pd.Series(cells, dtype=object)), meant, "pandas objects")


def test_whole_numbers_that_a_float_cannot_hold_are_words(tmp_path):
    path, most = tmp_path / "t.parquet", 2**53
    cells = {
        "long": [most + 1 + k % 3 for k in range(N)],
        "x": [-most, *[most - k % 3 for k in range(N - 1)]],
        "y": [k % 10 == 0 for k in range(N)],
    }
    pl.DataFrame(cells).write_parquet(path)
    with pytest.warns(TableWarning, match="'long' holds whole numbers that are too long") as told:
        table = trained(path)
    assert len(told) == 1
    assert {each.name: each.reads_as for each in table.columns} == {"long": "string", "x": "number"}
    assert table.frame["long"].to_list() == [str(each) for each in cells["long"]]


@pytest.mark.filterwarnings("ignore:column")
def test_cells_that_may_mean_two_things_are_refused_with_their_row(tmp_path):
    """Rows of a file are counted from 1, those of a frame from 0; a stream takes numbers."""
    stray = [*map(str, range(N))]
    stray[7] = "12o"
    unknown = [*stray[:7], "unknown", *stray[8:-1], "unknown"]
    for cells, row in ((repeated(["1,234", "5,678"]), 0), (stray, 7), (unknown, 7)):
        with refused(ErrorKind.CELL, column="x", row=row + 1, value=cells[row]):
            trained(written_csv(cells, tmp_path))
        with refused(ErrorKind.CELL, column="x", row=row, value=cells[row]):
            by_classifier(pl.Series(cells))
    assert by_classifier(pl.Series(stray, dtype=pl.Categorical)).kind == "words"


WRITTEN = st.one_of(
    st.integers(-99, 999).map(str),
    st.floats(-9, 9).map(lambda x: f"{x:.2f}"),
    st.sampled_from(["V53", "E87", "n/a", "12o", "007", "unknown", "Unknown", "true", "1,5", "%"]),
    st.sampled_from([True, False, np.True_, 7, 2.5, 2**60, DAY_OF, dt.time(9, 30)]),
    st.text("aZ0.9 ,-", max_size=4),
)


@given(
    odd=st.lists(WRITTEN, min_size=1, max_size=12),
    n_numbers=st.integers(0, 60),
    is_first=st.booleans(),
)
@example(odd=["12o"], n_numbers=40, is_first=False)
@example(odd=["V53", "E87"], n_numbers=60, is_first=False)
@example(odd=["true", "False"], n_numbers=0, is_first=True)
@example(odd=[1.5, True], n_numbers=0, is_first=True)
@example(odd=[DAY_OF, 7], n_numbers=0, is_first=True)
@pytest.mark.filterwarnings("ignore:column")
def test_a_file_and_a_frame_are_read_alike(tmp_path_factory, odd, n_numbers, is_first):
    numbers = [str(k) for k in range(n_numbers)]
    cells = (odd + numbers if is_first else numbers + odd) * 2
    cells = (cells * (N // len(cells) + 1))[:N]
    text = text_of_values(cells)
    path = tmp_path_factory.mktemp("one")
    found = []
    for first_row, read in (
        (1, lambda: by_fit(trained(written_csv(text, path)))),
        (0, lambda: by_classifier(text)),
        (0, lambda: by_classifier(pd.Series(cells, dtype=object))),
    ):
        try:
            found.append(read())
        except InputError as error:
            row = None if error.row is None else error.row - first_row
            found.append((error.kind.value, error.value, row))
    assert found[0] == found[1] == found[2]


MOMENT = dt.datetime(2024, 3, 5, 10, 20, 30)
VALUES = [
    None, "", "NA", " 7 ", "3.00", "-2", "10:20", "05/03/2024", "1,234", "word", "yes", " TRUE ",
    "true", "none", 3.0, 20240305.0, "20240305.0",
    True, False, 7, 2.5, 20240305, 2**53 + 1, 2**70, -(10**400), Decimal("1.50"), np.float64(0.1),
    np.float32(0.5), np.int64(3), np.True_, DAY_OF, MOMENT, MOMENT.replace(tzinfo=UTC),
    MOMENT.replace(microsecond=5 * 10**5), MOMENT.time(), dt.time(1, 2, 3, 4), pd.Timestamp(MOMENT),
    np.datetime64("2024-03-05"), pd.NaT,
]  # fmt: skip
READINGS = [
    *(CellReading("number", number_format=style) for style in (None, "1,234.5", "12:34:56")),
    CellReading("number", truth="true/false"),
    *(CellReading("date", way, zone=z) for way in ("%Y-%m-%d", "%d/%m/%Y") for z in ("", "UTC")),
    CellReading("string"),
    CellReading("string", marks=False),
    CellReading("string", truth="yes/no"),
]
REFUSED = ["refused"]


def read_as(reading, cells):
    try:
        return read_cells(cells, reading, 1).to_list()
    except InputError:
        return REFUSED


def of_request(cells, column):
    body = json.dumps([{"x": cell} for cell in cells]).encode()
    try:
        return rows_of_json(body, [column], 9).typed([column])["x"].to_list()
    except RefusedError:
        return REFUSED


def of_frame(frame, column):
    try:
        found = read_table(frame, like=[column]).columns[0]
    except InputError:
        return REFUSED
    if found.levels is not None:
        return found.words().tolist()
    cells = pl.Series(found.values, nan_to_null=True)
    return (pl.from_epoch(cells * 1e6, "us") if found.kind == "date" else cells).to_list()


def of_stream(path, reading):
    schema = Schema("y", {"x": KINDS_OF_STREAM[reading.reads_as]}, readings={"x": reading})
    good, rejected = schema.check(open_source(path).read(9))
    found = dict(zip(good.lines.tolist(), good.frame["x"], strict=True))
    found |= {row.line: REFUSED[0] for row in rejected}
    return [found[line] for line in sorted(found)]


KINDS_OF_STREAM = {"number": "number", "string": "category"}


@draws(120)
@given(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3), st.sampled_from(READINGS))
@example([1.5, True], CellReading("number"))
@example([3, np.True_], CellReading("number"))
@example([dt.time(10, 20)], CellReading("number"))
@example([DAY_OF, 5], CellReading("date", "%Y-%m-%d"))
@example([DAY_OF, MOMENT], CellReading("date", "%Y-%m-%d"))
@example([MOMENT, MOMENT.replace(tzinfo=UTC)], CellReading("date", "%Y-%m-%d"))
@example(["NA", 2.5], CellReading("string", marks=False))
@example([2**53 + 1, 2.5], CellReading("string"))
@example([MOMENT], CellReading("string"))
@example([None, DAY_OF], CellReading("number"))
@pytest.mark.filterwarnings("ignore:column")
def test_a_cell_means_the_same_wherever_it_comes_from(tmp_path_factory, cells, reading):
    """The text of a cell in a CSV file decides, alone or among cells of other types."""
    folder = tmp_path_factory.mktemp("cells")
    known = [None if is_missing(cell) else cell for cell in cells]
    truth = {True: "true", False: "false", None: ""}
    text = [truth[c] if isinstance(c, bool | np.bool_ | None) else str(c) for c in known]
    alone = [read_as(reading, pl.Series("x", [each]))[0] for each in text]
    whole = REFUSED if REFUSED[0] in alone else alone
    y = [1] * len(cells)
    objects = np.array([*cells, None], dtype=object)[:-1]
    typed = pl.DataFrame({"x": series_of_objects("x", objects), "y": y})
    typed.write_parquet(folder / "t.parquet")
    pl.DataFrame({"x": text, "y": y}).write_csv(folder / "t.csv")
    both = zip(known, text, strict=True)
    as_json = [c if type(c) in (str, bool, int, float) else each for c, each in both]
    lines = (json.dumps({"x": cell, "y": 1}) for cell in as_json)
    (folder / "t.jsonl").write_text("\n".join(lines))
    column = Column("x", "number", "", **vars(reading))
    assert of_request(as_json, column) == whole
    objects = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    for frame in (objects, typed, typed.to_arrow()):
        assert of_frame(frame, column) == whole, type(frame)
    for path in folder.iterdir():
        assert read_as(reading, pl.concat(open_table(path).batches())["x"]) == whole, path
        if reading.reads_as != "date":
            assert of_stream(path, reading) == alone, path


CELLS = st.one_of(
    st.text(max_size=5),
    st.sampled_from(
        ["NA", " n/a ", "True", "1.50", "3.00", "+.5e3", "inf", "-nan", "1_0", "\u0661"]
    ),
    st.floats().map(repr),
    st.integers().map(str),
)


@given(st.lists(CELLS, max_size=12))
@example(["\x1f1", "1\x1f", "\u2028NA", "K", "\u017f", "0.0", "-0.00", ".0", "1e400", "1.", "NAN"])
def test_a_column_and_a_cell_are_read_by_the_same_rules(cells):
    text = pl.Series(cells, dtype=pl.String)
    plain = without_empty_marks(text)
    assert plain.is_null().to_list() == [is_empty(cell) for cell in cells]
    many = pl.Series([*cells, *["x"] * 100], dtype=pl.String)  # few are written one by one
    assert canonical_words(many).to_list()[: len(cells)] == [word_of(cell) for cell in cells]


EMPTY_CELLS = [
    pl.Series("a", [None] * 3),
    pl.Series("a", ["", "NA", None]),
    pl.Series("a", [np.nan, None, np.nan]),
    *(
        pl.Series("a", [None] * 3, dtype)
        for dtype in (
            pl.Int64, pl.Float32, pl.Boolean, pl.Date, pl.Datetime("us", "Asia/Tokyo"), pl.Time,
            pl.Duration, pl.Binary, pl.List(pl.Int8), pl.Struct({"b": pl.Int8}), pl.Decimal(9, 2),
        )
    ),
    pl.Series("a", [], pl.String),
    pl.Series("a", [], pl.Float64),
]  # fmt: skip


WITH_MARKS = [each for each in READINGS if each.marks] + [CellReading("date", zone="Europe/Berlin")]


@pytest.mark.parametrize("reading", [*WITH_MARKS, CellReading("date")], ids=str)
def test_a_column_without_a_value_is_empty_whatever_its_type(reading):
    """A file, a request or a data frame of a few rows need not know the type of such a column."""
    types = set()
    for cells in EMPTY_CELLS:
        read = read_cells(cells, reading, 1)
        assert read.to_list() == [None] * len(cells), cells.dtype
        types.add(read.dtype)
    assert len(types) == 1


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_empty_cells_are_counted_in_rows_with_a_label(tmp_path, share):
    random = np.random.default_rng(int(10 * share))
    y = pl.Series("y", [k % 10 == 0 for k in range(N)]).cast(pl.String)
    y = y.set(pl.Series(random.random(N) < share), None)
    cells = pl.DataFrame(
        {
            "number": np.where(random.random(N) < 0.4, np.nan, random.normal(size=N).round(3)),
            "word": np.where(random.random(N) < 0.3, "", random.choice(list("abc"), N)),
            "y": y,
        }
    ).with_columns(pl.col("number").fill_nan(None))
    path = tmp_path / "t.csv"
    cells.write_csv(path)
    labelled = cells.filter(y.is_not_null())
    wanted = {"number": labelled["number"].null_count(), "word": (labelled["word"] == "").sum()}
    plan = plan_reading(open_table(path), "y")
    for read in (read_training_table, stream_training_table):
        columns = read(plan).columns
        assert {each.name: each.n_missing for each in columns} == wanted
