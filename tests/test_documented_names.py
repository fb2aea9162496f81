"""Every name that README and the documentation have can be imported from where they have it."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FOLDERS = (".", "how-to", "reference", "explanation", "method")
PAGES = sorted(
    [ROOT / "README.md", *(page for each in FOLDERS for page in (DOCS / each).glob("*.md"))]
)
IMPORT = re.compile(r"^\s*(?:>>> )?from (rareclass[\w.]*) import (\([^)]*\)|[^\n(]+)", re.MULTILINE)
MENTION = re.compile(r"`(rareclass(?:\.\w+)+)`")
# Once documented there, and so for good.
KEPT = [
    ("rareclass.stream.log", "read_log"),
    ("rareclass.stream.log", "read_scores"),
    ("rareclass.online.state", "flatten"),
    ("rareclass.ranking.losses", "PNormPush"),
]


def names_of(page):
    text = page.read_text()
    for module, listed in IMPORT.findall(text):
        listed = re.sub(r"#.*", "", listed)
        for name in re.split(r"[,\s]+", listed.strip("() \n")):
            if name:
                yield module, name
    for dotted in MENTION.findall(text):
        yield tuple(dotted.rsplit(".", 1))


NAMES = sorted({pair for page in PAGES for pair in names_of(page)} | set(KEPT))


def test_there_are_some():
    assert len(NAMES) > 25
    assert ("rareclass.rows", "from_table") in NAMES


@pytest.mark.parametrize(("module", "name"), NAMES, ids=".".join)
def test_it_is_there(module, name):
    try:
        found = hasattr(import_module(module), name)
    except ModuleNotFoundError:  # a parameter or attribute: a class before the last dot
        module, kind = module.rsplit(".", 1)
        found = hasattr(getattr(import_module(module), kind), name)
    if not found:
        import_module(f"{module}.{name}")
