"""What the verbs say about bad input: exit code 2, one message, nothing written."""

import os
import shutil
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import typer

from cli.conftest import fit_in_vain as fit
from command_line import QUICK, complaint, invoke, run, says
from draws import quick
from faults import refusal, refused
from made_tables import purchases
from rareclass.cli.command import app
from rareclass.errors import ErrorKind
from rareclass.fit.demo import FILES, SCORES_NAME, PaymentSettings, write_payments
from rareclass.model.model_file import FORMAT
from rareclass.stored import Stored, read_stored, write_stored


def write(path, table):
    table.write_csv(path)
    return path


def with_cell(column, row, text):
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
        *(
            (None, (option, "Amuont"), [f"{option}: there is no column 'Amuont'. Did you mean"])
            for option in ("--target", "--drop", "--category", "--keep")
        ),
        (None, ("--positive", "yess"), ["'yess'", "Did you mean 'yes'?"]),
        (with_cell("amount", 16, "about 40"), (),
         ["all but 1 of its", "'about 40' at row 17", "--drop amount"]),
        *(
            (with_cell("amount", 4, value), (), ["Column 'amount' holds", "at row 5"])
            for value in ("inf", "-inf", "1e39")
        ),
        (lambda t: t.select("order", "fraud"), (), ["no column"]),
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
        (None, ("--method", "rankrc", "--width", "broad"),
         ["--width broad is not a number above zero. Give auto, mean, or a number"]),
        (None, ("--holdout", "1.5"), ["holdout"]),
        (None, ("--memory", "plenty"), ["not a size"]),
        (None, ("--separator", "ab"), ["not one plain character"]),
        (None, ("--keep", "items", "--drop", "items"), ["both --keep and --drop"]),
        (with_cell("country", 6, None), ("--groups", "country"),
         ["--groups country has no value at row 7."]),
        (with_cell("country", 6, "NA"), ("--groups", "country"),
         ["--groups country has no value at row 7: 'NA' is read as empty."]),
        (None, ("--keep", "fraud"), ["both --keep and --target"]),
        (None, ("--targte", "x"), ["No such option"]),
        (None, ("--memory", "1MB"), ["needs about", "MiB", "976.6 KiB may be used"]),
        (None, ("--time-budget", "soon"), ["--time-budget soon", "60", "5m"]),
        (None, ("--effort", "fast"), ["'--effort': 'fast' is not one of"]),
        (None, ("--members", "extra tree"), ["'extra tree'", "'extra trees'"]),
        (None, ("--members", "kernel,trees", "--members", "q"), ["'q'", "auto, kernel, trees"]),
        (None, ("--drop", "items,x"), ["--drop: there is no column 'x'"]),
        (None, ("--drop", '"items, x"'), ["'items, x'"]),
        (None, ("--drop", "items", "--keep", "y, x"), ["--keep: there is no column 'y'"]),
        (None, ("--positive", "yes,x"), ["--positive: no row has 'x'"]),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_is_refused(tmp_path, table, change, words, answers):
    path = write(tmp_path / "t.csv", table if change is None else change(table))
    said = fit(path, *words)
    for each in answers:
        assert each in said


def test_target_and_separator_are_asked_where_they_are_needed(train_csv):
    said = complaint("fit", train_csv, "--out", train_csv.parent / "m.rareclass")
    says(said, "--target is missing", "amount")
    purchases().write_parquet(train_csv.with_suffix(".parquet"))
    assert "is a Parquet file" in fit(train_csv.with_suffix(".parquet"), "--separator", ";")


def test_text_in_a_number_column_when_scoring(fitted, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("order,amount,items,country,member\na,1,2,DE,true\nb,lots,2,DE,true\n")
    out = tmp_path / "s.csv"
    out.write_text("old")
    said = complaint("score", fitted.model, new, "--out", out, "--overwrite")
    says(said, "Column 'amount' holds text 'lots' at row 2", "leave it empty")
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "s.csv"]


@pytest.mark.parametrize(
    ("change", "words", "answers"),
    [
        (lambda t: t.rename({"amount": "amounts"}), ("score", "--out", "s.csv"),
         ["lacks column 'amount'", "is it 'amounts'?"]),
        (None, ("score", "--out", "s.csv", "--id", "ordr"), ["Did you mean 'order'?"]),
        (None, ("score", "--out", "s.xls"), [".csv or .parquet"]),
        (lambda t: t.drop("fraud"), ("evaluate",), ["csv has no column 'fraud'"]),
        (lambda t: t.filter(pl.col("fraud") == "no"), ("evaluate",),
         ["no row has the target value 'yes'"]),
        *(
            (lambda t: t.head(0), (verb, *words), ["new.csv has no rows"])
            for verb, words in (
                ("score", ("--out", "s.csv")),
                ("monitor", ()),
                ("evaluate", ("--time", "order")),
                ("evaluate", ("--journal", "new.csv")),
                ("threshold", ("--cost", "fp=1,fn=amount")),
                ("report", ("--groups", "country", "--out", "r.html")),
            )
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_scored_or_judged_is_refused(
    fitted, tmp_path, monkeypatch, change, words, answers
):
    monkeypatch.chdir(tmp_path)
    new = write(tmp_path / "new.csv", purchases() if change is None else change(purchases()))
    says(complaint(words[0], fitted.model, new, *words[1:]), *answers)


def parquet(table):
    buffer = BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()


THOUSANDS = [f"{k % 7 + 1},{k:03}\t{'yes' if k % 10 == 3 else 'no'}\n" for k in range(100)]
NO_TABLES = [
    ("none.csv", None, ["no file"]),
    ("empty.csv", b"", ["is empty (0 bytes)"]),
    ("array.json", b'[{"y": 1},\n {"y": 0}]', ["an array, where", "one object a line"]),
    ("empty.parquet", parquet(purchases(0)), ["no rows"]),
    ("ragged.csv", b"a,b,fraud\n1,2,yes\n1,no\n", ["line 3 (row 2)"]),
    ("t.svmlight", b"1 3:1\n-1 what is this\n", ["line 2 is not svmlight"]),
    (
        "thousands.csv",
        ("amount\tfraud\n" + "".join(THOUSANDS)).encode(),
        ["Column 'amount' holds numbers with commas", "'1,000' at row 1", "--category amount"],
    ),
]


@pytest.mark.parametrize(("name", "content", "answers"), NO_TABLES, ids=lambda each: str(each)[:12])
def test_files_that_cannot_be_learned_from(tmp_path, name, content, answers):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    said = fit(tmp_path / name)
    assert all(each in said for each in answers)


def test_unwritable_output_is_found_before_training(train_csv, monkeypatch):
    def never(*_):
        raise AssertionError("trained")

    monkeypatch.setattr("rareclass.fit.training_set.read_training_set", never)
    folder = train_csv.parent
    said = fit(train_csv, "--out", folder / "nowhere" / "m.rareclass")
    says(said, "does not exist", f"mkdir -p {folder / 'nowhere'}")
    said = fit(train_csv, "--out", folder / "no where" / "m.rareclass")
    assert f"mkdir -p '{folder / 'no where'}'" in said
    assert "is a folder" in fit(train_csv, "--out", folder)
    for name in ("m.rareclass", "a/b/m.rareclass"):  # no folder can be made there
        said = fit(train_csv, "--out", train_csv / name)
        assert f"{train_csv} is not a folder" in said
        assert "mkdir" not in said
    assert "There is no file" in complaint("fit", train_csv / "t.csv", "-t", "a", "-o", "m")
    assert "is the training file" in fit(train_csv, "--out", train_csv)


def encrypted(whole):
    packed = bytearray(whole)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = packed.find(signature)
        while start >= 0:
            packed[start + offset] |= 1
            start = packed.find(signature, start + 4)
    return packed


def flipped(whole):
    packed = bytearray(whole)
    with zipfile.ZipFile(BytesIO(whole)) as archive:
        largest = max(archive.infolist(), key=lambda entry: entry.compress_size)
    packed[largest.header_offset + largest.compress_size // 2] ^= 0xFF
    return packed


def foreign(whole):
    stored = read_stored(BytesIO(whole))
    stored.tree["parts"]["estimator"] = {"/": "os.system", "state": {"command": "true"}}
    return packed_tree(stored)


def packed_tree(stored):
    file = BytesIO()
    write_stored(file, stored)
    return file.getvalue()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda whole: whole[: len(whole) // 2], "damaged"),
        (flipped, "damaged"),
        (lambda _: b"hello", "not a model file"),
        (lambda _: b"", "not a model file"),
        (encrypted, "encrypted"),
        (foreign, "there is no kind 'os.system'"),
        (lambda _: packed_tree(Stored({"a": 1}, {})), "is not a model file"),
        (lambda _: packed_tree(Stored({"rareclass model": 99, "parts": {}}, {})),
         f"reads format {FORMAT} alone"),
        (lambda _: packed_tree(Stored({"rareclass model": FORMAT, "parts": {}}, {})), "damaged"),
        (None, "does not exist"),
    ],
)  # fmt: skip
def test_files_that_are_no_models(fitted, tmp_path, change, said):
    path = tmp_path / "m.rareclass"
    if change is not None:
        path.write_bytes(change(fitted.model.read_bytes()))
    for words in (("score", "--out", tmp_path / "s.csv"), ("evaluate",)):
        assert said in complaint(words[0], path, fitted.new, *words[1:])


def test_too_many_rare_rows_for_the_memory(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("rareclass.fit.rows_on_disk._LEAST_KERNEL_MEMORY", 1000)
    monkeypatch.setattr("rareclass.fit.rows_on_disk._MOST_KERNEL_MEMORY", 1000)
    train = write(tmp_path / "t.csv", purchases())
    said = fit(train, "--method", "rankrc", "--lam", 1)
    says(said, "18 distinct rare rows", "--method mibc", "Raise --memory")


@pytest.mark.parametrize(
    "verb", ["score", "evaluate", pytest.param("fit", marks=pytest.mark.thorough)]
)
def test_outputs_are_replaced_only_where_said(fitted, tmp_path, verb):
    out, option = tmp_path / "out.csv", "--json" if verb == "evaluate" else "--out"
    rest = (fitted.model, fitted.new)
    if verb == "fit":
        rest = (fitted.train, "-t", "fraud", *QUICK, "--holdout", "0")
    words = (verb, *rest, option, out)
    out.write_text("mine")
    refusal(invoke(*words), ErrorKind.EXISTING_FILE, f"{option} {out}", "--overwrite")
    assert out.read_text() == "mine"
    run(*words, "--overwrite")
    assert out.read_bytes() != b"mine"


def copied(fitted, folder):
    return [Path(shutil.copy(path, folder)) for path in (fitted.model, fitted.new)]


def test_demo_leaves_files_alone_that_it_did_not_write(tmp_path):
    for name in FILES:
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("id,amount\n1,2\n")
        says(complaint("demo", "--out", folder), "no rareclass demo wrote it", "--out")
        assert (folder / name).read_text() == "id,amount\n1,2\n"
        assert [path.name for path in folder.iterdir()] == [name]
    scores = tmp_path / SCORES_NAME  # like one of its own
    scores.write_text("row,score,called_rare,percentile\n")
    error = refusal(invoke("demo", "--out", tmp_path), ErrorKind.EXISTING_FILE, "--overwrite")
    assert SCORES_NAME in error.message


def test_demo_may_be_run_again_in_its_folder(tmp_path):
    few = PaymentSettings(n_days=8, payments_a_day=20)
    weeks = write_payments(tmp_path, settings=few)
    (tmp_path / "model.rareclass").write_bytes(b"of an earlier run")
    before = weeks.train.read_text()
    assert write_payments(tmp_path, 1, few) == weeks
    assert weeks.train.read_text() != before


def test_outputs_never_replace_inputs_and_name_their_format(fitted, tmp_path):
    model, new = copied(fitted, tmp_path)
    before = model.read_bytes(), new.read_bytes()
    says(complaint("evaluate", model, new, "--json", new), "--json", "is the file to be read")
    assert "is the model" in complaint("evaluate", model, new, "--json", model)
    one = ("--out", tmp_path / "s.csv", "--json", tmp_path / "x" / ".." / "s.csv")
    assert "is --out" in complaint("score", model, new, *one)
    (tmp_path / "m.csv").hardlink_to(model)
    assert "is the model" in complaint("score", model, new, "--out", tmp_path / "m.csv")
    assert (model.read_bytes(), new.read_bytes()) == before
    other = tmp_path / "out.xls"
    of_fraud = (new, "--target", "fraud")
    for words in (
        ("score", model, new, "--out", other),
        ("compare", *of_fraud, "--out", other),
        ("stream", *of_fraud, "--checkpoint", tmp_path / "run", "--alert-file", other),
        ("review", *of_fraud, "--journal", tmp_path / "j", "--labelled", other),
    ):
        refusal(invoke(*words), ErrorKind.SETTING, f"{words[-2]} {other}", ".csv or .")


@pytest.mark.parametrize(
    "cells", quick(2, [pl.int_ranges(0, 2), pl.duration(days=1), pl.struct(a=1), pl.lit(b"x")])
)
def test_id_that_a_csv_file_cannot_hold(fitted, tmp_path, cells):
    new = tmp_path / "new.parquet"
    purchases().with_columns(tag=cells).write_parquet(new)
    model = fitted.model
    said = complaint("score", model, new, "--out", tmp_path / "s.csv", "--id", "tag")
    assert "--id tag: cells of type" in said
    out = tmp_path / "s.parquet"
    run("score", model, new, "--out", out, "--id", "tag")


def test_pipes_and_devices(fitted, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    model, new, out = fitted.model, fitted.new, ("--out", tmp_path / "out.csv")
    for words, said in (
        (("score", model, pipe, *out), "is a pipe or a device"),
        (("score", model, pipe, *out), "a file first"),
        (("fit", pipe, "--target", "y", *out), "is a pipe or a device"),
        (("evaluate", pipe, new), "not a regular file"),
        (("evaluate", model, new, "--json", pipe), "is a pipe or a device"),
    ):
        assert said in complaint(*words)


def options_of_all():
    return [
        (name, annotation)
        for verb in app.registered_commands
        if verb.callback is not None
        for name, annotation in verb.callback.__annotations__.items()
    ]


def test_an_empty_name_is_no_folder_whatever_takes_a_name():
    """An unset variable of a script would otherwise mean all tables of the folder where it runs."""
    places = [
        (name, setting)
        for name, annotation in options_of_all()
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


def test_a_table_is_written_only_to_a_name_that_says_its_format(tmp_path):
    data, out = tmp_path / "t.csv", tmp_path / "out.txt"
    data.write_text("x,y\n1,\n2,a\n")
    for words in (
        ("audit", data, "--target", "y", "--out", out),
        ("compare", data, "--target", "y", "--out", out),
        ("review", data, "--target", "y", "--journal", tmp_path / "j", "--list", out),
        ("review", data, "--target", "y", "--journal", tmp_path / "j", "--labelled", out),
    ):
        refusal(invoke(*words), ErrorKind.SETTING, "out.txt does not end in .csv")
        assert sorted(tmp_path.iterdir()) == [data]


def test_a_seed_is_one_that_every_generator_takes(capsys):
    verbs = [each.callback for each in app.registered_commands]
    seeded = [verb for verb in verbs if "seed" in verb.__annotations__]
    assert len(seeded) > 5
    for verb in seeded:
        for seed in ("-1", "4294967296", "1.5"):
            with pytest.raises(typer.Exit):
                verb(**dict.fromkeys(verb.__annotations__) | {"seed": seed})
            said = " ".join(capsys.readouterr().err.split())
            assert f"--seed {seed} must be a whole number from 0 to 4,294,967,295." in said
    np.random.RandomState(2**32 - 1)  # that of scikit-learn, which refuses larger ones
