"""Every Arrow type is read, or its column named and left out: nothing ends in another's error."""

import datetime as dt
import json
import uuid
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faults import refused
from rareclass.encoding.schema import find_schema
from rareclass.encoding.training_table import plan_reading, read_training_table
from rareclass.encoding.typed_table import read_table
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind, finding_of
from rareclass.fit.rows_on_disk import plan_memory
from rareclass.folds.dealing import group_numbers
from rareclass.tables.databases import DatabaseAddress, Query
from rareclass.tables.reading import CellReading, read_cells
from rareclass.tables.sources import open_source
from rareclass.tables.table_file import open_rows, open_table
from tables.readings import head_of

N = 60
NOISE = np.random.default_rng(0).normal(size=N)
Y = [k % 10 == 3 for k in range(N)]


class Tagged(pa.ExtensionType):
    def __init__(self, storage):
        super().__init__(storage, "rareclass.tests.tagged")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, _):
        return cls(storage)


def of(kind, *cells):
    return pa.array([cells[k % len(cells)] for k in range(N)], kind)


def extended(kind, *cells):
    return pa.ExtensionArray.from_storage(kind, of(kind.storage_type, *cells))


def thousands():
    whole = of(pa.int64(), 1500, 3000).cast(pa.decimal128(20, 0))
    return whole.cast(pa.decimal128(10, -2))


DAYS = (dt.datetime(2024, 1, 1, 3), dt.datetime(2024, 2, 2, 4))
IN_DELHI = dt.datetime(2024, 1, 1, 8, 30)
WIDE = pa.decimal256(50, 2)
# What a column holds: numbers, dates or words, with the first value; or None for none of them.
READ = {
    "decimal256": (of(WIDE, Decimal("1.5"), None, Decimal(3)), "number", 1.5),
    "short decimal256": (of(pa.decimal256(9, 2), Decimal("1.5"), Decimal(3)), "number", 1.5),
    "decimal32": (of(pa.decimal32(5, 2), Decimal("1.5"), Decimal(3)), "number", 1.5),
    "decimal of thousands": (thousands(), "number", 1500.0),
    "float16": (of(pa.float16(), np.float16(1.5), np.float16(2)), "number", 1.5),
    "duration": (of(pa.duration("ns"), dt.timedelta(1), dt.timedelta(2)), "number", 86400.0),
    "time32": (of(pa.time32("s"), dt.time(1), dt.time(2)), "number", 3600.0),
    "time64": (of(pa.time64("ns"), dt.time(1), dt.time(2)), "number", 3600.0),
    "uint64": (of(pa.uint64(), 2**64 - 1, 2**63), "string", str(2**64 - 1)),
    "long decimal": (of(pa.decimal128(38, 0), Decimal(10**20), Decimal(7)), "string", str(10**20)),
    "string_view": (of(pa.string_view(), "ab", "cd"), "string", "ab"),
    "large_string": (of(pa.large_string(), "ab", "cd"), "string", "ab"),
    "dictionary": (of(pa.string(), "NA", "cd").dictionary_encode(), "string", "NA"),
    "digits to choose": (of(pa.string(), "1", "2").dictionary_encode(), "string", "1"),
    "runs": (pa.RunEndEncodedArray.from_arrays([30, N], pa.array(["a", "b"])), "string", "a"),
    "date64": (of(pa.date64(), DAYS[0].date(), DAYS[1].date()), "date", dt.datetime(2024, 1, 1)),
    "time at an offset": (of(pa.timestamp("us", "+05:30"), *DAYS), "date", IN_DELHI),
    "uuid": (extended(pa.uuid(), b"\0" * 16, b"1" * 16), "string", str(uuid.UUID(int=0))),
    "json": (extended(pa.json_(), '{"a":1}', '{"a":2}'), "string", '{"a":1}'),
    "extension of numbers": (extended(Tagged(pa.float64()), 1.5, 2.5), "number", 1.5),
    "extension of words": (extended(Tagged(pa.string()), "ab", "cd"), "string", "ab"),
    "extension of decimals": (extended(Tagged(WIDE), Decimal("1.5"), Decimal(3)), "number", 1.5),
}  # fmt: skip
UNUSABLE = {
    "binary": (of(pa.binary(), b"ab", b"cd"), "Binary"),
    "fixed-size binary": (of(pa.binary(2), b"ab", b"cd"), "Binary"),
    "binary_view": (of(pa.binary_view(), b"ab", b"cd"), "Binary"),
    "list": (of(pa.list_(pa.int64()), [1], [2, 3]), "List(Int64)"),
    "large_list": (of(pa.large_list(pa.int64()), [1], [2, 3]), "List(Int64)"),
    "list_view": (of(pa.list_view(pa.int64()), [1], [2, 3]), "list_view<"),
    "list of one length": (of(pa.list_(pa.int64(), 2), [1, 2], [2, 3]), "fixed_size_list<"),
    "list of decimal256": (of(pa.list_(WIDE), [Decimal(1)], [Decimal(2)]), "decimal256"),
    "struct": (of(pa.struct([("a", pa.int64())]), {"a": 1}, {"a": 2}), "Struct("),
    "map": (of(pa.map_(pa.string(), pa.int64()), [("a", 1)], [("b", 2)]), "map<"),
    "extension of lists": (extended(Tagged(pa.list_(pa.int64())), [1], [2]), "List(Int64)"),
    "tensor": (extended(pa.fixed_shape_tensor(pa.int32(), [2]), [1, 2]), "fixed_size_list<"),
    "opaque": (extended(pa.opaque(pa.binary(), "geometry", "postgis"), b"x", b"y"), "geometry"),
    "a zone that is not known": (of(pa.timestamp("us", "Mars/Olympus"), *DAYS), "Mars/Olympus"),
    "interval": (of(pa.month_day_nano_interval(), pa.MonthDayNano([1, 2, 3])), "interval"),
    "union": (pa.UnionArray.from_sparse(of(pa.int8(), 0), [pa.array(range(N))]), "union"),
}  # fmt: skip
NO_PARQUET = ("runs", "interval", "union", "decimal of thousands")


def written(cells, folder):
    path = folder / "t.parquet"
    pq.write_table(pa.table({"x": cells, "n": NOISE, "y": Y}), path)
    return path


def trained(file, **columns):
    return read_training_table(plan_reading(file, "y", **columns))


@pytest.mark.sampled(5)
@pytest.mark.filterwarnings("ignore:column 'x' holds whole numbers that are too long")
@pytest.mark.parametrize("name", READ)
def test_a_type_that_can_be_read_is(tmp_path, name):
    cells, kind, first = READ[name]
    column = read_table(pa.table({"x": cells, "n": NOISE})).remembered[0]
    assert column.reads_as == kind
    if name in NO_PARQUET:
        return
    file = open_table(written(cells, tmp_path))
    plan_memory(file, 1 << 40)
    read = trained(file)
    assert (read.columns[0].kind, read.columns[0].reading) == (column.kind, column.reading)
    assert read.frame["x"][0] == first
    held = open_rows(pa.table({"x": cells, "n": NOISE}))  # as a model scores a frame
    assert next(held.batches(["x"])).height == N
    batch = head_of(tmp_path / "t.parquet", n=N)
    find_schema(batch, "y").check(batch)


def left_out(frame):
    with pytest.warns(UserWarning, match="left out") as told:
        table = read_table(frame)
    (finding,) = [finding_of(each.message) for each in told]
    assert (finding.kind, finding.values["column"]) == (FindingKind.UNUSABLE, "x")
    assert table.names == ["n"]
    assert read_table(frame, like=table.remembered).names == ["n"]
    assert table.remembered[0].kind == "unusable"
    return table.remembered[0]


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_type_that_cannot_be_read_is_named_and_left_out(tmp_path, name):
    cells, kind = UNUSABLE[name]
    of_frame = left_out(pa.table({"x": cells, "n": NOISE}))
    assert kind in of_frame.why_dropped
    if name in NO_PARQUET:
        return
    try:
        path = written(cells, tmp_path)
    except pa.ArrowNotImplementedError:  # of an older pyarrow
        return
    file = open_table(path)
    plan_memory(file, 1 << 40)  # which looks at columns that are dropped, too
    column, number = trained(file).columns
    assert (column.kind, number.kind) == (of_frame.kind, "number")
    assert kind in column.why_dropped
    assert [each.name for each in trained(file, drop=["x"]).columns] == ["n"]
    batch = head_of(tmp_path / "t.parquet", n=N)
    assert find_schema(batch, "y").kinds["x"] == "unusable"


@pytest.mark.parametrize("cell", [[1, 2], [], [None, "a"], {"a": 1}, {"a": {"b": [1]}}])
@pytest.mark.parametrize("first", [0, 7])
def test_lists_and_objects_of_json_lines_are_left_out_as_well(tmp_path, cell, first):
    path = tmp_path / "t.jsonl"
    cells = [None if k % 5 == 2 else cell if k >= first else "word" for k in range(N)]
    rows = [{"x": x, "n": n, "y": int(y)} for x, n, y in zip(cells, NOISE, Y, strict=True)]
    path.write_text("\n".join(map(json.dumps, rows)))
    column, number = trained(open_table(path)).columns
    assert (column.kind, number.kind, column.n_missing) == ("unusable", "number", N // 5)
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object), "n": NOISE})
    assert left_out(frame).n_missing == column.n_missing
    with refused(ErrorKind.LABELS, column="x"):
        read_training_table(plan_reading(open_table(path), "x"))
    source = open_source(path)
    assert find_schema(source.read(N), "y").kinds["x"] == "unusable"
    source.close()
    with refused(ErrorKind.CELL, row=0):
        group_numbers(pl.Series([[1], [1, 2]]), 2)


@pytest.mark.parametrize("cell", [[1], {"a": 1}])
def test_the_first_rows_of_json_lines_say_for_all_which_columns_have_lists(
    tmp_path, cell, monkeypatch
):
    """Whatever file of a folder a row is in, and wherever reading goes on."""
    monkeypatch.setattr("rareclass.tables.jsonl.NAMING_ROWS", 10)
    words = [{"x": "ab"[k % 2], "n": k * 7 % 11, "y": int(k % 5 == 0)} for k in range(20)]
    rows = [*words, {"x": cell, "n": 1, "y": 1}, *words]
    for first, rejects in ((rows, [21]), ([words[0], {"x": [], "n": 2, "y": 0}, *rows], [])):
        (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, first)))
        (tmp_path / "parts").mkdir(exist_ok=True)
        for name, part in (("1.jsonl", first[:20]), ("2.jsonl", first[20:])):
            (tmp_path / "parts" / name).write_text("\n".join(map(json.dumps, part)))
        for path in (tmp_path / "t.jsonl", tmp_path / "parts"):
            position, rejected, schema = None, [], None
            for _ in range(6):
                batch = head_of(path, position, n=8)
                position = json.loads(json.dumps(batch.position))
                schema = schema or find_schema(batch, "y")
                rejected += [*batch.rejected, *schema.check(batch)[1]]
            assert [row.line for row in rejected] == ([1] if rejects and path.is_dir() else rejects)
            if rejects:
                with refused(ErrorKind.DAMAGED_FILE, says="column 'x' holds a list or object"):
                    trained(open_table(path))
            else:
                assert trained(open_table(path)).columns[0].kind == "unusable"
                cells = pl.concat(open_table(path).batches())["x"]
                with refused(ErrorKind.CELL, column="x", row=2, says="list or object"):
                    read_cells(cells, CellReading("string"), 1)


@pytest.mark.parametrize("name", ["interval", "union", "runs", "list"])
def test_frames_of_every_make_name_the_type(name):
    cells = (UNUSABLE | {k: v[:2] for k, v in READ.items()})[name][0]
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=pd.ArrowDtype(cells.type)), "n": NOISE})
    if name in READ:
        assert read_table(frame).column("x").kind == "category"
        return
    left_out(frame)


def test_a_query_whose_columns_cannot_be_used_is_read(tmp_path):
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute(
            "CREATE TABLE t AS SELECT range AS n, INTERVAL 1 DAY AS wait, [1, 2] AS list, "
            "range::HUGEINT AS huge, 'a'::BLOB AS bytes, range % 5 = 0 AS y FROM range(60)"
        )
    query = Query(DatabaseAddress(f"duckdb:///{path}"), "SELECT *, random() AS r FROM t")
    file = open_table(query)
    plan_memory(file, 1 << 40)
    kinds = {column.name: column.kind for column in trained(file).columns}
    assert {name for name, kind in kinds.items() if kind == "unusable"} == {"wait", "list", "bytes"}
    assert kinds["r"] == "number"


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_a_date_beyond_all_years_is_refused_with_its_row(tmp_path, unit):
    cells = pa.array([0] * (N - 1) + [2**60 if unit == "us" else 2**55]).cast(pa.timestamp(unit))
    with refused(ErrorKind.CELL, column="x", row=N - 1):
        read_table(pa.table({"x": cells, "n": NOISE}))
    file = open_table(written(cells, tmp_path))
    with refused(ErrorKind.CELL, column="x", row=N):
        trained(file)


def test_a_model_scores_frames_with_columns_that_it_does_not_know(tmp_path):
    frame = pa.table({"n": NOISE, "other": UNUSABLE["list of decimal256"][0]})
    held = open_rows(frame)
    assert next(held.batches(["n"]))["n"].to_list() == NOISE.tolist()
    assert isinstance(next(held.batches(["n"])), pl.DataFrame)
