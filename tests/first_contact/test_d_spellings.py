"""One value has many spellings, and is one value: from files, frames and HTTP, to every model."""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rareclass
from command_line import run, says
from faults import refused
from first_contact.containers import (
    FILES,
    FRAMES,
    REFUSED,
    classifier_readings,
    column_of_file,
    column_of_frame,
    readings,
    write_csv,
    write_parquet,
)
from rareclass.encoding.typed_table import read_table
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind, finding_of
from rareclass.tables.cells import written_numbers
from rareclass.tables.reading import read_cells
from rareclass.tables.text_columns import CellProfile, note_of_text, reading_of_text

pytestmark = pytest.mark.filterwarnings("ignore::rareclass.findings.TableWarning")
N = 60
NOISE = np.random.default_rng(0).normal(size=N).tolist()


class Value(NamedTuple):
    """Cells of training, the first of them in other spellings, and cells that are refused."""

    training: Sequence[Any]
    same: Sequence[Any]
    wrong: Sequence[Any] = ()


THREE = ["3", 3, 3.0, "3.0", "3.00", " 3", Decimal("3.00"), Decimal(3)]
TRUE = ["True", "true", "TRUE", True, 1, "1", 1.0, "1.0", "yes", "Yes", "y", "t"]
LONG = ["1234567890123456789", "1234567890123456790"]
SPELT = {
    "whole numbers": Value(["3", "4"], [*THREE, "03"], ["three", "true", "yes"]),
    "codes among words": Value(["3", "x"], THREE),
    "halves among words": Value(["1.5", "x"], ["1.5", 1.5, "1.50", Decimal("1.50")]),
    "true and false": Value(["True", "False"], TRUE),
    "false and true": Value(["False", "True"], ["False", "no", "0.0", 0, False, "FALSE", "f"]),
    "yes and no": Value(["yes", "no"], [*TRUE, "YES"]),
    "Y and N": Value(["Y", "N"], TRUE),
    "1 and 0": Value(["1", "0"], TRUE, ["perhaps"]),
    "long numbers": Value(LONG, [LONG[0], int(LONG[0]), Decimal(LONG[0])]),
    "words": Value(["DE", "FR"], ["DE", " DE", "DE "]),
    "no value": Value(["NA", "DE"], ["", "null", "\\N", "N/A", None, "n/a", "-", "NaN", "#N/A"]),
    "no number": Value(["NA", "7"], ["", None, "?", "nan", "(null)", "None", "#DIV/0!", "."]),
    "dollars": Value(
        ["$1,234.50", "$12.00"],
        ["$1,234.50", 1234.5, "1234.5", "1,234.50", "$1234.5", Decimal("1234.50")],
        ["€1,234.50", "1.234,50"],
    ),
    "percent": Value(["12 %", "40 %"], ["12%", 12, "12", "12.0 %"], ["12 €"]),
    "accounts": Value(["(1,234.50)", "12.00"], [-1234.5, "-1,234.50", "1234.5-", "\u22121234.5"]),
    "decimal commas": Value(["1.234,50", "12,25"], [1234.5, "1234,5", "1\u202f234,50"]),
    "thousands beside decimal commas": Value(["1.234", "12,25"], ["1.234", "1.234,0", 1234]),
    "weights": Value(["12 kg", "99 kg"], ["12kg", 12, "12", "12.0 KG"], ["12 g", "12 lb"]),
    "times of the day": Value(["10:00", "22:30"], ["10:00:00", 36000, dt.time(10)]),
}
TYPED = {
    "integers": Value([3, 4], [*THREE, "03"], ["three"]),
    "floats": Value([3.0, 4.5], THREE),
    "decimals": Value([Decimal("3.00"), Decimal("4.50")], THREE),
    "truth values": Value([True, False], TRUE),
    "long integers": Value([int(cell) for cell in LONG], SPELT["long numbers"].same),
    "NA beside nulls": Value(["NA", None, "DE"], [" NA"]),
    "nulls beside NA": Value([None, "NA", "DE"], ["", "  "]),
    "times of the day": Value([dt.time(10), dt.time(22, 30)], SPELT["times of the day"].same),
}


def repeated(cells):
    return (list(cells) * N)[:N]


def of_one_type(cells):
    kinds = dict.fromkeys(map(type, cells))
    return [[cell for cell in cells if type(cell) is kind] for kind in kinds]


def checked(value, column, read):
    first, other = value.training[:2]
    for name, found in read([first]).items():
        assert found != REFUSED, name
        assert found != read([other])[name], name
    (wanted,) = next(iter(read([first]).values()))
    for cells in of_one_type(value.same):
        for name, found in read(cells).items():
            assert found == [wanted] * len(cells), (name, cells)
    for cell in value.wrong:
        found = read([cell])
        assert found == dict.fromkeys(found, REFUSED), cell


VALUES = SPELT | {f"typed {name}": value for name, value in TYPED.items()}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", VALUES)
def test_a_model_of_a_file_reads_one_value(tmp_path, name):
    value, write = VALUES[name], write_csv if name in SPELT else write_parquet
    column = column_of_file(repeated(value.training), write, tmp_path)
    checked(value, column, lambda cells: readings(cells, column, tmp_path))
    if name in SPELT:
        of_json = column_of_file(repeated(value.training), FILES["JSON lines"], tmp_path)
        assert of_json.reading == column.reading


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", VALUES)
def test_a_classifier_of_a_frame_reads_one_value(name):
    value = VALUES[name]
    column = column_of_frame(repeated(value.training), FRAMES["pandas objects"])
    checked(value, column, lambda cells: classifier_readings(cells, column))


WRITTEN = {
    "12,345.5": ("1,234.5", 12345.5, None),
    "1,23,456": ("1,234.5", 123456, None),
    "12 345,5": ("1.234,5", 12345.5, None),
    "1\u2019234": ("1,234.5", 1234, None),
    "$ -5": ("1,234.5", -5, "$"),
    "-$5.00": ("1,234.5", -5, "$"),
    "($5)": ("1,234.5", -5, "$"),
    "5-": ("1,234.5", -5, None),
    "R$ 1.234,50": ("1.234,5", 1234.5, "r$"),
    "USD 12": ("1,234.5", 12, "usd"),
    "12,50 EUR": ("1.234,5", 12.5, "eur"),
    "CHF 1'234.50": ("1,234.5", 1234.5, "chf"),
    "Rs. 500": ("1,234.5", 500, "rs"),
    "7 ‰": ("1,234.5", 7, "‰"),
    "-3 °C": ("1,234.5", -3, "°c"),
    "99 km/h": ("1,234.5", 99, "km/h"),
    "5 years": ("1,234.5", 5, "years"),
    "23:59:59.5": ("12:34:56", 86399.5, None),
}


@pytest.mark.parametrize("cell", WRITTEN)
def test_numbers_with_separators_and_units(cell):
    style, value, unit = WRITTEN[cell]
    found = written_numbers(pl.Series([cell]), style)
    assert (found.values[0], found.units[0]) == (value, unit)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "cells",
    [
        ["12 kg", "13 g"],
        ["12 kg", "13"],
        ["12A", "13A"],
        ["Level 2", "Level 3"],
        ["030 123 456", "040 123 456"],
        ["($5", "$6)"],
        ["--5", "6"],
        ["$5 kg", "$6 kg"],
        ["2:1", "3:1"],
    ],
)
def test_what_is_no_number_stays_words(cells):
    assert column_of_frame(repeated(cells), FRAMES["polars"]).reads_as == "string"


def noted(cells):
    profile = CellProfile()
    profile.add(pl.Series("x", cells), 1)
    return note_of_text("x", profile, reading_of_text(profile))


def test_numbers_but_for_a_few_words_name_the_words():
    cells = [*(str(k) for k in range(8)), "tba", "see note"]
    kind, words = noted(cells)
    assert kind is FindingKind.MOSTLY_NUMBERS
    says(words, "'tba'", "'see note'")


@pytest.mark.parametrize(
    ("cells", "usual", "other"),
    [
        (["0,74", "1,5", "2,25", "unknown"], "0,74", "unknown"),
        (["0,74", "0.5", "1,5"], "0,74", "0.5"),
        (["12 mg/dl", "13 mg/dl", "n.d."], "12 mg/dl", "n.d."),
        (["3 EUR", *(f"{k} USD" for k in range(9))], "0 USD", "3 EUR"),
        (["1.2 MB", *(f"{k} KB" for k in range(9))], "0 KB", "1.2 MB"),
    ],
)
def test_numbers_that_are_not_written_in_one_way_name_two_ways(cells, usual, other):
    kind, words = noted(2 * cells)
    assert kind is FindingKind.MOSTLY_NUMBERS
    says(words, f"{usual!r}, and {other!r} is not")


@pytest.mark.parametrize(
    "cells",
    [
        ["12A", "7B", "9C"],
        ["E11", "250", "V53", "401"],
        ["3-5", "6-9"],
        ["1st", "2nd"],
        ["8 GB", "16 GB"],
    ],
)
def test_codes_with_digits_are_no_numbers_written_in_two_ways(cells):
    note = noted(3 * cells)
    assert note is None or note.kind is FindingKind.NUMBER_FORMAT


def test_numbers_with_a_unit_are_noted():
    assert noted(["$5", "$7"]).kind is FindingKind.NUMBER_FORMAT
    with pytest.warns(rareclass.findings.TableWarning) as told:
        read_table(pl.DataFrame({"x": repeated(["12 kg", "13 kg"]), "z": NOISE}))
    assert FindingKind.NUMBER_FORMAT in [getattr(finding_of(w.message), "kind", "") for w in told]


def ids_of(path, folder, *words):
    members = ("--members", "logistic regression", "--folds", "2", "--holdout", "0")
    model, out = folder / "m.rareclass", folder / "s.csv"
    run("fit", path, "-t", "y", *members, "--out", model, "--overwrite", "--drop", "id", *words)
    run("score", model, path, "--id", "id", "--out", out, "--overwrite")
    return pl.read_csv(out, infer_schema=False)["id"].to_list()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_ids_beyond_the_exact_numbers_of_float64_are_carried_over_whole(
    tmp_path, suffix, monkeypatch
):
    monkeypatch.setattr("rareclass.fit.training.baselines", lambda *rows: [])
    numbers = [2**60 + k for k in range(N)]
    values = np.random.default_rng(0).normal(size=N)
    frame = pl.DataFrame({"id": numbers, "v": values, "y": [k % 5 == 0 for k in range(N)]})
    path = tmp_path / f"t{suffix}"
    writers = {".csv": frame.write_csv, ".jsonl": frame.write_ndjson}
    writers.get(suffix, frame.write_parquet)(path)
    assert ids_of(path, tmp_path) == list(map(str, numbers))


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([2**60 + k % 8 for k in range(N)]),
        pa.array([2**63 + k % 8 for k in range(N)], pa.uint64()),
        pa.array([Decimal(10**20 + k % 8) for k in range(N)], pa.decimal128(38, 0)),
        pa.array([Decimal(10**40 + k % 8) for k in range(N)], pa.decimal256(60, 0)),
        pa.array([Decimal(10**20 + k % 8) for k in range(N)], pa.decimal256(38, 0)),
    ],
    ids=lambda cells: str(cells.type),
)
def test_eight_merchants_are_eight(tmp_path, cells):
    path = tmp_path / "t.parquet"
    table = pa.table({"x": cells, "n": NOISE})
    pq.write_table(table, path)
    column = column_of_file(cells.to_pylist(), lambda *_: path, tmp_path)
    assert (column.kind, column.n_distinct) == ("category", 8)
    found = read_table(table).column("x")
    assert found.words().tolist() == [str(cell) for cell in cells.to_pylist()]


def test_a_percentage_is_no_other_unit():
    column = column_of_frame(repeated(["12 %", "7 %"]), FRAMES["polars"])
    with refused(ErrorKind.CELL, column="x", row=2, value="12 €"):
        read_cells(pl.Series("x", ["12", "12 €"]), column.reading, 1)


def test_a_frame_of_pandas_with_an_empty_cell_has_the_categories_of_one_without():
    whole = pd.DataFrame({"x": ["3", "x"] * 30, "n": NOISE})
    like = read_table(whole).remembered
    floats = read_table(pd.DataFrame({"x": [3.0, np.nan], "n": [1.0, 2.0]}), like=like)
    assert floats.column("x").words().tolist() == ["3", None]
