"""The same messy file is the same rows, whoever reads it."""

import bz2
import gzip
import json
import re
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from faults import refused
from rareclass.encoding.typed_table import read_table
from rareclass.errors import ErrorKind, InputError
from rareclass.findings import TableWarning
from rareclass.model.threshold import costs_of
from rareclass.rows import from_table
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.dialect import (
    SEPARATORS,
    dialect_of,
    encoding_of,
    row_ends,
    row_ends_by_cells,
)
from rareclass.tables.reading import read_cells, read_strings
from rareclass.tables.sources import open_source
from rareclass.tables.table_file import open_rows, open_table
from tables.readings import head_of, read_all, records_of

ROWS = [
    (1.5, "plain", "ok"),
    (-2.25, "Köln, Süd", "ok"),
    (3.0, "two\nlines", "fraud"),
    (4e3, 'she said ""no""', "ok"),
    (0.125, "", "fraud"),
]
NAMES = ("amount", "näme", "label")


WORDS = st.text("ab :", min_size=1, max_size=9).filter(lambda name: name.strip(" :") == name)


@given(st.lists(WORDS, min_size=2, max_size=5, unique=True), st.sampled_from(SEPARATORS[:5]))
@example(["review row", "review verdict"], ",")
def test_blanks_and_colons_within_names_do_not_separate(names, separator):
    sample = f"{separator.join(names)}\n{separator.join(['6 5:0'] * len(names))}\n".encode()
    found = dialect_of("a table", sample, False, DETECTED)
    assert (found.separator, found.names) == (separator, names)
    assert dialect_of("a table", b"a b c\n1,5 2,5 3\n", True, DETECTED).separator == " "


def text(separator=",", decimal=".", end="\n"):
    lines = [separator.join(NAMES)]
    for amount, word, label in ROWS:
        number = repr(amount).replace(".", decimal)
        lines.append(separator.join([number, f'"{word}"', label]))
    return end.join(lines) + end


def json_text():
    lines = [dict(zip(NAMES, row, strict=True)) for row in expected()]
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)


FILES = {
    "utf8.csv": lambda: text().encode(),
    "mark.csv": lambda: text().encode("utf-8-sig"),
    "wide.csv": lambda: text().encode("utf-16"),
    "wide_be.csv": lambda: b"\xfe\xff" + text().encode("utf-16-be"),
    "latin.csv": lambda: text().encode("cp1252"),
    "comma.csv": lambda: text(";", ",").encode(),
    "comma_latin.csv": lambda: text(";", ",").encode("cp1252"),
    "comma_wide.csv": lambda: text(";", ",", "\r\n").encode("utf-16"),
    "tab.tsv": lambda: text("\t").encode(),
    "pipe.txt": lambda: text("|").encode(),
    "packed.csv.gz": lambda: gzip.compress(text().encode()),
    "packed.csv.bz2": lambda: bz2.compress(text().encode("cp1252")),
    "by_content.csv": lambda: gzip.compress(text(";", ",").encode("utf-16")),
    "windows.csv": lambda: text(end="\r\n").encode(),
    "old_mac.csv": lambda: text(end="\r").encode(),
    "no_last_end.csv": lambda: text().encode()[:-1],
    "blank_lines.csv": lambda: b"\n\n" + text().replace('"plain",ok\n', '"plain",ok\n\n').encode(),
}

JSON = {
    "t.jsonl": lambda: json_text().encode(),
    "t.ndjson.gz": lambda: gzip.compress(json_text().encode()),
    "wide.json": lambda: json_text().encode("utf-16"),
    "no_suffix": lambda: json_text().encode(),
    "mark.txt": lambda: json_text().encode("utf-8-sig"),
    "wide": lambda: json_text().encode("utf-16"),
}


def as_fit_reads(path):
    words = pl.concat(open_table(path).batches(batch_rows=2))
    # Parquet and JSON have numbers of their own.
    numbers = words["amount"].cast(pl.Float64)
    return list(zip(numbers, *(words[name].fill_null("") for name in NAMES[1:]), strict=True))


def as_a_stream_reads(path):
    rows, position = [], None
    while True:
        batch = head_of(str(path), position, n=1)
        if batch is None:
            return rows
        assert not batch.rejected
        position = json.loads(json.dumps(batch.position))
        columns = [read_strings(batch.frame[name]).to_list() for name in NAMES]
        rows += [(float(a), b or "", c) for a, b, c in zip(*columns, strict=True)]


def expected(n_copies=1):
    return [(amount, word.replace('""', '"'), label) for amount, word, label in ROWS] * n_copies


@pytest.mark.sampled(12)
@pytest.mark.filterwarnings("ignore:.*read as cp1252")
@pytest.mark.parametrize("name", [*FILES, *JSON])
def test_text_is_the_same_rows_to_all_readers(tmp_path, name):
    path = tmp_path / name
    path.write_bytes((FILES | JSON)[name]())
    assert open_table(path).format_name == ("JSON lines" if name in JSON else "CSV")
    assert as_fit_reads(path) == expected()
    assert as_a_stream_reads(path) == expected()
    rows = from_table(path, "label", columns=["amount"])
    assert rows.source.take(slice(None))[:, 0].tolist() == [row[0] for row in ROWS]
    assert rows.y.tolist() == [row[2] for row in ROWS]


def table():
    return pa.table(dict(zip(NAMES, map(list, zip(*expected(), strict=True)), strict=True)))


@pytest.mark.filterwarnings("ignore:.*read as cp1252")
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_folder_is_the_same_rows_to_all_readers(tmp_path, kind):
    """Parts below it in any dialect; what is hidden, noted or empty is left out."""
    write = {
        "csv": lambda path, k: path.write_bytes(list(FILES.values())[k]()),
        "jsonl": lambda path, k: pl.from_arrow(table()).write_ndjson(path),
        "parquet": lambda path, k: pq.write_table(table(), path),
    }[kind]
    for k, name in enumerate(
        ("b/1", "a/2", "a/c/3", "0", ".hidden", "_notes", "_tmp/x", "d.tmp/5")
    ):
        path = tmp_path / f"{name}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, k)
    (tmp_path / "4.csv.tmp").write_text("being written")
    if kind != "parquet":
        (tmp_path / f"empty.{kind}").touch()
    assert as_fit_reads(tmp_path) == expected(5)
    assert as_a_stream_reads(tmp_path) == expected(5)
    if kind != "jsonl":
        assert len(from_table(tmp_path, "label", columns=["amount"])) == 5 * len(ROWS)


WORDS = {
    "cp1251": "Казань", "koi8-r": "Казань", "cp932": "表ソ東京", "gb18030": "北京", "Big5": "功",
    "cp1252": "é", "latin-1": "é", "utf-16-le": "Казань", "utf_16": "é",
}  # fmt: skip


def lines_of(word, kind):
    if kind == "csv":
        return f'a,{word}\n1,{word}\n2,"{word}"\n'
    rows = [{"a": a, word: word} for a in "12"]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("encoding", WORDS)
def test_a_named_encoding_is_read(tmp_path, encoding, kind):
    word, path, known = WORDS[encoding], tmp_path / f"t.{kind}", TextSettings(encoding=encoding)
    for written in (encoding, "utf-8-sig", "utf-16"):
        path.write_bytes(lines_of(word, kind).encode(written))
        table = pl.concat(open_table(path, known).batches())
        assert (table.columns, table.rows()) == (["a", word], [("1", word), ("2", word)])
        position, rows = None, []
        while (batch := open_source(path, position, text=known).read(1)) is not None:
            position = json.loads(json.dumps(batch.position))
            rows += batch.frame.select(table.columns).rows()
        assert rows == table.rows()
        assert from_table(path, word, columns=["a"], encoding=encoding).y.tolist() == [word] * 2


@pytest.mark.parametrize("encoding", [each for each in WORDS if "16" not in each])
def test_text_that_is_taken_for_cp1252_is_told(tmp_path, encoding):
    path, content = tmp_path / "t.csv", lines_of(WORDS[encoding], "csv").encode(encoding)
    path.write_bytes(content)
    told = f"not UTF-8 .*read as cp1252.*'{content.decode('cp1252')[2]}.*: encoding="
    for read in (open_table, open_source, lambda path: from_table(path, columns=["a"])):
        with pytest.warns(TableWarning, match=told):
            read(path)
    with pytest.warns(TableWarning, match=told):
        position = open_source(path).read(1).position
    rest = open_source(path, position, text=TextSettings(encoding=encoding))  # from here on
    assert rest.read(5).frame.rows() == [("2", WORDS[encoding])]


def test_rows_that_are_not_in_a_named_encoding(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a,b\n1,東\n2,".encode("cp932") + b"\xff\n")
    known = TextSettings(encoding="shift_jis")
    ((_, _, row),), bad = records_of(read_all(open_source(path, text=known)))
    assert row == ("1", "東")
    reason = "not SHIFT_JIS text (give its encoding: encoding='cp1251')"
    assert [row[1:3] for row in bad] == [(3, reason)]
    for name in ("cp9999", "rot13", "utf-32", "cp037", "", "a\0b"):
        with refused(ErrorKind.SETTING, says=repr(name)):
            from_table(path, encoding=name)
    pq.write_table(table(), tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n')
    for name, text in (("t.parquet", known), ("t.jsonl", TextSettings("^"))):
        for read in (open_table, lambda path, text: open_source(path, text=text)):
            with refused(ErrorKind.SETTING, says=f"{name} is a"):
                read(tmp_path / name, text)


@pytest.mark.parametrize("first", ["# by us; on Monday; 3 columns", "%one;two;three", "#id;b;c"])
def test_a_header_that_looks_like_a_comment_is_told(tmp_path, first):
    (tmp_path / "t.csv").write_text(f"{first}\n" + "1;2;3\n" * 5)
    for read in (open_table, open_source, from_table):
        with pytest.warns(TableWarning, match=f"begins with '{first[0]}', as comments do"):
            assert read(tmp_path / "t.csv")


def test_types_of_parquet_parts_are_the_widest(tmp_path):
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.int32())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [0.5, None]}), tmp_path / "2.parquet")
    together = pl.concat(open_table(tmp_path).batches())
    assert together["a"].to_list() == [1.0, 2.0, 0.5, None]
    pq.write_table(pa.table({"a": [[1]]}), tmp_path / "3.parquet")
    with pytest.raises(InputError, match=r"3\.parquet: column 'a' holds list.*1\.parquet double"):
        open_table(tmp_path)


def test_columns_of_one_name_are_told_apart_alike(tmp_path):
    names = ["a", "b", "a", "a.1", "a"]
    (tmp_path / "t.csv").write_text(",".join(names) + "\n1,2,3,4,5\n")
    arrays = [pa.array([float(k)]) for k in range(1, 6)]
    pq.write_table(pa.Table.from_arrays(arrays, names), tmp_path / "t.parquet")
    told = (
        r"columns of one name; the later ones are called 'a\.2' \(column 3\), 'a\.3' \(column 5\)"
    )
    for name in ("t.csv", "t.parquet"):
        path = tmp_path / name
        with pytest.warns(TableWarning, match=told):
            rows = from_table(path)
        assert rows.feature_names == ("a", "b", "a.2", "a.1", "a.3")
        assert rows.source.take(slice(None)).tolist() == [[1, 2, 3, 4, 5]]
        with pytest.warns(TableWarning, match=told):
            frame = pl.concat(open_table(path).batches())
        with pytest.warns(TableWarning, match=told):
            (batch,) = read_all(open_source(str(path)))
        for name in rows.feature_names:
            assert float(frame[name][0]) == float(batch.frame[name][0])


BLANKS = st.sampled_from(["", " ", "\t", "\u00a0", " \u2003"])
SPACED = st.tuples(BLANKS, st.sampled_from(["a", "b c", "d", ""]), BLANKS).map("".join)


@given(st.lists(SPACED, max_size=4, unique=True).filter(lambda names: len(names) > 1))
@example(["", " a "])
def test_names_have_no_blanks_around_and_none_is_empty_wherever_a_table_comes_from(names):
    frame = pl.DataFrame({name: [k + 0.5, 9.5] for k, name in enumerate(["y", *names])})
    told = [name.strip() or f"column_{place}" for place, name in enumerate(frame.columns, 1)]
    with TemporaryDirectory() as folder:
        places = [Path(folder) / f"t.{suffix}" for suffix in ("csv", "parquet", "ndjson")]
        for place in places:
            getattr(frame, f"write_{place.suffix[1:]}")(place)
        for table in (*places, frame, frame.to_pandas(), frame.to_arrow()):
            is_file = isinstance(table, Path)
            if len(set(told)) == len(told):
                file = open_rows(table)
                assert file.columns == told
                cells = pl.concat(file.batches(told[::-1])).row(0)
                assert [*map(float, cells)][::-1] == [k + 0.5 for k in range(len(told))]
                assert is_file or read_table(table).names == told
            elif not is_file or table.suffix == ".ndjson":
                with refused(ErrorKind.DAMAGED_FILE if is_file else ErrorKind.COLUMN_NAMES):
                    list(open_rows(table).batches())


def test_a_few_damaged_bytes_do_not_make_another_encoding():
    assert encoding_of("näme,é\n".encode() + b"\xe4") == "utf-8"
    assert encoding_of(b"n\xe4me,\xe9\n") == "cp1252"
    assert encoding_of(b"n\x81me\n") == "utf-8"  # no letter of cp1252


@pytest.mark.parametrize("block", [1, 2, 3, 5, 7, 11, 64])
@pytest.mark.parametrize(
    "content",
    [
        'a,b\n1,"x\ny"\n"2",z\n"""3""","\n\n"\n4,""\n',
        'a,b\r\n1,"x\r\ny"\r\n2,z\r\n',
        'a,b\n5" pipe,2\n6" pipe,"x\ny"\n"q"uote,3\n',  # quotes that are letters
        "a,b\r1,2\r3,4\r",
        'a,b\n1,"x\ry"\n2,z\n',
    ],
)
def test_blocks_end_where_rows_end(tmp_path, monkeypatch, content, block):
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode())
    whole = pl.concat(open_table(path).batches())
    monkeypatch.setattr("rareclass.tables.text_reader.BLOCK_BYTES", block)
    monkeypatch.setattr("rareclass.scratch_file._HAS_PREADV", block > 5)
    assert pl.concat(open_table(path).batches()).rows() == whole.rows()
    path.write_bytes(f"{content}7,8,9".encode())
    line = len(re.findall("\r\n|\r|\n", content)) + 1
    with pytest.raises(InputError, match=rf", line {line} \(row {len(whole) + 1}\): .*: 7,8,9"):
        list(open_table(path).batches())


def test_the_fast_cut_is_the_slow_one():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        letters = rng.choice(list('aa,"\n'), size=rng.integers(1, 14))
        content = "".join(letters).encode()
        found = row_ends(content, b",").tolist()
        assert found == row_ends_by_cells(content, b",").tolist(), content


@pytest.mark.filterwarnings("ignore::rareclass.findings.TableWarning")
@pytest.mark.parametrize("written", ["{}", "${}.00", "{},5", "1,{}00.50", "{},00 €", "1,{}00"])
def test_costs_are_read_as_numbers_to_learn_from_are(written):
    cells = pl.Series("loss", [written.format(k % 7 + 2) for k in range(60)])
    costs = partial(costs_of, cells, np.arange(60) + 1, "--cost")
    if written == "1,{}00":  # may be decimals
        with refused(ErrorKind.CELL, column="loss"):
            read_table(pl.DataFrame([cells]))
        with refused(ErrorKind.CELL, column="loss", row=1, says="1,200"):
            costs()
        return
    (column,) = read_table(pl.DataFrame([cells])).remembered
    assert costs().tolist() == read_cells(cells, column.reading, 1).to_list()
