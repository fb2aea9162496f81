"""One table in every container that people have, and what a model reads of it."""

import csv
import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from rareclass.encoding.training_table import plan_reading, read_training_table
from rareclass.encoding.typed_table import read_as_trained, read_table
from rareclass.errors import InputError
from rareclass.serving.requests import RefusedError, rows_of_json
from rareclass.tables.table_file import open_rows, open_table

REFUSED = "refused"


def write_csv(cells, folder):
    path = folder / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "n"])
        writer.writerows([cell, k] for k, cell in enumerate(cells))
    return path


def write_json_lines(cells, folder):
    path = folder / "t.jsonl"
    rows = [json.dumps({"x": cell, "n": k}, default=str) for k, cell in enumerate(cells)]
    path.write_text("\n".join(rows) + "\n")
    return path


def write_parquet(cells, folder):
    path = folder / "t.parquet"
    pq.write_table(pa.table({"x": cells, "n": range(len(cells))}), path)
    return path


FILES = {"CSV": write_csv, "JSON lines": write_json_lines, "Parquet": write_parquet}
FRAMES = {
    "pandas objects": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
    "pandas": lambda cells: pd.DataFrame({"x": cells}),
    "polars": lambda cells: pl.DataFrame({"x": cells}),
    "Arrow": lambda cells: pa.table({"x": cells}),
}


def over_http(cells, columns):
    body = json.dumps([{"x": cell} for cell in cells], default=str)
    try:
        return rows_of_json(body.encode(), columns, 1000).typed(columns)
    except RefusedError as error:
        raise InputError(str(error.body())) from error


def readings(cells, column, folder):
    """Cells as a model that was trained on `column` reads them, by container."""
    tables = {}
    for name, write in FILES.items():
        tables[name] = lambda write=write: next(open_table(write(cells, folder)).batches(["x"]))
    for name, make in FRAMES.items():
        tables[name] = lambda make=make: next(open_rows(make(cells)).batches(["x"]))
    found = {name: _read(lambda make=make: _typed(make(), column)) for name, make in tables.items()}
    return found | {"HTTP": _read(lambda: over_http(cells, [column])["x"].to_list())}


def assert_read(cells, column, folder, wanted):
    """Check that every container gives these values, or that each refuses the cells."""
    found = readings(cells, column, folder)
    assert found == dict.fromkeys(found, wanted), cells


def _typed(frame, column):
    return read_as_trained(frame, [column], 1)["x"].to_list()


def classifier_readings(cells, column):
    def read(make):
        found = read_table(make(cells), like=[column]).columns[0]
        values = found.values if found.levels is None else found.words()
        return [None if cell != cell else cell for cell in values.tolist()]

    return {name: _read(lambda make=make: read(make)) for name, make in FRAMES.items()}


def _read(read):
    try:
        return read()
    except InputError:
        return REFUSED


def column_of_file(cells, write, folder):
    file = open_table(write(cells, folder))
    return read_training_table(plan_reading(file, "n")).columns[0]


def column_of_frame(cells, make):
    return read_table(make(cells)).remembered[0]
