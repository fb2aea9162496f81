"""Writes the golden files of the version that is installed: run once for each released version.

    PYTHONPATH=tests python -m golden.make

from the root of the repository. It writes the folder ``tests/golden/VERSION`` and never touches one
that is there: what a version wrote is kept for good, and every later one must read it. To add a
case for the version at work, make the folder under another name and copy the new files over.

    rows/        rows to score, the streams, and the table of the hunt
    models/      NAME.skops by ``rareclass fit``, NAME.csv its scores by ``rareclass score``, and
                 NAME.json its measures by ``rareclass evaluate``
    streams/     NAME/ is a folder of ``rareclass stream`` that stopped midway: the checkpoint, the
                 rejected rows, and for one of them log and scores; NAME.csv its scores;
                 NAME.end.npz the checkpoint at the end of the stream, NAME.end.json what else
                 was there
    hunt/        the folder that ``rareclass hunt`` wrote, without the picture
    cases.json   which rows belong to which model, and the words of every stream and of the hunt

Most of ``models`` and all of ``streams`` lie in ``.tar.xz`` archives: a model of a table takes
0.2 MB on its own. Model files in an archive were first packed out of their own zip compression,
with the members to the byte as ``rareclass fit`` wrote them; the one beside them is untouched. Each
column that is not of numbers adds to what a model file takes, so that only one has them all.

The rows that models learn from are not kept. Everything runs in a temporary folder and under names
relative to it, so that no file says where it was made.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path

import polars as pl

from golden.tables import (
    COLUMNS,
    as_text,
    many_numbers,
    orders,
    payments,
    typed,
    with_news,
    write_json,
    write_streams,
    write_svmlight,
)
from golden.ways_in import (
    CASES,
    HERE,
    __version__,
    newest_checkpoint,
    open_model,
    pack,
    read_checkpoint,
    relocate,
    run,
    tables_beside,
    without_compression,
)

# Words after "rareclass fit" by name: the training table, the rows to score, the options. Together
# they leave in the file every type that it may hold.
_FRAUD = ("--target", "fraud", "--drop", "risk", "--drop", "grade")
_ORDINAL = ("--method", "ordinal-rankrc")
_RISK = (*_ORDINAL, "--target", "risk", "--drop", "fraud", "--drop", "grade")
_GRADE = (*_ORDINAL, "--target", "grade", "--drop", "fraud", "--drop", "risk")
_NUMBERS = {"amount", "items", "weight"}


def _only(*columns: str) -> tuple[str, ...]:
    """Words that leave out all columns of the orders but numbers and these."""
    others = sorted(COLUMNS - _NUMBERS - {*columns})
    return tuple(word for name in others for word in ("--drop", name))


_MIBC = ("--method", "mibc")
_RANKRC = ("--method", "rankrc")
# One of each kind of function, and of each kind of view.
_KINDS = (
    "--members",
    "smooth kernel on numbers,kernel on quantiles,extra trees,logistic regression",
)
_FOLDS = ("--folds", "3")
_WORDS = ("--positive", "1", *_FOLDS)
MODELS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "auto": ("train.csv", "orders.csv", (*_FRAUD, *_KINDS, *_FOLDS)),
    "rankrc": ("train.csv", "orders.csv", (*_RANKRC, *_FRAUD, "--drop", "note")),
    "rankrc-parquet": (
        "train.parquet", "orders.parquet",
        (*_RANKRC, *_FRAUD, *_only("placed", "day"), "--lam", "2^-4", "--no-refit", *_FOLDS),
    ),
    "rankrc-one-rare": ("one-rare.csv", "orders.csv", (*_RANKRC, *_FRAUD, *_only("note"))),
    "rankrc-numbers": (
        "copies.csv", "orders.csv",
        (
            *_RANKRC, *_FRAUD, *_only(), *_FOLDS,
            "--lam", "0.01", "--holdout", "0", "--copies", "drop",
        ),
    ),
    "rankrc-float32": (
        "many.parquet", "many.csv", (*_RANKRC, "--target", "y", "--lam", "2^-4", *_FOLDS),
    ),
    "rankrc-sparse": ("words.svmlight", "words-new.svmlight", _WORDS),
    "rankrc-sparse-dense": (
        "cells.svmlight", "cells-new.svmlight", (*_RANKRC, *_WORDS, "--lam", "0.1"),
    ),
    "mibc": ("train.csv", "orders.csv", (*_MIBC, *_FRAUD, *_only())),
    "mibc-float32": ("many.parquet", "many.csv", (*_MIBC, "--target", "y", *_FOLDS)),
    "mibc-hard": (
        "separable.csv", "orders.csv", (*_MIBC, "--target", "fraud", "--cost", "inf", *_FOLDS),
    ),
    "mibc-sparse": ("words.svmlight", "words-new.svmlight", (*_MIBC, *_WORDS)),
    "ordinal-rankrc": (
        "train.csv", "orders.csv", (*_RISK, *_only("shop"), "--levels", "low,medium,high", *_FOLDS),
    ),
    "ordinal-rankrc-grades": (
        "copies.csv", "orders.csv",
        (*_GRADE, *_only(), "--lam", "2^-3", *_FOLDS),
    ),
    "ordinal-rankrc-sparse": (
        "words.svmlight", "words-new.svmlight", (*_ORDINAL, "--lam", "2^-3", *_FOLDS),
    ),
} | {
    f"mibc-{kept}": (
        "copies.csv", "orders.csv",
        (*_MIBC, *_FRAUD, *_only(), "--covariance", kept, "--cost", "0.01", *_FOLDS),
    )
    for kept in ("diagonal", "factor", "shrunk", "sparse-inverse")
}  # fmt: skip
# Kept as plain files, to the byte as they were written.
AS_WRITTEN = ("mibc-sparse",)

# Words after "rareclass stream" by name: the source, the options.
_STREAM = ("--target", "fraud", "--id", "id", "--every", "150", "--report-every", "150")
_SMALL = ("--learner", "uniexp", "--window", "60", "--top", "10")
STREAMS: dict[str, tuple[str, tuple[str, ...]]] = {
    name: ("stream.csv", ("--learner", name))
    for name in ("cbr", "cbr-diagonal", "oam", "opauc", "adaoam", "uniexp")
} | {
    "cbr-reservoir": (
        "stream.csv",
        ("--learner", "cbr", "--param", "policy=reservoir", "--param", "buffer_size=9"),
    ),
    "oam-gradient": (
        "stream.csv",
        ("--learner", "oam", "--param", "update=gradient", "--param", "policy=fifo",
         "--param", "buffer_size=9"),
    ),
    "mixture": ("stream.csv", ("--learner", "mixture")),
    "opauc-rank": ("stream.csv", ("--learner", "opauc", "--param", "rank=3")),
    "options": (
        "stream.csv",
        (*_SMALL, "--hold", "20", "--max-categories", "3", "--half-life", "50", "--tails", "clip",
         "--category", "items", "--positive", "1"),
    ),
    "csv-file": ("semicolons.csv", (*_SMALL, "--separator", ";", "--tails", "linear")),
    "jsonl-file": ("stream.jsonl", _SMALL),
    "parquet-file": ("stream.parquet", _SMALL),
    "folder": ("days", _SMALL),
}  # fmt: skip
# The stream whose log and scores are kept, and those that are read from standard input.
WITH_TABLES = "cbr"
AS_STDIN = "stream.csv"

HUNT = ("payments.csv", "--target", "checked", "--rare", "fraud", "--cleared", "ok",
        "--folds", "3")  # fmt: skip


def main() -> None:
    """Write the folder of this version."""
    folder = HERE / __version__
    if folder.exists():
        raise SystemExit(f"{folder} is there: what a version wrote is never written again.")
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        made = Path(__version__)
        for name in ("rows", "models", "streams"):
            (made / name).mkdir(parents=True)
        Path("train").mkdir()
        _write_rows(made / "rows", Path("train"))
        cases = {
            "models": {name: _model(made, name) for name in MODELS},
            "streams": {name: _stream(made, name) for name in STREAMS},
            "hunt": _hunt(made),
        }
        write_json(made / CASES, cases)
        os.chdir(HERE)
        for model in Path(temporary, made, "models").glob("*.skops"):
            if model.stem not in AS_WRITTEN:
                without_compression(model)
        pack(Path(temporary) / made, folder, lambda path: path.stem in AS_WRITTEN)


def _write_rows(rows: Path, train: Path) -> None:
    learned, new = orders(160, seed=0), with_news(orders(60, seed=1))
    learned = pl.concat([learned, learned[40:46]])  # copies
    as_text(learned).write_csv(train / "train.csv")
    typed(learned).write_parquet(train / "train.parquet")
    as_text(new).write_csv(rows / "orders.csv")
    typed(new).write_parquet(rows / "orders.parquet")
    # Scores of copies are equal, and so are most of the percentiles in a model file.
    pl.concat([as_text(learned[:50]).drop("order")] * 8).write_csv(train / "copies.csv")
    fraud = pl.col("fraud") == "yes"
    one_rare = pl.concat([learned.filter(~fraud)[:42], learned.filter(fraud)[:1]])
    as_text(one_rare).write_csv(train / "one-rare.csv")
    separable = learned[:50].select("fraud", "weight", amount=pl.col("amount") + 1000 * fraud)
    pl.concat([separable] * 8).write_csv(train / "separable.csv")
    many_numbers(100_000).write_parquet(train / "many.parquet")
    many_numbers(120)[:100].write_csv(rows / "many.csv")
    for name, density, first in (("words", 0.03, 1), ("cells", 0.3, 0)):
        sparse = train / f"{name}.svmlight"
        write_svmlight(sparse, 100, density, first, seed=3)
        sparse.write_text(sparse.read_text() * 4)
        write_svmlight(rows / f"{name}-new.svmlight", 40, density, first, seed=4)
    write_streams(rows)
    payments(240).write_csv(rows / "payments.csv")


def _model(made: Path, name: str) -> dict[str, str]:
    train, rows, options = MODELS[name]
    model = made / "models" / f"{name}.skops"
    # The table is named by its folder, and the model by its name, in what is printed alone.
    run("fit", Path("train") / train, "--out", model, *options)
    _score(made, model, model.with_suffix(""), rows)
    return {"rows": rows}


def _score(made: Path, model: Path, beside: Path, rows: str) -> None:
    """Write the scores and the measures of a model on rows."""
    data = made / "rows" / rows
    run("score", model, data, "--out", beside.with_name(f"{beside.name}.csv"))
    run("evaluate", model, data, "--json", beside.with_name(f"{beside.name}.json"))
    assert not open_model(model).notices


def _stream(made: Path, name: str) -> dict[str, object]:
    source, options = STREAMS[name]
    is_stdin = source == AS_STDIN
    folder, rows = made.absolute() / "streams" / name, made.absolute() / "rows"
    before = Path.cwd()
    os.chdir(rows)  # rejected rows are named after the source as it was given
    words = ["-" if is_stdin else source, *_STREAM, *options]
    run("stream", *words, "--checkpoint", folder,
        stdin=(rows / source).read_bytes() if is_stdin else None)  # fmt: skip
    os.chdir(before)
    at_end = newest_checkpoint(folder)
    end = {"checkpoint": at_end.name, "rejected": (folder / "rejected.jsonl").read_text()}
    if name == WITH_TABLES:
        end |= tables_beside(folder)
    relocate(at_end, source)
    at_end.rename(folder.with_name(f"{name}.end.npz"))
    write_json(folder.with_name(f"{name}.end.json"), end)
    relocate(newest_checkpoint(folder), source)
    _forget_the_rest(folder, keep_tables=name == WITH_TABLES)
    _score(made, folder, folder, "stream-new.csv")
    return {"words": words, "stdin": source if is_stdin else None, "rows": "stream-new.csv"}


def _forget_the_rest(folder: Path, keep_tables: bool) -> None:
    """Leave the folder as a stream has it that was stopped at its checkpoint before the last."""
    state = read_checkpoint(newest_checkpoint(folder))["json"]["state"]
    (folder / "rejected.jsonl").open("ab").truncate(state["rejected"]["length"])
    for table in ("log", "scores"):
        if not keep_tables:
            shutil.rmtree(folder / table, ignore_errors=True)
        for part in (folder / table).glob("*.parquet"):
            if int(part.stem.removeprefix("part-")) > state["counters"]["rows"]:
                part.unlink()
    for path in folder.glob("*.lock"):
        path.unlink()


def _hunt(made: Path) -> dict[str, list[str]]:
    folder, before = made.absolute() / "hunt", Path.cwd()
    os.chdir(made / "rows")
    run("hunt", *HUNT, "--out", folder)
    os.chdir(before)
    for picture in json.loads((folder / "hunt.json").read_text())["files"]:
        if picture.endswith(".png"):
            (folder / picture).unlink()
    return {"words": list(HUNT)}


if __name__ == "__main__":
    main()
