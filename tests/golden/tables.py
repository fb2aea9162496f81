"""Small tables with every kind of column, drawn once for each version's golden files."""

import csv
import json
from pathlib import Path

import numpy as np
import polars as pl

from verbs.stream import messy_stream
from verbs.stream.messy_stream import messy_records, write_csv

_WORDS = ("late", "tale", "teal", "seal", "ale", "eat")
# Of `orders` as words of a file, that a model may learn from.
COLUMNS = {
    "placed", "amount", "items", "weight", "country", "shop", "member", "note", "channel",
}  # fmt: skip


def orders(n_rows: int, seed: int) -> pl.DataFrame:
    """Orders of which a tenth are fraud and most are of low risk: all kinds of columns, gaps."""
    rng = np.random.default_rng(seed)
    rare = np.arange(n_rows) % 10 == 3
    # Three levels, the lowest the frequent one, which overlap with fraud.
    risk = np.clip(np.searchsorted([0.85, 0.95], rng.random(n_rows)) + rare, 0, 2)
    minutes = rng.integers(0, 500_000, n_rows)
    placed = np.datetime64("2023-05-01T00:00", "us") + minutes.astype("timedelta64[m]")
    country = rng.choice(["DE", "FR", "IT", "PT"], n_rows)
    table = pl.DataFrame(
        {
            "order": [f"o-{seed}-{k}" for k in range(n_rows)],
            "placed": placed,
            "amount": (rng.gamma(4, 12, n_rows) + 40 * rare).round(2),
            "items": rng.integers(1, 9, n_rows) + risk,
            "weight": rng.normal(3, 1, n_rows).round(2),
            "country": np.where(rare & (rng.random(n_rows) < 0.5), "XX", country),
            "shop": [f"s{k}" for k in rng.permutation(n_rows) % 45 // (1 + rare)],
            "member": rng.random(n_rows) < 0.5,
            # Few letters: their groups are a part of the model.
            "note": [" ".join(rng.choice(_WORDS, 4)) for _ in range(n_rows)],
            "channel": ["web"] * n_rows,
            "fraud": np.where(rare, "yes", "no"),
            "risk": np.array(["low", "medium", "high"])[risk],
            "grade": risk,
        }
    )
    row = pl.int_range(n_rows)
    return table.with_columns(
        pl.when(row % 29 != 4).then("amount"),
        pl.when(row % 23 != 7).then("country"),
        pl.when(row % 31 != 2).then("placed"),
        pl.when(row % 37 != 9).then("shop"),
    )


def with_news(table: pl.DataFrame) -> pl.DataFrame:
    """Rows with values that training never met, an extreme number, and empty cells throughout."""
    row = pl.int_range(pl.len())
    return table.with_columns(
        country=pl.when(row % 8 == 1).then(pl.lit("ZZ")).otherwise("country"),
        shop=pl.when(row % 9 == 2).then(pl.lit("s-new")).otherwise("shop"),
        amount=pl.when(row == 5).then(1e6).otherwise("amount"),
        items=pl.when(row != 6).then("items"),
    )


def as_text(table: pl.DataFrame) -> pl.DataFrame:
    """The table as a CSV file has it: dates and truth values as words."""
    return table.with_columns(
        pl.col("placed").dt.strftime("%d/%m/%Y %H:%M"),
        member=pl.when("member").then(pl.lit("yes")).otherwise(pl.lit("no")),
    )


def typed(table: pl.DataFrame) -> pl.DataFrame:
    """The table as a Parquet file may have it: typed dates, categories, short numbers."""
    return table.with_columns(
        pl.col("placed").dt.replace_time_zone("UTC"),
        pl.col("placed").dt.date().alias("day"),
        pl.col("country").cast(pl.Categorical),
        pl.col("items").cast(pl.Int16),
        pl.col("weight").cast(pl.Float32),
    )


def many_numbers(n_rows: int) -> pl.DataFrame:
    """So many rows that encoded numbers are of 32 bits, 40 of them rare."""
    rng = np.random.default_rng(5)
    rare = np.arange(n_rows) % (n_rows // 40) == 2
    x = rng.normal(size=(n_rows, 3)).round(4) + 1.5 * rare[:, None]
    return pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": rare.astype(int)})


def write_svmlight(path: Path, n_rows: int, density: float, first: int, seed: int) -> None:
    """Write sparse rows of labels 0, 1 and 2, whose features are numbered from `first`."""
    rng = np.random.default_rng(seed)
    label = np.searchsorted([0.8, 0.92], rng.random(n_rows))
    lines = []
    for k in range(n_rows):
        stored = np.flatnonzero(rng.random(40) < density)
        stored = np.union1d(stored, [0, 37 + label[k]])
        values = rng.gamma(2, 1, len(stored)).round(3) + 0.001
        fields = " ".join(f"{j + first}:{v:g}" for j, v in zip(stored, values, strict=True))
        lines.append(f"{label[k]} {fields}\n")
    path.write_text("".join(lines))


def write_streams(folder: Path) -> None:
    """Write one stream in every format: late labels and bad rows in the first, then plain ones."""
    records = messy_records(170, n_sure=170)
    write_csv(folder / "stream.csv", records)
    whole = [cells for cells in messy_records(330, 330, seed=1) if _is_plain(cells)][:190]
    table = pl.DataFrame(whole, schema=messy_stream.COLUMNS, orient="row").with_columns(
        pl.col("amount").cast(pl.Float64, strict=False),
        pl.col("items").cast(pl.Int64, strict=False),
        pl.col("country").replace("", None),
        pl.col("fraud").cast(pl.Int64, strict=False),
    )
    table.write_parquet(folder / "stream.parquet")
    table.write_ndjson(folder / "stream.jsonl")
    with_commas = [[cell.replace(".", ",") for cell in cells] for cells in whole]
    with (folder / "semicolons.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";", lineterminator="\n").writerows(
            [messy_stream.COLUMNS, *with_commas]
        )
    (folder / "days").mkdir()
    table[:60].write_csv(folder / "days" / "1.csv")
    table[60:140].write_ndjson(folder / "days" / "2.jsonl")
    table[140:].write_parquet(folder / "days" / "3.parquet")
    new = [cells for cells in messy_records(60, 60, seed=2) if _is_plain(cells)]
    new[3][3], new[4][1] = "ZZ", "1e6"
    write_csv(folder / "stream-new.csv", new)


def _is_plain(cells: list[str]) -> bool:
    """Whether a record is a row of its own, with a label and nothing wrong in it."""
    return len(cells) == 5 and cells[4] in ("0", "1") and "inf" not in cells and cells[1] != ""


def payments(n_rows: int) -> pl.DataFrame:
    """Payments of which every 12th is fraud; most were never looked at."""
    rng = np.random.default_rng(0)
    fraud = np.arange(n_rows) % 12 == 5
    checked = np.full(n_rows, None, dtype=object)
    checked[np.flatnonzero(fraud)[:6]] = "fraud"
    checked[np.flatnonzero(~fraud)[:24]] = "ok"
    return pl.DataFrame(
        {
            "amount": np.where(fraud, rng.normal(900, 20, n_rows), rng.normal(60, 20, n_rows)),
            "hour": np.where(fraud, rng.normal(3, 0.5, n_rows), rng.uniform(6, 23, n_rows)),
            "country": np.where(fraud, "XX", "DE"),
            "checked": checked.tolist(),
        }
    ).with_columns(pl.col("amount").round(2), pl.col("hour").round(1))


def write_json(path: Path, value: object) -> None:
    """Write JSON for people as well."""
    path.write_text(json.dumps(value, indent=1) + "\n")
