"""Sound files to begin with: small tables and a model of every kind, made once a folder."""

import numpy as np
import polars as pl
from typer.testing import CliRunner

from rareclass.cli.app import app

MODELS = ("auto", "trees", "rankrc", "mibc", "ordinal", "sparse", "hunt", "cbr", "adaoam")


def purchases(n_rows=160, seed=0):
    """A tenth of the rows are fraud, told apart by amount and country; every kind of column."""
    rng = np.random.default_rng(seed)
    rare = np.arange(n_rows) % 8 == 3
    days = np.datetime64("2024-01-01") + rng.integers(0, 300, n_rows).astype("timedelta64[D]")
    return pl.DataFrame(
        {
            "order": [f"o-{k * 7919 % 99991}" for k in range(n_rows)],
            "amount": (rng.normal(50, 10, n_rows) + 25 * rare).round(2),
            "items": rng.integers(1, 9, n_rows),
            "country": np.where(rare & (rng.random(n_rows) < 0.5), "XX", "DE"),
            "member": rng.random(n_rows) < 0.5,
            "day": days,
            "level": np.where(rare, 1 + np.arange(n_rows) % 2, 0),
            "fraud": np.where(rare, "yes", "no"),
        }
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
    table = purchases()
    table.write_csv(folder / "rows.csv")
    known = pl.when(pl.int_range(pl.len()) % 2 == 1).then("fraud")
    table.with_columns(fraud=known).write_csv(folder / "hunt.csv")
    table.write_ndjson(folder / "rows.jsonl")
    table.write_parquet(folder / "rows.parquet")
    (folder / "rows.svmlight").write_text(svmlight())


def _run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exit_code:
        raise RuntimeError(f"{words}: {result.output}") from result.exception


def make_model(folder, kind):
    out = folder / (kind if kind in ("hunt", "cbr", "adaoam") else f"{kind}.rareclass")
    if out.exists():
        return out
    rows, target = folder / "rows.csv", ("--target", "fraud", "--drop", "order", "--drop", "level")
    quick = ("--folds", "2")
    if kind == "auto":
        _run("fit", rows, *target, "--out", out, *quick)
    elif kind == "trees":
        members = ("--members", "extra trees,histogram boosting")
        _run("fit", rows, *target, "--out", out, *quick, *members)
    elif kind == "rankrc":
        _run("fit", rows, *target, "--method", "rankrc", "--lam", "2^-4", "--out", out)
    elif kind == "mibc":
        _run("fit", rows, *target, "--method", "mibc", "--out", out, *quick)
    elif kind == "ordinal":
        _run("fit", rows, "--target", "level", "--drop", "order", "--drop", "fraud",
             "--method", "ordinal-rankrc", *quick, "--out", out)  # fmt: skip
    elif kind == "sparse":
        _run("fit", folder / "rows.svmlight", "--method", "rankrc", "--lam", "2^-4", "--out", out)
    elif kind == "hunt":
        words = ("--target", "fraud", "--rare", "yes", "--cleared", "no", "--kernel", "none")
        _run("hunt", folder / "hunt.csv", *words, "--c1", "1", "--c2", "1e-3", *quick, "-o", out)
    else:
        _run("stream", rows, "--target", "fraud", "--id", "order", "--drop", "level", "--learner",
             kind, "--checkpoint", out)  # fmt: skip
    return out


def rows_for(folder, kind):
    return folder / ("rows.svmlight" if kind == "sparse" else "rows.csv")
