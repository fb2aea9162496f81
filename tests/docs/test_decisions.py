"""Decision notes are short and of one form; every note and test that a page names exists."""

import re
from pathlib import Path

import pytest

from docs.site_pages.llms_text import page_names

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NOTES = sorted((DOCS / "decisions").glob("*.md"))
SECTIONS = ["Context", "Decision", "Evidence", "Consequences and limits"]
MOST_LINES, WIDEST = 60, 125
# A note's number where text names it: its file, "docs/decisions/0005 and 0029", "decision 0005",
# or a link "[0005](...)".
NAMED = re.compile(
    r"decisions/(\d{4}(?:(?:,| and)\s+\d{4})*)|[Dd]ecisions? [(\[]*(0\d{3})|\[(0\d{3})\]\("
)
# A benchmark whose code is gone: its results, and the last commit that had it.
STORED = re.compile(
    r"`benchmarks/results/(\w+)\.json`[^`]*?,\s+by\s+`benchmarks[^`]*`\s+of\s+[0-9a-f]{8}\b"
)
FOLDERS = ("src", "tests", "benchmarks", "tools", "docs")


def numbers(text):
    return {
        number for found in NAMED.findall(text) for number in re.findall(r"\d{4}", " ".join(found))
    }


def texts():
    yield from ROOT.glob("*.md")
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            is_made = "generated" in path.parts or path == Path(__file__)
            if path.suffix in (".py", ".md", ".toml") and not is_made:
                yield path


def sections(note):
    parts = re.split(r"^## (.*)$", note.read_text(), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.stem)
def test_a_note_is_short_and_has_the_form(note):
    lines = note.read_text().splitlines()
    assert len(lines) <= MOST_LINES
    assert not [line for line in lines if len(line) > WIDEST and not line.startswith("|")]
    assert re.match(rf"# {note.stem[:4]} \S", lines[0])
    assert list(sections(note)) == SECTIONS
    evidence = sections(note)["Evidence"]
    assert len(re.findall(r"^\|-.*\|$", evidence, flags=re.MULTILINE)) == 1, "one table"
    has_command = re.search(r"`(python -m|make) \S|`{3}python", evidence)
    assert has_command or STORED.search(evidence), "the command that prints it, or its results"


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.stem)
def test_benchmarks_and_tests_that_a_note_names_exist(note):
    text = note.read_text()
    for module in re.findall(r"python -m (benchmarks[\w.]*)", text):
        place = ROOT / module.replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), module
    results = re.findall(r"benchmarks/results/\w+\.json", text)
    assert not [path for path in results if not (ROOT / path).exists()]
    tests = {found.rstrip("/.") for found in re.findall(r"tests/[\w/.]+", text)}
    assert not [path for path in tests if not (ROOT / path).exists()]
    if names := set(re.findall(r"`(test_\w+)`", text)):
        written = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
        assert not [name for name in names if f"def {name}(" not in written]


def test_each_note_is_in_the_index_once_under_a_topic_and_those_named_exist():
    index = DOCS / "decisions.md"
    assert sorted(page_names(index)) == [f"decisions/{note.stem}" for note in NOTES]
    assert "{toctree}" not in index.read_text().partition("\n## ")[0]
    known = {note.stem[:4] for note in NOTES}
    assert len(known) == len(NOTES)
    named = {
        (str(path.relative_to(ROOT)), number)
        for path in texts()
        for number in numbers(path.read_text())
        if number not in known
    }
    assert named == set()


def test_numbers_are_found_in_text():
    text = """(docs/decisions/0011, 0042), [decision 0036](x), decisions [0028](y) and [0066](z).
    docs/decisions/0005 and
    0029; dates such as 2024-0015 and 0000-00-00 are none."""
    assert numbers(text) == {"0011", "0042", "0036", "0028", "0066", "0005", "0029"}


def test_the_tests_that_show_a_promise_are_there():
    text = (ROOT / "docs" / "reliability.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(named) > 20
    for path, test in named:
        assert f"def {test}(" in (ROOT / path).read_text(), f"{path}::{test}"
