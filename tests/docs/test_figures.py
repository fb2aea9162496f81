"""Figures of README and written pages come from the results, and none is typed in."""

import re

import pytest

from benchmarks.figures import FIGURES, MARKED, ROOT, figure, filled, written_pages
from benchmarks.pages.page import Results
from benchmarks.pages.registry import PAGES

RESULTS = Results()
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text() for page in written_pages()}
MARKED_PAGES = [name for name, text in TEXTS.items() if MARKED.search(text)]
# A figure is a number with a decimal point, or a number with a unit of time, size or speed.
NUMBER = re.compile(
    r"(?<![\w.])\d*\.\d+(?![\w.]*\w)"
    r"|(?<![\w.,])\d[\d,]*\s(?:s|ms|seconds|minutes|hours|MiB|GiB|MB|GB|times)\b"
)
# What no benchmark measures: formulas, code, targets of links, versions and numbers of sections.
NO_FIGURES = re.compile(
    r"^```.*?^```$|\$\$.*?\$\$|\$[^$\n]+\$|`[^`]*`|(?<=\])\([^)]*\)"
    r"|\b(?:Python|OpenAPI|onnxruntime|Section)\s\d[\d.]*(?: (?:to|and) \d[\d.]*)?",
    re.MULTILINE | re.DOTALL,
)
# Numbers that are typed all the same, and why.
ALLOWED = {
    "README.md": {"60 s"},  # the time that the peers' budget in the table is
    "docs/index.md": {"15 minutes", "2.3"},  # promise of the tutorial; example of a score
    "docs/tutorial.md": {"0.1", "0.25", "0.5", "0.9", "15 minutes"},  # constants, options
    "docs/explanation/idea.md": {"99.9", "0.7"},  # made-up examples
    "docs/explanation/scores-to-decisions.md": {"0.3", "0.4", "0.5", "0.6"},  # made-up examples
    "docs/how-to/kernel-machine.md": {"0.002"},  # default of an option
    "docs/how-to/larger-than-memory.md": {"16 MiB"},  # constant of the code
    "docs/how-to/late-labels-and-drift.md": {"0.25"},  # constant of the code
    "docs/how-to/monitor.md": {"0.1", "0.25"},  # constants of the code
    "docs/how-to/ordered-classes.md": {"0.167"},  # 1 / 3!
    "docs/how-to/serve.md": {"16 MiB"},  # default of an option
    "docs/method/rankrc.md": {"4 MiB"},  # constant of the code
    "docs/reference/glossary.md": {"0.1", "0.25"},  # constants of the code
    "docs/reference/http.md": {"0.25"},  # constant of the code
    "docs/reference/scores.md": {"2.3", "99.5", "99.9", "99.99"},  # arithmetic of a score
    "docs/reference/what-is-read.md": {"234.5", "1.234"},  # examples of cells
    # bounds that the tests named beside them hold
    "docs/reliability.md": {"1,032 times", "2 GiB", "20 times"},
}


def typed_in(text):
    return set(NUMBER.findall(NO_FIGURES.sub("", MARKED.sub("", text))))


@pytest.mark.parametrize("name", TEXTS)
def test_only_allowed_figures_are_typed_in(name):
    """Put it between marks and name it in benchmarks/figures.py, or say it without a number."""
    assert typed_in(TEXTS[name]) == ALLOWED.get(name, set())


# Pages that compare, words that set one thing above another, and what stands beside them.
COMPARING = ("README.md", "docs/how-good.md", "docs/reproduction.md")
COMPARATIVE = re.compile(r"\b(?:first|ahead|best|better|beats?|faster)\b", re.IGNORECASE)
TESTED = re.compile(r"\bp [=<] \d|\bsignificant|\blevel\b|\bnot tested\b|±")
# The same words in another sense.
NO_COMPARISON = r"a first model|rows first|the first and|features first|1 is best|best quality"


def untested(text):
    pairs = zip(text.splitlines(), re.sub(NO_COMPARISON, "", text).splitlines(), strict=True)
    return [line for line, bare in pairs if COMPARATIVE.search(bare) and not TESTED.search(line)]


@pytest.mark.parametrize("name", COMPARING)
def test_a_comparison_has_its_test_in_the_same_line(name):
    assert untested(TEXTS[name]) == [], "p-value, significant, level, or not tested"


def test_comparisons_without_a_test_are_found():
    bare = "A is ahead of B.\n| A beats B | 3 of 4 |\nBest of 7 peers, p. 3, at this levels"
    tested = "A is ahead (p = 0.01).\n| A is level with the best |\nFit a first model."
    assert untested(f"{bare}\n{tested}") == bare.splitlines()


def test_typed_in_figures_are_found():
    text = (
        "AUC .931 in 1.4 s, `0.5` is code, <!--figure x-->0.7<!--/figure-->, for 191 s, 856 MiB; "
        "Python 3.11, $\\eta = 0.7$, Section 7.2\n\n```\n0.25\n```\n"
    )
    assert typed_in(text) == {".931", "1.4", "191 s", "856 MiB"}


@pytest.mark.parametrize("name", MARKED_PAGES)
def test_a_page_has_the_figures_of_the_results_in_marks_that_are_formatted(name):
    """A line that begins with a comment is HTML to Markdown, and its text is not formatted."""
    assert TEXTS[name] == filled(TEXTS[name], RESULTS), "run `python -m benchmarks.figures`"
    for line in TEXTS[name].splitlines():
        if line.lstrip("->* ").startswith("<!--figure") or line.lstrip().startswith("<!--/"):
            assert re.fullmatch(r"<!--(/figure|figure [\w.-]+)-->", line), line


def test_every_figure_is_on_a_page_and_has_a_value_and_a_name_of_its_own():
    named = {found[2] for text in TEXTS.values() for found in MARKED.finditer(text)}
    assert {name for name in FIGURES if not name.startswith("boosters.")} <= named
    assert not set(FIGURES) & set(PAGES)
    for name in FIGURES:
        assert re.search(r"\w", figure(name, RESULTS)), name
    with pytest.raises(SystemExit, match="no-such"):
        figure("no-such", RESULTS)


def test_rows_of_how_good_differ():
    """Two claims about the same tables with the same figures are one."""
    rows = [line.split(" | ")[1:3] for line in figure("table.how-good", RESULTS).splitlines()]
    figures = [tuple(row) for row in rows if any(re.search(r"\w", cell) for cell in row)]
    assert len(figures) == len(set(figures)) > 20


def test_marks_are_filled_in_and_the_rest_of_a_page_stays():
    text = "As fast <!--figure river.times-->9<!--/figure-->.\n<!--figure table.tabular-->\n"
    text += "<!--/figure-->\nEnd.\n"
    new = filled(text, RESULTS)
    assert f"<!--figure river.times-->{figure('river.times', RESULTS)}<!--/" in new
    assert "<!--figure table.tabular-->\n\n| method | " in new
    assert new.endswith(" |\n\n<!--/figure-->\nEnd.\n")
    assert filled(new, RESULTS) == new
