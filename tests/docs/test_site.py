"""What the site is made of: nothing public is missing, every link leads somewhere."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.pages.registry import PAGES as BENCHMARKS
from docs.site_pages.command_reference import commands, section
from docs.site_pages.kinds import ERRORS, FINDINGS, write_kinds
from docs.site_pages.links import broken_links
from docs.site_pages.llms_text import listed_pages, markdown_pages, page_names, title_and_summary
from docs.site_pages.no_other_hosts import loaded_from_elsewhere
from docs.site_pages.public_names import own_members, public_names, reference
from rareclass.cli.command import app
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "generated" not in page.parts)
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *PAGES]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ROOMS = sorted(
    path.parent.name
    for path in (ROOT / "src" / "rareclass").glob("*/__init__.py")
    if "__all__" in path.read_text()
)


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_reference(room):
    listed = {id(value) for each in reference().values() for _, value in each}
    module = import_module(f"rareclass.{room}")
    for name in public_names(module.__name__):
        assert id(getattr(module, name)) in listed, name


def test_every_name_of_the_reference_is_documented():
    named = [(f"{module}.{name}", it) for module, own in reference().items() for name, it in own]
    assert [name for name, value in named if not inspect.getdoc(value)] == []


def test_methods_of_a_base_class_of_ours_are_among_the_members():
    members = own_members(import_module("rareclass").RankRC)
    assert {"fit", "score_samples", "transform", "stability_bound"} <= set(members)
    assert "get_params" not in members  # scikit-learn's


@pytest.mark.sampled(5)
@pytest.mark.parametrize("verb", list(commands()))
def test_every_option_of_the_help_page_is_in_the_command_reference(verb):
    words = [*verb.split(), "--help"]
    shown = CliRunner(env={"COLUMNS": "300"}).invoke(app, words).output
    options = set(re.findall(r"^\W*(--[a-z][a-z-]*)", shown, re.MULTILINE)) - {"--help"}
    text = section(verb, commands()[verb])
    assert options
    assert {option for option in options if option not in text} == set()


def slugs(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        yield words.replace(" ", "-")


# Pages that the build makes, and that links of written pages may name.
GENERATED = {"index", "commands", "kinds"}


@pytest.mark.parametrize("page", FILES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", page.read_text())):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if target.parent == DOCS / "generated" / "benchmarks":
            assert target.stem in {"index", *BENCHMARKS}, f"{page.name}: {link}"
            continue
        if "generated" in target.parts:
            assert target.name.removesuffix(".md") in GENERATED, f"{page.name}: {link}"
            continue
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in set(slugs(target)), f"{page.name}: {link}"


PARTS = ("tutorial", "how-to", "reference", "explanation")


def test_the_contents_have_four_parts_in_order_and_every_page_once():
    assert page_names(DOCS / "index.md") == [*PARTS]
    listed = listed_pages(DOCS)
    assert len(listed) == len(set(listed))
    written = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES}
    expected = {name for name in written if not name.startswith("decisions/")} - {"index"}
    ours = {name for name in listed if not name.startswith(("generated/", "decisions/"))}
    assert ours == expected
    assert page_names(DOCS / "decisions.md")


MOST_LINES = 250
MADE = re.compile(r"^Made by `python -m |^<!-- what is read as what: made by", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_is_short_enough_to_read(page):
    text = page.read_text()
    assert text.count("\n") <= MOST_LINES or MADE.search(text)


@pytest.mark.parametrize("part", ["how-to", "reference", "explanation"])
def test_a_page_begins_with_who_needs_it(part):
    for page in sorted((DOCS / part).glob("*.md")):
        first = re.split(r"\n\s*\n", page.read_text())[1]
        assert first.startswith("For "), page.name
        assert len(first) > 80, page.name


def test_every_kind_of_finding_and_error_is_on_its_page(tmp_path):
    assert set(FINDINGS) == set(FindingKind)
    assert set(ERRORS) == set(ErrorKind)
    write_kinds(tmp_path)
    text = (tmp_path / "kinds.md").read_text()
    assert all(f"| {kind.value} |" in text for kind in [*FindingKind, *ErrorKind])


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#there">x</a><p id="here"></p>')
    (tmp_path / "b.html").write_text('<p id="there"></p><a href="a.html#here">x</a>')
    assert broken_links(tmp_path) == []
    (tmp_path / "b.html").write_text('<a href="a.html#gone"></a><img src="no.png">')
    assert broken_links(tmp_path) == [
        "a.html: b.html#there", "b.html: a.html#gone", "b.html: no.png",
    ]  # fmt: skip


def test_llms_text_has_all_pages_with_a_sentence_each():
    pages = markdown_pages(DOCS)
    assert {*PARTS, "how-to/train", "method", "method/rach", "changelog"} <= set(pages)
    for name in pages:
        title, summary = title_and_summary(DOCS / f"{name}.md")
        page = DOCS / f"{name}.md"
        included = re.match(r"```\{include\} (\S+)", page.read_text())
        text = (page.parent / included[1] if included else page).read_text()
        assert f"\n# {title}\n" in "\n" + text, name
        assert 10 < len(summary) < 400, (name, summary)


def test_pages_load_nothing_from_other_hosts():
    for page in [*PAGES, *(DOCS / "static").glob("*.css")]:
        loaded = r"<(script|img|link|iframe)[^>]*|!\[[^\]]*\]\(|(url\(|@import)[\s\"']*"
        assert not re.search(rf"({loaded})https?:", page.read_text()), page


@pytest.mark.parametrize(
    ("name", "text", "is_found"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script>', True),
        ("a.html", '<link rel="stylesheet" href="//fonts.example/x.css">', True),
        ("a.html", '<img alt="" src="http://example.org/x.png">', True),
        ("a.html", '<a href="https://example.org">x</a><img src="x.png">', False),
        ("a.css", "p { background: url(https://example.org/x.png) }", True),
        ("a.css", '@import "//fonts.example/x.css";', True),
        ("a.css", "p { background: url(x.png) }", False),
    ],
)
def test_what_is_loaded_from_elsewhere_is_found(tmp_path, name, text, is_found):
    (tmp_path / name).write_text(text)
    assert bool(loaded_from_elsewhere(tmp_path)) == is_found
