"""What the verbs say about bad input: exit code 2, one message, nothing written."""

import gzip
import os
import re
import shutil
import zipfile
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from cli.conftest import fit_in_vain as fit
from command_line import complaint, invoke, run
from draws import quick
from faults import refusal, refused
from made_tables import purchases
from rareclass.cli.app import app
from rareclass.errors import ErrorKind
from rareclass.fit.demo import FILES, PaymentSettings, write_payments
from rareclass.model.model_file import FORMAT
from rareclass.stored import Stored, read_stored, write_stored

Change = Callable[[pl.DataFrame], pl.DataFrame]


def write(path, table):
    table.write_csv(path)
    return path


def with_cell(column, row, text):
    """Put a text into a cell of a column that becomes text by that."""

    def change(table):
        cells = table[column].cast(pl.String).to_list()
        cells[row] = text
        return table.with_columns(pl.Series(column, cells))

    return change


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("change", "words", "answers"),
    [
        (lambda t: t.with_columns(fraud=pl.lit("no")), (), ["only: 'no' in all 240 rows"]),
        (lambda t: t.head(0), (), ["no rows"]),
        (
            lambda t: t.with_columns(fraud=pl.int_range(pl.len()) % 3),
            (),
            ["3 values", "--method ordinal-rankrc", "--positive"],
        ),
        *(
            (None, (option, "Amuont"), [f"{option}: there is no column 'Amuont'. Did you mean"])
            for option in ("--target", "--drop", "--category", "--keep")
        ),
        (None, ("--positive", "yess"), ["'yess'", "Did you mean 'yes'?"]),
        (
            with_cell("amount", 16, "about 40"),
            (),
            ["Column 'amount' holds text at row 17: 'about 40'", "--drop amount"],
        ),
        *(
            (with_cell("amount", 4, value), (), ["Column 'amount' holds", "at row 5"])
            for value in ("inf", "-inf", "1e39")
        ),
        (lambda t: t.select("order", "fraud"), (), ["No column"]),
        *(
            (None, ("--method", "rankrc", f"--lam={lam}"), ["not a number above zero"])
            for lam in ("none", "-1", "0", "nan", "inf", "2^5000")
        ),
        *(
            (None, ("--method", "mibc", f"--cost={cost}"), [f"--cost {cost} is not a", "or inf"])
            for cost in ("none", "-1", "0", "nan", "-inf", "2^5000")
        ),
        (None, ("--method", "mibc", "--covariance", "round"), ["factor"]),
        (None, ("--method", "magic"), ["rankrc"]),
        (
            None,
            ("--method", "rankrc", "--width", "broad"),
            ["--width broad is not a number above zero. Give auto, mean, or a number"],
        ),
        (None, ("--holdout", "1.5"), ["holdout"]),
        (None, ("--memory", "plenty"), ["not a size"]),
        (None, ("--separator", "ab"), ["not one plain character"]),
        (None, ("--keep", "items", "--drop", "items"), ["both --keep and --drop"]),
        (None, ("--keep", "fraud"), ["both --keep and --target"]),
    ],
)
def test_what_cannot_be_learned_is_refused(tmp_path, table, change, words, answers):
    path = write(tmp_path / "t.csv", table if change is None else change(table))
    said = fit(path, *words)
    for each in answers:
        assert each in said


def test_a_parquet_file_without_rows(tmp_path, table):
    table.head(0).write_parquet(tmp_path / "t.parquet")
    assert "no rows" in fit(tmp_path / "t.parquet")


def test_target_not_given_lists_the_columns(train_csv):
    said = complaint("fit", train_csv, "--out", train_csv.parent / "m.rareclass")
    assert "--target is missing" in said
    assert "amount" in said


def test_text_in_a_number_column_when_scoring(fitted, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("order,amount,items,country,member\na,1,2,DE,true\nb,lots,2,DE,true\n")
    out = tmp_path / "s.csv"
    out.write_text("old")
    said = complaint("score", fitted / "model.rareclass", new, "--out", out, "--overwrite")
    assert "Column 'amount' holds text 'lots' at row 2" in said
    assert "leave it empty" in said
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "s.csv"]


@pytest.mark.parametrize(
    ("change", "words", "answers"),
    [
        (
            lambda t: t.rename({"amount": "amounts"}),
            ("score", "--out", "s.csv"),
            ["lacks column 'amount'", "Did you mean 'amounts'?"],
        ),
        (None, ("score", "--out", "s.csv", "--id", "ordr"), ["Did you mean 'order'?"]),
        (None, ("score", "--out", "s.xls"), [".csv or .parquet"]),
        (lambda t: t.drop("fraud"), ("evaluate",), ["lacks the target column 'fraud'"]),
        (
            lambda t: t.filter(pl.col("fraud") == "no"),
            ("evaluate",),
            ["no row has the target value 'yes'"],
        ),
    ],
)
def test_what_cannot_be_scored_or_judged_is_refused(
    fitted, tmp_path, monkeypatch, change, words, answers
):
    monkeypatch.chdir(tmp_path)
    new = write(tmp_path / "new.csv", purchases() if change is None else change(purchases()))
    said = complaint(words[0], fitted / "model.rareclass", new, *words[1:])
    for each in answers:
        assert each in said


def test_files_that_are_missing_empty_cut_short_or_something_else(tmp_path, table):
    assert "no file" in fit(tmp_path / "none.csv")
    (tmp_path / "empty.csv").write_bytes(b"")
    assert "is empty (0 bytes)" in fit(tmp_path / "empty.csv")
    (tmp_path / "blank.csv").write_bytes(b"\n\n")
    assert "holds no text" in fit(tmp_path / "blank.csv")
    packed = gzip.compress(purchases(30_000).write_csv().encode())
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) * 2 // 3])
    assert "cut short or damaged" in fit(tmp_path / "cut.csv.gz")
    (tmp_path / "fake.csv.gz").write_text("a,b\n1,2\n")
    assert "named like a gzip file but is not one" in fit(tmp_path / "fake.csv.gz")
    table.write_parquet(tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    assert "cut short or damaged" in fit(tmp_path / "cut.parquet")
    table.write_csv(tmp_path / "fake.parquet")
    assert "not one" in fit(tmp_path / "fake.parquet")
    (tmp_path / "bytes.csv").write_bytes(bytes(range(256)) * 10)
    assert "not a text file" in fit(tmp_path / "bytes.csv")


def test_csv_oddities(tmp_path):
    (tmp_path / "headless.csv").write_text("1,2,0\n3,4,1\n")
    assert "holds numbers, not column names" in fit(tmp_path / "headless.csv")
    (tmp_path / "ragged.csv").write_text("a,b,fraud\n1,2,yes\n1,no\n")
    assert "row 2 (line 3)" in fit(tmp_path / "ragged.csv")
    (tmp_path / "twice.csv").write_text("a,a,fraud\n1,2,yes\n")
    assert "--target: there is no column 'frau'" in fit(tmp_path / "twice.csv", "--target", "frau")


def test_svmlight_line_that_is_not(tmp_path):
    path = tmp_path / "t.svmlight"
    path.write_text("1 3:1\n-1 what is this\n")
    assert "line 2 is not svmlight" in fit(path)


def test_unwritable_output_is_found_before_training(train_csv, monkeypatch):
    def never(*_: object):
        raise AssertionError("trained")

    monkeypatch.setattr("rareclass.fit.training_set.read_training_set", never)
    folder = train_csv.parent
    said = fit(train_csv, "--out", folder / "nowhere" / "m.rareclass")
    assert "does not exist" in said
    assert f"mkdir -p {folder / 'nowhere'}" in said
    said = fit(train_csv, "--out", folder / "no where" / "m.rareclass")
    assert f"mkdir -p '{folder / 'no where'}'" in said
    assert "is a folder" in fit(train_csv, "--out", folder)
    for name in ("m.rareclass", "a/b/m.rareclass"):  # no folder can be made there
        said = fit(train_csv, "--out", train_csv / name)
        assert f"{train_csv} is not a folder" in said
        assert "mkdir" not in said
    assert "There is no file" in complaint("fit", train_csv / "t.csv", "-t", "a", "-o", "m")
    assert "is the training file" in fit(train_csv, "--out", train_csv)


def test_damaged_model_files(fitted, tmp_path):
    whole = (fitted / "model.rareclass").read_bytes()
    flipped = bytearray(whole)
    with zipfile.ZipFile(fitted / "model.rareclass") as archive:
        largest = max(archive.infolist(), key=lambda entry: entry.compress_size)
    flipped[largest.header_offset + largest.compress_size // 2] ^= 0xFF
    for name, content in (
        ("cut.rareclass", whole[: len(whole) // 2]),
        ("flipped.rareclass", bytes(flipped)),
        ("text.rareclass", b"hello"),
        ("empty.rareclass", b""),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        said = complaint("score", path, fitted / "new.csv", "--out", tmp_path / "s.csv")
        assert "damaged" in said or "not a model file" in said
    said = complaint("evaluate", tmp_path / "none.rareclass", fitted / "new.csv")
    assert "does not exist" in said


def test_an_unknown_kind_in_a_file_is_named_and_nothing_is_built(fitted, tmp_path):
    path = tmp_path / "foreign.rareclass"
    with (fitted / "model.rareclass").open("rb") as file:
        stored = read_stored(file)
    stored.tree["parts"]["estimator"] = {"/": "os.system", "state": {"command": "true"}}
    with path.open("wb") as file:
        write_stored(file, stored)
    said = complaint("evaluate", path, fitted / "new.csv")
    assert "there is no kind 'os.system'" in said


def test_a_file_of_another_kind_or_format(fitted, tmp_path):
    path = tmp_path / "other.rareclass"
    for tree, said in (
        ({"a": 1}, "is not a model file"),
        ({"rareclass model": 99, "parts": {}}, f"reads format {FORMAT} alone"),
        ({"rareclass model": FORMAT, "parts": {}}, "damaged"),
    ):
        with path.open("wb") as file:
            write_stored(file, Stored(tree, {}))
        assert said in complaint("evaluate", path, fitted / "new.csv")


def test_an_unknown_option(train_csv):
    assert "No such option" in complaint("fit", train_csv, "--targte", "x")


def test_fit_says_what_memory_it_needs(train_csv):
    said = fit(train_csv, "--memory", "1MB")
    assert re.search(r"needs about \d+\.\d MiB", said)
    assert "976.6 KiB may be used" in said


def test_too_many_rare_rows_for_the_memory(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("rareclass.fit.memory_plan._LEAST_KERNEL_MEMORY", 1000)
    monkeypatch.setattr("rareclass.fit.memory_plan._MOST_KERNEL_MEMORY", 1000)
    train = write(tmp_path / "t.csv", purchases())
    said = fit(train, "--method", "rankrc", "--lam", 1)
    assert "18 distinct rare rows" in said
    assert "--method mibc" in said
    assert "Raise --memory" in said


def copied(fitted, folder):
    """Return copies of the model and of the new rows, which a test may lose."""
    for name in ("model.rareclass", "new.csv"):
        shutil.copy(fitted / name, folder / name)
    return folder / "model.rareclass", folder / "new.csv"


def test_demo_leaves_files_alone_that_it_did_not_write(tmp_path):
    for name in FILES:
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("id,amount\n1,2\n")
        said = complaint("demo", "--out", folder)
        assert "no rareclass demo wrote it" in said
        assert "--out" in said
        assert (folder / name).read_text() == "id,amount\n1,2\n"
        assert [path.name for path in folder.iterdir()] == [name]


def test_demo_may_be_run_again_in_its_folder(tmp_path):
    few = PaymentSettings(n_days=8, payments_a_day=20)
    weeks = write_payments(tmp_path, settings=few)
    (tmp_path / "model.rareclass").write_bytes(b"of an earlier run")
    before = weeks.train.read_text()
    assert write_payments(tmp_path, 1, few) == weeks
    assert weeks.train.read_text() != before


def test_outputs_never_replace_inputs(fitted, tmp_path):
    model, new = copied(fitted, tmp_path)
    before = model.read_bytes(), new.read_bytes()
    said = complaint("evaluate", model, new, "--json", new)
    assert "--json" in said
    assert "is the file to be read" in said
    assert "is the model" in complaint("evaluate", model, new, "--json", model)
    (tmp_path / "m.csv").hardlink_to(model)
    assert "is the model" in complaint("score", model, new, "--out", tmp_path / "m.csv")
    assert (model.read_bytes(), new.read_bytes()) == before


@pytest.mark.parametrize(
    "cells", quick(2, [pl.int_ranges(0, 2), pl.duration(days=1), pl.struct(a=1), pl.lit(b"x")])
)
def test_id_that_a_csv_file_cannot_hold(fitted, tmp_path, cells):
    new = tmp_path / "new.parquet"
    purchases().with_columns(tag=cells).write_parquet(new)
    model = fitted / "model.rareclass"
    said = complaint("score", model, new, "--out", tmp_path / "s.csv", "--id", "tag")
    assert "--id tag: cells of type" in said
    out = tmp_path / "s.parquet"
    run("score", model, new, "--out", out, "--id", "tag")


def test_model_that_is_an_encrypted_zip(fitted, tmp_path):
    packed = bytearray((fitted / "model.rareclass").read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = packed.find(signature)
        while start >= 0:
            packed[start + offset] |= 1
            start = packed.find(signature, start + 4)
    path = tmp_path / "secret.rareclass"
    path.write_bytes(packed)
    assert "encrypted" in complaint("evaluate", path, fitted / "new.csv")


def test_pipes_and_devices(fitted, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    model, new = fitted / "model.rareclass", fitted / "new.csv"
    said = complaint("score", model, pipe, "--out", tmp_path / "s.csv")
    assert "is a pipe or a device" in said
    assert "a file first" in said
    assert "is a pipe or a device" in complaint(
        "fit", pipe, "--target", "y", "--out", tmp_path / "m.rareclass"
    )
    assert "not a regular file" in complaint("evaluate", pipe, new)
    assert "is a pipe or a device" in complaint("evaluate", model, new, "--json", pipe)


def test_a_parquet_file_has_no_separator(fitted, tmp_path):
    new = tmp_path / "new.parquet"
    purchases().write_parquet(new)
    said = complaint("evaluate", fitted / "model.rareclass", new, "--separator", ";")
    assert "is a Parquet file" in said


def test_numbers_with_commas_that_may_be_thousands(tmp_path):
    rows = [f"{k % 7 + 1},{k:03}\t{'yes' if k % 10 == 3 else 'no'}\n" for k in range(100)]
    (tmp_path / "t.csv").write_text("amount\tfraud\n" + "".join(rows))
    said = fit(tmp_path / "t.csv")
    assert "Column 'amount' holds numbers with commas" in said
    assert "'1,000' at row 1" in said
    assert "--category amount" in said


def options_of_all():
    """Return the command, the name and the annotation of every option and argument."""
    return [
        (verb.callback.__name__, name, annotation)
        for verb in app.registered_commands
        if verb.callback is not None
        for name, annotation in verb.callback.__annotations__.items()
    ]


def test_an_empty_name_is_no_folder_whatever_takes_a_name():
    """An unset variable of a script would otherwise mean all tables of the folder where it runs."""
    places = [
        (name, setting)
        for _, name, annotation in options_of_all()
        if "pathlib" in str(annotation)
        for setting in annotation.__metadata__
    ]
    assert len({name for name, _ in places}) > 10
    for name, setting in places:
        assert setting.parser is not None, name
        for empty in ("", " "):
            with refused(ErrorKind.SETTING, value=empty):
                setting.parser(empty)
    for words in (
        ("fit", "", "--target", "y", "--out", "m.rareclass"),
        ("compare", "", "--target", "y"),
        ("stream", "", "--target", "y", "--checkpoint", "c"),
        ("hunt", "", "--target", "y", "--rare", "1", "--out", "h"),
        ("audit", "", "--target", "y", "--out", "a.csv"),
        ("review", "", "--journal", "j", "--target", "y"),
    ):
        refusal(invoke(*words), ErrorKind.SETTING, "empty")


def test_a_seed_is_one_that_every_generator_takes():
    seeds = {command: a.__metadata__[0] for command, name, a in options_of_all() if name == "seed"}
    assert len(seeds) > 5
    for command, setting in seeds.items():
        assert (setting.min, setting.max) == (0, 2**32 - 1), command
        np.random.RandomState(setting.max)  # that of scikit-learn, which refuses larger ones
