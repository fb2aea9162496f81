"""Every record of a source is handed over once, however it is read and wherever reading stops."""

import bz2
import csv
import datetime
import gzip
import io
import json
import os
import re
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from rareclass.errors import InputError
from rareclass.rows import from_table
from rareclass.tables import TextSettings, text_reader
from rareclass.tables.byte_streams import PipeBytes
from rareclass.tables.csv_file import CsvReader
from rareclass.tables.reading import text_of_values
from rareclass.tables.sources import FolderSource, Reading, open_file, open_source
from rareclass.tables.table_file import open_table
from tables.readings import now, read_all, records_of


def read_interrupted(reopen, sizes, stops):
    source, batches, k = reopen(None), [], 0
    while True:
        batch = source.read(sizes[k % len(sizes)])
        if batch is None:
            source.close()
            return batches
        batches.append(batch)
        if stops[k % len(stops)]:
            source.close()
            source = reopen(json.loads(json.dumps(batch.position)))
        k += 1


@pytest.fixture(autouse=True)
def blocks_of_any_size(monkeypatch):
    """Tests may set how many bytes are read at a time."""
    monkeypatch.setattr(text_reader, "BLOCK_BYTES", text_reader.BLOCK_BYTES)


ways = st.tuples(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.lists(st.booleans(), min_size=1, max_size=4),
    st.sampled_from([1, 2, 3, 7, 64, 1 << 20]),
)
# Quotes and line ends within cells, characters of several bytes, marks that only some take for
# line ends.
# Without the marks that have to be quoted, quickly and slowly read rows follow each other.
plain_records = st.tuples(
    st.just("row"), st.lists(st.text("ab1 ü€\u2028\x85\x0c"), min_size=3, max_size=3)
)
cell_texts = st.text(st.sampled_from('ab1,"\n\r ü€\u2028\x85\x0c'), max_size=6)
csv_records = st.one_of(
    plain_records,
    st.tuples(st.just("row"), st.lists(cell_texts, min_size=3, max_size=3)),
    st.tuples(st.just("count"), st.lists(cell_texts, min_size=4, max_size=5)),
    st.tuples(st.just("nul"), st.just(["a", "\0", "b"])),
    st.tuples(st.just("latin"), st.just(["a", "\udce9", "b"])),
    st.tuples(st.just("blank"), st.just([])),
)


def csv_text(records, end, mark, ends):
    # Letters that only UTF-8 has: bytes that are not are faults, and no other encoding.
    text, line = f"a,b,c€€€€€€€€€€€€{end}", 2
    good, bad = [], []
    for kind, cells in records:
        # The csv module quotes only the line end it was told of.
        has_end = not {"\r", "\n"}.isdisjoint("".join(cells))
        style = csv.QUOTE_ALL if has_end else csv.QUOTE_MINIMAL
        raw = io.StringIO()
        csv.writer(raw, lineterminator="", quoting=style).writerow(cells)
        row = raw.getvalue() if cells else ""
        if kind == "row":
            good.append(("t.csv", line, tuple(cells)))
        elif kind != "blank":
            bad.append((line, kind))
        text += row + end
        line += 1 + len(re.findall("\r\n|\r|\n", row))
    content = text.encode("utf-8", "surrogateescape")
    if not ends:
        content = content[: -len(end)]
    return mark + content, (good, bad)


@given(
    records=st.lists(csv_records, max_size=12),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    ends=st.booleans(),
    how=ways,
)
def test_csv_is_the_same_in_any_way_of_reading(tmp_path_factory, records, end, mark, ends, how):
    content, (good, bad) = csv_text(records, end, mark, ends)
    path = tmp_path_factory.mktemp("s") / "t.csv"
    path.write_bytes(content)
    sizes, stops, text_reader.BLOCK_BYTES = how
    reading = Reading(text=TextSettings(","))
    batches = read_interrupted(lambda at: open_file(path, "t.csv", at, reading), sizes, stops)
    found, rejected = records_of(batches)
    assert found == good
    words = {"count": "cells where", "nul": "NUL", "latin": "UTF-8"}
    assert [row[1] for row in rejected] == [line for line, _ in bad]
    for row, (_, kind) in zip(rejected, bad, strict=True):
        assert words[kind] in row[2]
    table = open_table(path, TextSettings(",")).batches(["b", "a"], sizes[0])
    if bad:
        with pytest.raises(InputError, match=rf"line {bad[0][0]} \(row \d+\): "):
            list(table)
    else:
        cells = [(row[1], row[0]) for *_, row in good]
        assert [row for batch in table for row in batch.rows()] == cells
    whole = [batch.n_read for batch in read_all(open_file(path, "t.csv", None, reading), 3)]
    assert all(n == 3 for n in whole[:-1])


BROKEN = [
    "1,2,3", "4,5,6", "7,,€", '"x', 'y"z",1', 'a,"b', "", '"', ',,"', '"a\nb",c,d', "\0", "1,2",
    "a\rb,1,2",
]  # fmt: skip


@given(lines=st.lists(st.sampled_from(BROKEN), max_size=15), ends=st.booleans(), how=ways)
def test_broken_csv_is_the_same_in_any_way_of_reading(tmp_path_factory, lines, ends, how):
    path = tmp_path_factory.mktemp("s") / "t.csv"
    path.write_text("a,b,c\n" + "\n".join(lines) + "\n" * ends, newline="")
    sizes, stops, block = how

    def reopen(at):
        return open_file(path, "t.csv", at, Reading(text=TextSettings(",")))

    text_reader.BLOCK_BYTES = 1 << 20
    at_once = records_of(read_all(reopen(None)))
    text_reader.BLOCK_BYTES = block
    assert records_of(read_interrupted(reopen, sizes, stops)) == at_once
    # Nothing but blank lines is passed over in silence.
    starts = {row[1] for row in (*at_once[0], *at_once[1])}
    assert len(starts) == len(at_once[0]) + len(at_once[1])


json_records = st.one_of(
    st.fixed_dictionaries({"a": st.integers(0, 9), "b": st.text(max_size=3)}),
    st.fixed_dictionaries({"b": st.none() | st.booleans() | st.floats(0, 1)}),
    st.sampled_from(
        ["{", "[1]", "3", "null", '"x"', "", '{"a": 1, "z": 2}', "\0", '{"b": "\\ud800"}']
    ),
)


@given(records=st.lists(json_records, max_size=12), ends=st.booleans(), how=ways)
def test_json_lines_are_the_same_in_any_way_of_reading(tmp_path_factory, records, ends, how):
    lines = [row if isinstance(row, str) else json.dumps(row) for row in records]
    path = tmp_path_factory.mktemp("s") / "t.jsonl"
    path.write_text("\n".join(lines) + "\n" * ends)
    sizes, stops, text_reader.BLOCK_BYTES = how
    reading = Reading(columns=["a", "b"])
    batches = read_interrupted(lambda at: open_file(path, "t.jsonl", at, reading), sizes, stops)
    found, rejected = records_of(batches)
    objects = [(k, row) for k, row in enumerate(records, start=1) if isinstance(row, dict)]
    assert found == [
        ("t.jsonl", k, tuple(text_of_values([row.get(name)])[0] for name in "ab"))
        for k, row in objects
    ]
    faults = [k for k, row in enumerate(records, start=1) if row and isinstance(row, str)]
    assert [row[1] for row in rejected] == faults


@given(n_rows=st.integers(0, 40), group=st.integers(1, 15), how=ways)
def test_parquet_is_the_same_in_any_way_of_reading(tmp_path_factory, n_rows, group, how):
    path = tmp_path_factory.mktemp("s") / "t.parquet"
    words = [f"w{k}" for k in range(n_rows)]
    pq.write_table(pa.table({"k": range(n_rows), "w": words}), path, row_group_size=group)
    sizes, stops, _ = how
    batches = read_interrupted(lambda at: open_file(path, "t", at, Reading()), sizes, stops)
    good, bad = records_of(batches)
    assert good == [("t", k + 1, (float(k), f"w{k}")) for k in range(n_rows)]
    assert not bad
    batches = list(open_table(path).batches(["w"], sizes[0]))
    assert [word for batch in batches for word in batch["w"]] == words
    assert all(batch.height <= sizes[0] for batch in batches)
    full = [batch.n_read for batch in read_all(open_file(path, "t", None, Reading()), 7)]
    assert all(n == 7 for n in full[:-1])


FILE = st.tuples(st.booleans(), st.lists(st.sampled_from(["7", "8", None]), max_size=4))
WRITE = {"csv": pl.DataFrame.write_csv, "parquet": pl.DataFrame.write_parquet}


def write_json(frame, path):
    """Write JSON lines; an empty cell has a key in the first row only."""
    rows = [{k: v for k, v in row.items() if v is not None} for row in frame.to_dicts()]
    rows[:1] = frame.head(1).to_dicts()
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@given(
    how=ways,
    kind=st.sampled_from(["csv", "jsonl", "parquet"]),
    files=st.lists(FILE, min_size=1, max_size=5),
    columns=st.sampled_from([None, ["a", "d", "z"]]),
)
@example(([1], [True], 7), "jsonl", [(True, ["7", None]), (False, ["7", None])], None)
@example(([1], [True], 7), "jsonl", [(False, ["7"]), (True, ["7", None, "8"])], None)
def test_a_folder_is_the_same_in_any_way_of_reading(tmp_path_factory, how, kind, files, columns):
    """The name of a folder is the cell of each row of a file that lacks the column."""
    folder, expected = tmp_path_factory.mktemp("s"), []
    for k, (has_own, cells) in enumerate(files):
        path = folder / f"d={k % 2}" / "z=1" / f"{k}.{kind}"
        path.parent.mkdir(exist_ok=True, parents=True)
        own = {"d": pl.Series(cells, dtype=pl.String)} if has_own else {}
        frame = pl.DataFrame({"a": [f"x{k}{i}" for i in range(len(cells))], **own})
        (write_json if kind == "jsonl" else WRITE[kind])(frame, path)
        empty, first = ("", 2) if kind == "csv" else (None, 1)
        for i, cell in enumerate(cells):
            of_row = (empty if cell is None else cell) if has_own else str(k % 2)
            name = path.relative_to(folder)
            expected.append((str(name), first + i, (f"x{k}{i}", of_row, "1")))
    if not expected:
        return
    expected.sort(key=lambda row: Path(row[0]))
    sizes, stops, text_reader.BLOCK_BYTES = how
    reading = Reading(columns)
    batches = read_interrupted(lambda at: FolderSource(folder, at, reading), sizes, stops)
    assert records_of(batches) == (expected, [])
    assert pl.concat(open_table(folder).batches()).rows() == [row[2] for row in expected]
    # What comes later leaves a position as it was.
    batches = read_all(FolderSource(folder, None, reading), 2)
    k = len(batches) // 2
    for batch in batches[k : k + 1]:
        rest = read_all(FolderSource(folder, batch.position, reading))
        before = sum(b.n_rows for b in batches[: k + 1])
        assert records_of(rest) == (expected[before:], [])


@given(
    records=st.lists(csv_records, max_size=12),
    how=ways,
    pack=st.sampled_from([bytes, gzip.compress, bz2.compress]),
)
def test_standard_input_is_sent_again_from_its_beginning(records, how, pack):
    content, (good, bad) = csv_text(records, "\n", b"", True)
    sizes, stops, text_reader.BLOCK_BYTES = how

    def reopen(at):
        pipe = PipeBytes(io.BytesIO(pack(content)), growing=False)
        return CsvReader(pipe, "t.csv", at, Reading(text=TextSettings(",")))

    found, rejected = records_of(read_interrupted(reopen, sizes, stops))
    assert found == good
    assert [row[1] for row in rejected] == [line for line, _ in bad]


def test_columns_that_differ_within_a_folder(tmp_path):
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("b;a\n4;3\n")
    (tmp_path / "3.csv").write_text("a,c\n5,6\n")
    (tmp_path / "4.csv").write_text("a\n5\n")
    (tmp_path / "5.csv").touch()
    good, bad = records_of(read_all(open_source(str(tmp_path))))
    for read in (open_table, from_table):
        with pytest.raises(InputError, match=r"3\.csv lacks the column 'b', which .*1\.csv has"):
            read(tmp_path)
    assert good == [("1.csv", 2, ("1", "2")), ("2.csv", 2, ("3", "4"))]
    assert bad == [("3.csv", 2, "unknown column 'c'", "5,6"), ("4.csv", 2, "no column 'b'", "5")]
    (tmp_path / "p").mkdir()
    pq.write_table(pa.table({"a": [7], "b": ["x"]}), tmp_path / "p" / "5.parquet")
    pq.write_table(pa.table({"a": [7], "b": ["x"], "z": [None]}), tmp_path / "p" / "6.parquet")
    good, bad = records_of(read_all(open_source(tmp_path / "p")))
    assert good == [("5.parquet", 1, (7.0, "x"))]
    assert bad == [("6.parquet", 1, "unknown column 'z'", '{"a": 7, "b": "x", "z": null}')]


def test_a_folder_is_of_one_format(tmp_path):
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (batch,) = read_all(open_source(str(tmp_path)))
    (tmp_path / "2.jsonl").write_text('{"a": 1, "b": 2}\n')
    for position in (None, batch.position):
        with pytest.raises(InputError, match=r"2\.jsonl is JSON lines, .*1\.csv is CSV") as told:
            read_all(open_source(str(tmp_path), position))
        assert "Move one of them away" in told.value.remedy


def test_what_cannot_be_opened(tmp_path):
    def fails(name, content, match):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        for read in (open_source, open_table, from_table):
            with pytest.raises(InputError, match=match) as caught:
                read(tmp_path / name)
            assert caught.value.remedy

    fails("missing.csv", None, "There is no file")
    fails("empty.csv", b"\n", "holds no text")
    fails("separators.csv", b";;\n;;\n", "no header line")
    fails("numbers.csv", b"1,2\n3,4\n", "numbers, not column names")
    fails("latin.csv", "näme €,é".encode() + b"\xe4\n1,2\n", "header line .* UTF-8")
    fails("open.csv", b'a,"b\n1,2\n', "quote is opened")
    fails("quote.csv", b'"a;b\n' + b"1;2\n" * 60_000, "header line")
    for content in (b"\0\1\2\3\n", b"\x7fELF\0\0\r\x01,\0\n", b"a,\0b\n1,2\n"):
        fails("binary.csv", content, "binary.csv is not a text file")
    fails("cut.csv.gz", gzip.compress(b"a,b\n" + os.urandom(999).hex().encode())[:-30], "cut short")
    fails("text.csv.gz", b"a,b\n1,2\n", "named like a gzip file but is not one")
    fails("text.parquet", b"a,b\n1,2\n", "not one")
    fails("cut.parquet", b"PAR1 and no more", "cut short")
    fails("title.csv", b"My report 2024\na;y\n1;2\n3;4\n5;6\n", "'My report 2024'. From 'a;y'.* 2")
    fails("notes.csv", b"# by us\n#\n\na,b,y\n" + b"1,2,3\n" * 3, "'a,b,y' on rows have 3 cells")
    fails("long.csv", b"title\na,y\n" + b"1,2\n" * 300_000, "does not name the columns: 'title'")
    fails("xz.csv", b"\xfd7zXZ\0\0", "compressed with xz")
    fails("zst.csv", b"(\xb5/\xfd\x04\0", r"Zstandard \(zst\)")
    fails("zip.csv", b"PK\x03\x04\x14", "ZIP archive, as Excel")
    fails("lz4.csv", b'\x04"M\x18d', "LZ4")
    fails("7z.csv", b"7z\xbc\xaf'", "7-Zip")
    (tmp_path / "t.svm").write_text("1 3:0.5\n")
    for read in (open_source, from_table):
        with pytest.raises(InputError, match="svmlight file, which has no named columns"):
            read(tmp_path / "t.svm")
    (tmp_path / "folder").mkdir()
    fails("folder", None, "no table in the folder")


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("rareclass.tables.text_reader.ROW_LIMIT", 100)
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n" + "x" * 200)
    with pytest.raises(InputError, match=r"Line 3 of .* is longer than"):
        open_source(str(path))


def test_stray_quotes_cost_a_line(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{k},x" for k in range(20_000)]
    rows[5] = '5,"x'
    path.write_text("a,b\n" + "\n".join(rows) + "\n")
    good, bad = records_of(read_all(open_source(str(path))))
    assert len(good) == len(rows) - 1
    assert bad == [(str(path), 7, "a quote is opened and not closed", '5,"x')]


def test_rejected_text_is_cut(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "€" * 600 + "\n" + '"x\ny"\n')
    _, bad = records_of(read_all(open_source(str(path))))
    assert [(row[1], row[3]) for row in bad] == [(2, "€" * 500), (3, '"x\ny"')]
    assert bad[1][2] == "1 cells where the header has 2 (a quoted cell spans 2 lines)"


def test_columns_may_be_fixed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("b,a\n1,2\n")
    (batch,) = read_all(open_source(str(path), columns=["a", "b"]))
    assert batch.frame.columns == ["a", "b"]
    assert batch.frame["a"].to_list() == ["2"]
    (batch,) = read_all(open_source(str(path), columns=["a", "b", "c"]))
    assert [row.reason for row in batch.rejected] == ["no column 'c'"]
    with pytest.raises(ValueError, match="max_records must be at least 1"):
        open_source(path).read(0)


def test_columns_of_json_lines_are_those_of_the_first_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("rareclass.tables.jsonl.NAMING_ROWS", 3)
    path = tmp_path / "t.jsonl"
    lines = ["oops", '{"a": {"y": 1, "x": [2]}}', '{"b": 2}', '{"a": 1, "b": 2, "c": 3}']
    path.write_text("\n".join(lines))
    source = open_source(str(path))
    assert source.columns is None
    first = now(source, 2)
    assert source.columns == ["a", "b"]
    assert first.rejected[0].reason == "not JSON: Expecting value at character 1"
    assert first.frame["a"].dtype.is_nested()  # as a Parquet file would have it
    assert first.frame["b"].to_list() == [None]
    source.close()
    (rest,) = read_all(open_source(str(path), first.position))
    assert rest.frame["a"].to_list() == [None]
    assert rest.frame["b"].to_list() == ["2"]
    assert rest.rejected == [(str(path), 4, "unknown column 'c'", lines[3])]
    path.write_text("\n".join([*lines[1:3], lines[2], lines[3]]))
    assert open_table(path).columns == ["a", "b"]
    with pytest.raises(InputError, match=r"line 4 .*'c'"):
        list(open_table(path).batches())
    path.write_text('{"only": 3}\n{"only": 2}\n' + "[" * 200_000 + '\n{"only": [1]}\n')
    (batch,) = read_all(open_source(str(path)))
    assert batch.frame["only"].to_list() == ["3", "2"]
    assert [row.line for row in batch.rejected] == [3, 4]


def test_cells_of_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5)
    cells = {
        "integer": pa.array([2**53 + 1, None]),
        "decimal": pa.array([None, 1], pa.decimal128(5, 2)),
        "flag": pa.array([True, None]),
        "all_flags": pa.array([True, False]),
        "word": pa.array(["x", None]),
        "coded": pa.array(["x", None]).dictionary_encode(),
        "day": pa.array([moment.date(), None]),
        "moment": pa.array([moment, None], pa.timestamp("s")),
        "list": pa.array([[1, 2], None]),
        "bytes": pa.array([b"x", None]),
        "nothing": pa.nulls(2),
    }
    pq.write_table(pa.table(cells), path)
    (batch,) = read_all(open_source(str(path)))
    of_table = pl.concat(open_table(path).batches())
    assert_frame_equal(batch.frame, of_table)
    assert batch.frame["integer"].to_list() == [2**53 + 1, None]


def test_position_of_another_source(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n')
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")
    position = read_all(open_source(str(tmp_path / "t.csv")))[-1].position
    for other in (tmp_path / "t.jsonl", tmp_path / "t.parquet", tmp_path):
        with pytest.raises(InputError, match=r"had? ?been read|was read before"):
            open_source(str(other), position)
    with pytest.raises(InputError, match="There is no file"):
        open_source(str(tmp_path / "gone.csv"), position)
