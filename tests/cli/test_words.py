"""Messages name settings as their caller gives them, and a first fit is read in a minute."""

import ast
import re
import shlex
import warnings
from contextvars import copy_context
from dataclasses import replace
from io import StringIO
from itertools import chain, compress
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import typer
from rich.console import Console

from command_line import QUICK, complaint, invoke, printed, run
from made_tables import purchases
from rareclass import RareClassifier, errors
from rareclass.cli.command import app
from rareclass.cli.fit_text import _other_rule
from rareclass.cli.screen import folded_command, print_table
from rareclass.decide.threshold_rule import ThresholdRule, default_thresholds
from rareclass.errors import OPTIONS, InputError, called_from, setting
from rareclass.fit.demo import write_payments
from rareclass.fit.training_set import FitSettings, read_training_set
from rareclass.hunt.files import check_folder
from rareclass.review import open_journal, read_review_table
from rareclass.stream.options import parse_parameters
from rareclass.tables.table_file import open_rows
from source_trees import nodes

ROWS = purchases()


@pytest.fixture(scope="module")
def below():
    return [node for path, node in nodes() if not path.startswith("cli/")]


def test_below_the_command_line_no_message_names_an_option(below):
    docs = {id(node.value) for node in below if isinstance(node, ast.Expr)}
    texts = [n.value for n in below if isinstance(n, ast.Constant) and id(n) not in docs]
    assert [text for text in texts if re.search(r"(?<![\w(-])--[a-z]", str(text))] == []


def test_settings_in_messages_are_parameters_and_options(below):
    calls = [node for node in below if isinstance(node, ast.Call)]
    first = [call.args[0] for call in calls if ast.unparse(call.func) == "setting"]
    named = {each.value for each in first if isinstance(each, ast.Constant)} | {*OPTIONS}
    own = {node.arg for node in below if isinstance(node, ast.arg)}
    own |= {ast.unparse(node.target) for node in below if isinstance(node, ast.AnnAssign)}
    assert len(named) > 40
    assert named - own == set()
    commands = typer.main.get_command(app).commands.values()
    options = [each for command in commands for each in command.params]
    with called_from("command line"):
        assert {*map(setting, named)} <= {name for each in options for name in each.opts}
        # compare has a flag --scores, and --score
        of_table = [each for each in options if each.name in OPTIONS.keys() - {"scores"}]
        assert [each.name for each in of_table if setting(each.name) not in each.opts] == []


# Options that take a share, by what they are given with; others take any number.
OF_RULES = ("--min-precision", "--min-recall", "--max-fpr", "--prevalence")
SHARES = {
    "threshold m": (*OF_RULES, "--confidence"),
    "fit t.csv -t y -o m": (*OF_RULES, "--confidence", "--holdout"),
    "evaluate m t.csv": ("--missed-cases",),
    "hunt t.csv -t y -o h --rare 1": ("--share",),
    "review t.csv -t y -j j": ("--teaches", "--random"),
    "stream s.csv -t y --checkpoint c": (),
}
NO_SHARES = {"--half-life", "--threshold"}


@pytest.mark.parametrize("words", SHARES)
def test_a_percentage_in_place_of_a_share_is_told_the_share(words):
    for option in SHARES[words]:
        needed = ("--max-fpr", "0.1") if option == "--confidence" else ()
        for value in ("30", "3e1", "30%"):
            said = complaint(*words.split(), *needed, option, value)
            assert said.count(option) == 1, said
            assert f"{option} 3" in said, said
            assert said.endswith("Give 0.3 for 30%."), said


def test_every_option_of_a_share_is_tried():
    commands = typer.main.get_command(app).commands
    tried = {option for options in SHARES.values() for option in options}
    numbers = {
        each.opts[0]
        for command in commands.values()
        for each in command.params
        if each.metavar in ("<float>", "SHARE")
    }
    assert numbers - tried == NO_SHARES


def fit(**given):
    return read_training_set(open_rows(ROWS), FitSettings(**{"target": "fraud", **given}))


def review(folder, **given):
    return open_journal(folder / "j", read_review_table(ROWS, "fraud"), None, **given)


def learn(cells):
    frame = pl.DataFrame({"a": range(300), "c": cells}, strict=False)
    return RareClassifier(members=("logistic regression",)).fit(frame, [1, *[0] * 9] * 30)


@pytest.mark.parametrize("over_http", [False, True])
@pytest.mark.parametrize(
    "fault",
    [
        lambda _: fit(target=None),
        lambda _: fit(drop=("amont",)),
        lambda _: fit(keep=("items",), drop=("items",)),
        lambda _: fit(positive="fraudulent"),
        lambda _: learn(["x1", *map(str, range(299))]),
        lambda _: learn([f"{k * 1234.5:,.2f}" for k in range(300)]),
        lambda _: read_review_table(ROWS, "fraud", memory=1),
        lambda folder: review(folder, positive="yes", rest=("yes",)),
        lambda folder: check_folder(folder.parent, False),
        lambda _: parse_parameters("cbr", ["C"]),
    ],
)
def test_callers_of_python_and_http_read_no_options(tmp_path, fault, over_http):
    request = copy_context()
    if over_http:
        request.run(errors.called_by_http)
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            request.run(fault, tmp_path)
        except InputError as error:
            caught.append(error)
    assert caught
    assert [str(each) for each in caught if "--" in str(each)] == []


MOST_LINES, MOST_COLUMNS = 45, 80


def numbers(folder):
    X = np.random.default_rng(0).normal(size=(300, 20)).round(3)
    table = pl.DataFrame({f"x{k}": X[:, k] for k in range(20)})
    table.with_columns(y=(X[:, 0] + X[:, 1] > 2).astype(int)).write_csv(folder / "numbers.csv")
    return folder / "numbers.csv", "y"


def words(folder):
    table = purchases().with_columns(
        amount=pl.when(pl.int_range(240) % 7 == 0).then(None).otherwise(pl.col("amount")),
        leak=pl.col("fraud") == "yes",
        fraud=pl.when(pl.int_range(240) % 31 == 0).then(None).otherwise(pl.col("fraud")),
    )
    pl.concat([table, table[:40]]).write_csv(folder / "words.csv")
    return folder / "words.csv", "fraud"


def payments(folder):
    path = write_payments(folder, 0).train
    pl.read_csv(path)[:1500].write_csv(path)
    return path, "fraud"


def next_commands(text):
    lines = text[text.index("\nNext") :].replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("  rareclass ")]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("table", [payments, numbers, words])
def test_a_first_fit_is_short_and_names_commands_that_run(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(MOST_COLUMNS))
    path, target = table(Path())
    fitted = printed("fit", path, "--target", target, *QUICK, "--out", "model.rareclass")
    lines = fitted.splitlines()
    assert len(lines) <= MOST_LINES
    assert [line for line in lines if len(line) > MOST_COLUMNS] == []
    commands = next_commands(fitted)
    assert [command[0] for command in commands] == ["report", "threshold", "score"]
    for command in commands if table is words else []:
        run(*command)
    if table is words:
        assert Path("model.html").is_file()
        assert pl.read_csv("model_scores.csv").height == pl.read_csv(path).height


def test_details_have_what_the_short_form_leaves_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, target = numbers(Path())
    said = {}
    for option in ("--no-baseline", "--details"):
        words = ("-t", target, *QUICK, "-o", "m.rareclass", "--overwrite", option)
        said[option] = printed("fit", path, *words)
    short, details = said["--no-baseline"], said["--details"]
    assert "12 more" in short
    assert "x19" not in short
    assert all(f"\nx{k} " in details for k in range(20))
    assert "Weight" in details
    assert "Weight" not in short
    # The last lines, what was decided and where it is, are in both.
    assert next_commands(short) == next_commands(details)
    assert "\nSaved m.rareclass" in details


def test_commands_of_a_model_without_held_out_rows_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    purchases().write_csv("train.csv")
    quick = ("--method", "rankrc", "--lam", 0.1, "--holdout", 0)
    done = printed("fit", "train.csv", "-t", "fraud", *quick, "-o", "my model.rareclass")
    commands = next_commands(done)
    assert [command[0] for command in commands] == ["show", "evaluate", "score"]
    assert [invoke(*command).exit_code for command in commands] == [0, 0, 0]


@pytest.mark.parametrize("spare", [(), ("Verdict",), ("Measured", "Verdict")])
@pytest.mark.parametrize("folded", [(), ("Promised", "Measured")])
def test_no_character_of_a_table_is_lost_on_a_narrow_screen(spare, folded):
    """Columns are left out as a whole; the first two never are."""
    heads = ("Promise", "Rows", "Verdict", "Promised", "Measured")
    interval = "0.894 (0.809 to 0.943)"
    rows = [("Share of days over", "1,234", "cannot tell", interval, "0.1"), ("AUC", *"1234")]
    for width in range(16, 100, 3):
        shown = Console(width=width, file=StringIO())
        print_table(shown, heads, rows, spare=spare, folded=folded)
        text = shown.file.getvalue()
        there = [head in text.split("\n")[0].split() for head in heads]
        cells = "".join(chain(*(compress(row, there) for row in (heads, *rows))))
        assert sorted("".join(text.split())) == sorted("".join(cells.split()))
        assert there[:2] == [True, True]


@pytest.mark.parametrize("width", [10, 30, 80, 400])
def test_a_folded_command_is_the_command(width):
    command = "rareclass fit 'my table.csv' --target fraud --cost fp=1,fn=2 --out m.rareclass"
    lines = folded_command(command, width)
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == shlex.split(command)
    assert len(lines) == {10: 4, 30: 4, 80: 1, 400: 1}[width]


def test_another_threshold_is_one_that_the_command_takes():
    scores = np.arange(2000.0)
    for share in (1e-4, 0.001, 0.05, 0.5, 0.94, 0.951, 0.9996, 1.0):
        rule = replace(default_thresholds(scores >= 1000, scores)[0], alerts=share * 2000)
        option, value = _other_rule(rule)
        assert option in ("--alerts", "--min-recall")
        if option == "--alerts":
            alerts, rows = map(int, str(value).split("/"))
            assert ThresholdRule.max_alerts(alerts, rows=rows)
            assert alerts / rows == pytest.approx(share, rel=0.35)
