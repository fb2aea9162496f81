"""Commands on the pages: known to the command line, and printed outputs that are of this code."""

import re
import shlex

import pytest
import typer

from docs.site_pages.printed_outputs import (
    DOCS,
    Terminal,
    fresh_text,
    labels,
    likeness,
    made_demo,
    pages,
    shown_on,
    start_folder,
)
from rareclass.cli.command import app

_FENCE = re.compile(r"^```(?:console|sh)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WRITTEN = sorted([*DOCS.glob("*.md"), *DOCS.glob("how-to/*.md"), *DOCS.glob("reference/*.md")])


def commands_on(page):
    for block in _FENCE.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").split("\n"):
            line = line.removeprefix("$ ").partition("  #")[0]
            if line.startswith("rareclass "):
                words = shlex.split(re.split(r" (?:\||>|&&) ?", line)[0])
                if not {"COMMAND", "..."} & set(words):  # the form of a command, not a whole one
                    yield words[1:]


ALL = [(page, words) for page in WRITTEN for words in commands_on(page)]


def test_there_are_commands_on_the_pages():
    assert len(ALL) > 40
    assert {"tutorial", "alert-budget", "few-labels"} <= {page.stem for page in pages()}


@pytest.mark.parametrize("page", sorted({page for page, _ in ALL}), ids=lambda page: page.stem)
def test_every_command_is_one_that_the_command_line_takes(page):
    command = typer.main.get_command(app)
    for each, words in ALL:
        if each == page:
            verb, *rest = words
            command.commands[verb].make_context(verb, rest)


def test_outputs_are_alike_by_structure_and_not_by_digits():
    old = ["Scored 14,098 rows; 342 (2.43%) are above", "AUC  0.862  0.819 to 0.896", "Saved a.csv"]
    new = ["Scored 9 rows; 1 (2.43%) are above", "AUC  0.1  0.0 to 0.2", "Saved a.csv"]
    assert likeness(old, new) == 1.0
    assert likeness(old, [*new, "Note: another line", "And one more"]) < 0.7
    assert labels(["a", "  indented words"]) == set()


def test_a_page_is_written_anew(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("A word.\n\n```console\n$ echo one; echo two\nold\n```\n")
    (tmp_path / "folder").mkdir()
    assert fresh_text(page, Terminal(tmp_path / "folder")) == (
        "A word.\n\n```console\n$ echo one; echo two\none\ntwo\n```\n"
    )
    page.write_text("```console\n$ exit 2\n```\n")
    with pytest.raises(RuntimeError, match="ended with 2"):
        fresh_text(page, Terminal(tmp_path / "folder"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return made_demo(tmp_path_factory.mktemp("demo"))


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_printed_outputs_are_those_of_the_code(page, demo, tmp_path):
    folder = start_folder(page, tmp_path, None if page.stem == "tutorial" else demo)
    fresh = tmp_path / "fresh.md"
    fresh.write_text(fresh_text(page, Terminal(folder)), encoding="utf-8")
    for old, new in zip(shown_on(page), shown_on(fresh), strict=True):
        assert likeness(old.output, new.output) >= 0.7, f"make outputs: {old.command}"
