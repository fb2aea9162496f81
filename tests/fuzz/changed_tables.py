"""Tables as nobody should write them, in each format, and the verbs that read them."""

import io
import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import polars as pl

from fuzz import bases, changed_bytes
from fuzz.commands import command
from rareclass.model.evaluate import evaluate_file

SUFFIXES = ("csv", "jsonl", "parquet", "svmlight")

_VALUES = (
    timedelta(days=3), timedelta(microseconds=-1), time(3, 4, 5), date(1, 1, 1), date(9999, 12, 31),
    datetime(1677, 9, 21), datetime(2024, 2, 29, 23, 59), b"\xff\x00", [1, 2], [], {"a": 1},
    Decimal("1.50"), "", " ", "nan", "é", "\0", 2**63 - 1, -(2**63), 1e308, 5e-324, float("nan"),
    float("inf"), True, None,
)  # fmt: skip
_DTYPES = (
    pl.Float32, pl.Int8, pl.UInt64, pl.String, pl.Categorical, pl.Boolean, pl.Date, pl.Time,
    pl.Duration, pl.Datetime("ns"), pl.Datetime("us", "Europe/Berlin"), pl.Binary, pl.Null,
    pl.List(pl.String), pl.Decimal(20, 4), pl.Enum(["yes", "no", "DE", "XX"]),
)  # fmt: skip
_NAMES = ("", " ", "a,b", '"', "\n", "score", "row", "fraud ", "\u202e", "x" * 3000, "\ud7ff", "0")


def _column_of_one_value(table, rng):
    value = rng.choice(_VALUES)
    cells = [value if rng.random() < 0.9 else None for _ in range(table.height)]
    return table.with_columns(pl.Series(rng.choice(table.columns), cells, strict=False))


def _column_of_other_type(table, rng):
    name, dtype = rng.choice(table.columns), rng.choice(_DTYPES)
    cells = table[name]
    try:
        return table.with_columns(cells.cast(dtype, strict=False))
    except pl.exceptions.PolarsError:
        cells = pl.Series(name, list(range(table.height)))
        try:
            return table.with_columns(cells.cast(dtype, strict=False))
        except pl.exceptions.PolarsError:
            return table


def _some_cells(table, rng):
    name, value = rng.choice(table.columns), rng.choice(_VALUES)
    cells = table[name].to_list()
    for _ in range(rng.choice([1, 3, 50])):
        cells[rng.randrange(len(cells))] = value
    return table.with_columns(pl.Series(name, cells, strict=False))


def _columns_named_otherwise(table, rng):
    return table.rename({rng.choice(table.columns): rng.choice(_NAMES)})


def _column_dropped(table, rng):
    return table.drop(rng.choice(table.columns))


def _few_rows(table, rng):
    return table.head(rng.choice([0, 1, 2, 4, 8]))


def _all_null(table, rng):
    return table.with_columns(pl.lit(None).alias(rng.choice(table.columns)))


def _columns_exchanged(table, rng):
    one, other = rng.sample(table.columns, 2)
    return table.with_columns(table[one].alias(other), table[other].alias(one))


_COLUMNS = (
    _column_of_one_value, _column_of_other_type, _column_of_other_type, _some_cells,
    _columns_named_otherwise, _column_dropped, _few_rows, _all_null, _columns_exchanged,
)  # fmt: skip

_JSON = (
    None, True, [], {}, {"a": {"b": [1]}}, "", "\u0000", "\ud800", 10**400, -(2**63) - 1, 1.5e300,
    "nan", [1, "a", None], "2024-02-30", "x" * 5000, 0.1, -0.0,
)  # fmt: skip


def _json_changed(data, rng):
    lines = data.splitlines()
    for _ in range(rng.choice([1, 2, 30])):
        place = rng.randrange(len(lines))
        try:
            row = json.loads(lines[place])
        except ValueError:
            continue
        if not isinstance(row, dict) or not row:
            continue
        key, way = rng.choice(list(row)), rng.random()
        if way < 0.6:
            row[key] = rng.choice(_JSON)
        elif way < 0.7:
            del row[key]
        elif way < 0.8:
            row[rng.choice(_NAMES)] = row.pop(key)
        text = json.dumps(row if way < 0.9 else rng.choice([[row], 3, None, "x", {}]))
        if way > 0.95:
            text = text[:-1] + ", " + text[1:]  # every key twice
        lines[place] = text.encode("utf-8", "surrogatepass")
    return b"\n".join(lines) + b"\n"


def _parquet_of(table):
    out = io.BytesIO()
    table.write_parquet(out)
    return out.getvalue()


def changed(folder, suffix, rng):
    sound = (folder / f"rows.{suffix}").read_bytes()
    if suffix == "jsonl" and rng.random() < 0.5:
        return "json", _json_changed(sound, rng)
    if suffix in ("parquet", "csv") and rng.random() < (0.7 if suffix == "parquet" else 0.3):
        table, names = pl.read_parquet(folder / "rows.parquet"), []
        for _ in range(rng.choice([1, 1, 2])):
            change = rng.choice(_COLUMNS)
            try:
                table = change(table, rng)
            except (pl.exceptions.PolarsError, IndexError, ValueError, TypeError, OverflowError):
                continue
            names.append(change.__name__.strip("_"))
        try:
            data = _parquet_of(table) if suffix == "parquet" else table.write_csv().encode()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return "nothing", sound
        return "+".join(names), data
    change = rng.choice(changed_bytes.CHANGES)
    data = change(sound, rng)
    if rng.random() < 0.3:
        other = rng.choice(changed_bytes.CHANGES)
        data = other(data, rng) if data else data
    return change.__name__, data


def _fit(folder, rows):
    out = rows.parent / "m.rareclass"
    target = () if rows.suffix == ".svmlight" else ("--target", "fraud")
    command(
        "fit", rows, *target, "--method", "rankrc", "--lam", "2^-4", "--folds", "2",
        "--no-baseline", "--out", out,
    )  # fmt: skip


def _score(folder, rows):
    from fuzz.targets import check_scores

    kind = "sparse" if rows.suffix == ".svmlight" else "rankrc"
    out = rows.parent / "scores.parquet"
    command("score", bases.make_model(folder, kind), rows, "--out", out)
    check_scores(out)


def _score_auto(folder, rows):
    from fuzz.targets import check_scores

    out = rows.parent / "scores.csv"
    command("score", bases.make_model(folder, "auto"), rows, "--out", out, "--id", "order")
    check_scores(rows.parent / "scores.csv")


def _evaluate(folder, rows):
    from rareclass.opening import open_model

    evaluate_file(open_model(bases.make_model(folder, "auto")), rows)
    command("evaluate", bases.make_model(folder, "rankrc"), rows)


def _stream(folder, rows):
    command(
        "stream", rows, "--target", "fraud", "--learner", "oam", "--id", "order",
        "--checkpoint", rows.parent / "run",
    )  # fmt: skip


VERBS = {
    "score": _score, "score auto": _score_auto, "evaluate": _evaluate, "fit": _fit,
    "stream": _stream,
}  # fmt: skip
