"""Messages name settings as their caller gives them."""

import ast
import re
import warnings
from contextvars import copy_context

import polars as pl
import pytest
import typer

from command_line import complaint
from made_tables import purchases
from rareclass import RareClassifier, errors
from rareclass.cli.app import app
from rareclass.errors import OPTIONS, InputError, called_from, setting
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
