"""What the site is made of: nothing public is missing, every link leads somewhere."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.pages.registry import PAGES as BENCHMARKS
from docs.site_pages.command_reference import commands, section
from docs.site_pages.llms_text import markdown_pages, page_names, title_and_summary
from docs.site_pages.no_other_hosts import loaded_from_elsewhere
from docs.site_pages.public_names import own_members, public_names, reference
from rareclass.cli.app import app

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
    missing = [
        name for name in public_names(module.__name__) if id(getattr(module, name)) not in listed
    ]
    assert not missing


def test_every_name_of_the_reference_is_documented():
    for module, listed in reference().items():
        for name, value in listed:
            assert inspect.getdoc(value), f"{module}.{name}"


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
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in set(slugs(target)), f"{page.name}: {link}"


def test_every_page_is_in_the_contents_once():
    listed = [*page_names(DOCS / "index.md"), *page_names(DOCS / "method.md")]
    assert len(listed) == len(set(listed))
    written = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES}
    expected = {name for name in written if not name.startswith("decisions/")} - {"index"}
    assert {name for name in listed if not name.startswith("generated/")} == expected


def written(page):
    """A page, or the one that it includes."""
    included = re.match(r"```\{include\} (\S+)", page.read_text())
    return (page.parent / included[1] if included else page).read_text()


def test_llms_text_has_all_pages_with_a_sentence_each():
    pages = markdown_pages(DOCS)
    assert {"tutorial", "guide", "method", "method/rach", "changelog"} <= set(pages)
    for name in pages:
        title, summary = title_and_summary(DOCS / f"{name}.md")
        assert f"\n# {title}\n" in "\n" + written(DOCS / f"{name}.md"), name
        assert 10 < len(summary) < 400, (name, summary)


def test_pages_load_nothing_from_other_hosts():
    for page in [*PAGES, *(DOCS / "static").iterdir()]:
        assert not re.search(r"<(script|img|link|iframe)[^>]*https?:", page.read_text()), page
        assert not re.search(r"!\[[^\]]*\]\(https?:", page.read_text()), page
        assert not re.search(r"(url\(|@import)[\s\"']*https?:", page.read_text()), page


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
