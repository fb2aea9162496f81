"""Sound files to begin with: small tables and a model of every kind, made once a folder."""

import numpy as np
import polars as pl

from command_line import run
from made_tables import purchases

MODELS = ("auto", "trees", "rankrc", "mibc", "ordinal", "sparse", "hunt", "cbr", "adaoam")


def rows_of_every_kind(n_rows=160):
    days, place = np.random.default_rng(1).integers(0, 300, n_rows), pl.int_range(n_rows)
    return purchases(n_rows).with_columns(
        day=pl.Series(np.datetime64("2024-01-01") + days.astype("timedelta64[D]")),
        level=pl.when(pl.col("fraud") == "yes").then(1 + place // 10 % 2).otherwise(0),
    )


def svmlight(n_rows=160, seed=0):
    rng = np.random.default_rng(seed)
    lines = []
    for row in range(n_rows):
        rare = row % 8 == 3
        columns = np.unique(rng.integers(1, 40, 5))
        cells = " ".join(f"{j}:{rng.normal(2 * rare):.3f}" for j in columns)
        lines.append(f"{1 if rare else -1} {cells}")
    return "\n".join(lines) + "\n"


def make_tables(folder):
    folder.mkdir(parents=True, exist_ok=True)
    table = rows_of_every_kind()
    table.write_csv(folder / "rows.csv")
    known = pl.when(pl.int_range(pl.len()) % 2 == 1).then("fraud")
    table.with_columns(fraud=known).write_csv(folder / "hunt.csv")
    table.write_ndjson(folder / "rows.jsonl")
    table.write_parquet(folder / "rows.parquet")
    (folder / "rows.svmlight").write_text(svmlight())


def make_model(folder, kind):
    out = folder / (kind if kind in ("hunt", "cbr", "adaoam") else f"{kind}.rareclass")
    if out.exists():
        return out
    rows, target = folder / "rows.csv", ("--target", "fraud", "--drop", "order", "--drop", "level")
    quick = ("--folds", "2")
    if kind == "auto":
        run("fit", rows, *target, "--out", out, *quick)
    elif kind == "trees":
        members = ("--members", "extra trees,histogram boosting")
        run("fit", rows, *target, "--out", out, *quick, *members)
    elif kind == "rankrc":
        run("fit", rows, *target, "--method", "rankrc", "--lam", "2^-4", "--out", out)
    elif kind == "mibc":
        run("fit", rows, *target, "--method", "mibc", "--out", out, *quick)
    elif kind == "ordinal":
        run("fit", rows, "--target", "level", "--drop", "order", "--drop", "fraud",
             "--method", "ordinal-rankrc", *quick, "--out", out)  # fmt: skip
    elif kind == "sparse":
        run("fit", folder / "rows.svmlight", "--method", "rankrc", "--lam", "2^-4", "--out", out)
    elif kind == "hunt":
        words = ("--target", "fraud", "--rare", "yes", "--cleared", "no", "--kernel", "none")
        run("hunt", folder / "hunt.csv", *words, "--c1", "1", "--c2", "1e-3", *quick, "-o", out)
    else:
        run("stream", rows, "--target", "fraud", "--id", "order", "--drop", "level", "--learner",
             kind, "--checkpoint", out)  # fmt: skip
    return out


def rows_for(folder, kind):
    return folder / ("rows.svmlight" if kind == "sparse" else "rows.csv")
