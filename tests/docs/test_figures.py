"""Figures of README and written pages come from the results, and none is typed in."""

import re

import pytest

from benchmarks.figures import FIGURES, MARKED, ROOT, WRITTEN, figure, filled
from benchmarks.pages.page import Results
from benchmarks.pages.registry import PAGES

RESULTS = Results()
# Versions, names of things and promises of the tutorial: constants, not measurements.
ALLOWED = {"3.11", "3.13", "2.3", "15 minutes", "60 s"}
NUMBER = re.compile(
    r"(?<![\w.])\d*\.\d+(?![\w.]*\w)"  # with a decimal point
    r"|(?<![\w.,])\d[\d,]*\s(?:s|ms|seconds|minutes|hours|MiB|GiB|MB|GB|times)\b"
)


def typed_in(text):
    """Figures outside code and outside the marks that the command fills in."""
    text = MARKED.sub("", text)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "", text)
    return set(NUMBER.findall(re.sub(r"\]\([^)]*\)", "]", text))) - ALLOWED


@pytest.mark.parametrize("name", WRITTEN)
def test_no_figure_is_typed_in(name):
    found = typed_in((ROOT / name).read_text())
    assert not found, "put it between marks and name it in benchmarks/figures.py"


def test_typed_in_figures_are_found():
    text = (
        "AUC .931 in 1.4 s, `0.5` is code, <!--figure x-->0.7<!--/figure-->, for 191 s, 856 MiB; "
        "Python 3.11\n\n```\n0.25\n```\n"
    )
    assert typed_in(text) == {".931", "1.4", "191 s", "856 MiB"}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_page_has_the_figures_that_the_results_have(name):
    text = (ROOT / name).read_text()
    assert text == filled(text, RESULTS), "run `python -m benchmarks.figures`"


@pytest.mark.parametrize("name", WRITTEN)
def test_a_mark_stands_within_a_line_or_alone_on_one(name):
    """A line that begins with a comment is HTML to Markdown, and its text is not formatted."""
    for line in (ROOT / name).read_text().splitlines():
        if line.lstrip("->* ").startswith("<!--figure") or line.lstrip().startswith("<!--/"):
            assert re.fullmatch(r"<!--(/figure|figure [\w.-]+)-->", line), line


def test_every_figure_has_a_value_and_a_name_of_its_own():
    assert not set(FIGURES) & set(PAGES)
    for name in FIGURES:
        assert re.search(r"\w", figure(name, RESULTS)), name
    with pytest.raises(SystemExit, match="no-such"):
        figure("no-such", RESULTS)


def test_marks_are_filled_in_and_the_rest_of_a_page_stays():
    text = "Fits <!--figure libsvm.seconds-->9 s<!--/figure-->.\n<!--figure table.tabular-->\n"
    text += "<!--/figure-->\nEnd.\n"
    new = filled(text, RESULTS)
    assert f"Fits <!--figure libsvm.seconds-->{figure('libsvm.seconds', RESULTS)}<!--/" in new
    assert "<!--figure table.tabular-->\n\n| method | " in new
    assert new.endswith(" |\n\n<!--/figure-->\nEnd.\n")
    assert filled(new, RESULTS) == new
