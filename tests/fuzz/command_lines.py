"""Commands with arguments that nobody meant: options of the command itself, hostile values."""

from random import Random

import click
import typer.main

from fuzz import bases
from fuzz.commands import command
from fuzz.targets import Case
from rareclass.cli.command import app

_VALUES = (
    "", " ", "-", "--", "-1", "0", "1", "2", "3.5", "1e400", "nan", "inf", "-inf", "1e-320", "0.5",
    "99999999999999999999", "\u202e", "é", "a\nb", "'", '"; DROP TABLE x', "$(id)", "*", "{}", "[]",
    "fraud", "amount", "order", "country", "yes", "no", "tab", ";", "none", "auto", "local", "2^-4",
    "2^99999", "fraud=yes", "amount=3", "amount", "/", "/dev/null", "/dev/full", ".",
    "nowhere/x.csv", "x" * 5000, "http://127.0.0.1:1/x", "sqlite:///nowhere.db", "1GiB", "0B",
    "1h", "1s", "rare:1,rest:2", "fraud:5", "fp=1,fn=-2", "2024-01-01", "rankrc", "mibc", "oam",
)  # fmt: skip
# A command that serves, waits, learns on a cluster or takes minutes is no finding.
_NOT_GIVEN = {"--follow", "--help", "-h", "--install-completion", "--show-completion"}
_SLOW = {"demo", "compare", "report", "serve"}


def _commands():
    group = typer.main.get_command(app)
    assert isinstance(group, click.Group) or hasattr(group, "commands")
    return {name: each for name, each in group.commands.items() if name not in _SLOW}


def _value(rng, here, option):
    if rng.random() < 0.35:
        return rng.choice(_VALUES)
    names = [
        f"{here}/{name}" for name in ("rows.csv", "new.csv", "out.csv", "m.rareclass", "out", "x")
    ]
    return rng.choice([*names, *_VALUES[:20], "fraud", "amount"])


def words(number, here, model):
    rng = Random(f"command line {number}")
    name = rng.choice(sorted(_commands()))
    said = [name]
    if rng.random() < 0.9:
        first = {
            "fit": f"{here}/rows.csv",
            "hunt": f"{here}/hunt.csv",
            "stream": f"{here}/rows.csv",
        }
        said.append(first.get(name, model))
        if name in ("score", "evaluate"):
            said.append(f"{here}/rows.csv")
    usual = {
        "fit": ["--target", "fraud", "--out", f"{here}/m.rareclass", "--method", "rankrc",
                "--folds", "2", "--no-baseline"],
        "score": ["--out", f"{here}/out.csv"],
        "stream": ["--target", "fraud", "--checkpoint", f"{here}/run", "--learner", "oam"],
        "hunt": ["--target", "fraud", "--rare", "yes", "--cleared", "no", "-o", f"{here}/found",
                 "--kernel", "none", "--c1", "1", "--c2", "1e-3"],
        "threshold": ["--out", f"{here}/m2.rareclass"],
    }.get(name, [])  # fmt: skip
    if rng.random() < 0.9:
        said += usual
    options = [
        each for each in _commands()[name].params if getattr(each, "opts", [""])[0][0] == "-"
    ]
    for _ in range(rng.choice([1, 1, 2, 3])):
        option = rng.choice(options)
        spelt = rng.choice([*option.opts, *option.secondary_opts])
        if spelt in _NOT_GIVEN or {*option.opts} & _NOT_GIVEN:
            continue
        said.append(spelt)
        if not getattr(option, "is_flag", False) and rng.random() < 0.95:
            said.append(_value(rng, here, option))
    if rng.random() < 0.1:
        said.insert(rng.randrange(len(said) + 1), rng.choice(_VALUES))
    return said


def command_line_case(folder, number):
    """A command as somebody may type it, or a script with a hole in it."""
    model = bases.make_model(folder, "rankrc")
    files = {name: (folder / name).read_bytes() for name in ("rows.csv", "hunt.csv")}
    shown = " ".join(words(number, ".", "model.rareclass"))[:300]
    return Case(
        shown, files | {"model.rareclass": model.read_bytes()},
        lambda here: command(*words(number, str(here), str(here / "model.rareclass"))),
    )  # fmt: skip
