"""Pages of the results: what each begins with, what none leaves out, charts of either theme."""

import re
import shutil
from xml.etree import ElementTree

import pytest

from benchmarks import record
from benchmarks.figures import ROOT
from benchmarks.pages import charts
from benchmarks.pages.__main__ import FOLDER as GENERATED
from benchmarks.pages.__main__ import main
from benchmarks.pages.page import GROUPS, Finding, Results
from benchmarks.pages.registry import PAGES, index_text, page_text, there, write_pages

NOTES = "".join(note.read_text() for note in sorted((ROOT / "docs/decisions").glob("*.md")))
RESULTS = Results()
CHARTS = [name for name, page in PAGES.items() if page.chart]


def test_every_file_of_results_has_a_page_or_a_decision_that_names_it():
    shown = {source for page in PAGES.values() for source in page.sources}
    files = {path.stem for path in record.RESULTS.glob("*.json")}
    assert shown <= files
    assert files - shown <= set(re.findall(r"benchmarks(?:/results/|\.)(\w+)", NOTES))
    assert {page.group for page in PAGES.values()} == set(GROUPS)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", list(PAGES))
def test_a_page_says_what_is_compared_what_was_found_and_how_to_run_it(name):
    page, finding = PAGES[name], RESULTS.finding(name, PAGES[name])
    title, opening, *rest = page_text(name, RESULTS, with_chart=False).split("\n\n")
    assert title == f"# {page.title}"
    assert opening.startswith(page.compared)
    assert finding.sentence in opening
    assert f"`{page.whole_command}`" in opening
    assert re.search(r"\d", finding.ours), "a finding has a figure"
    assert any("|" in part for part in rest), "a page has a table"
    assert faults_of("\n\n".join([title, opening, *rest])) == []


def test_the_index_names_every_page():
    text = index_text(RESULTS)
    assert faults_of(text) == []
    assert set(re.findall(r"\]\((\w+)\.md\)", text)) == set(PAGES)


def faults_of(text):
    """Name what Sphinx would warn of, or show wrongly: `make docs` takes a warning for an error."""
    faults, level, cells, is_code = [], 0, None, False
    for line in text.splitlines():
        is_code ^= line.startswith("```")
        heading = re.match(r"#+(?= )", line)
        if heading and not is_code:
            faults += [f"a level is left out: {line}"] if len(heading[0]) > level + 1 else []
            level = len(heading[0])
        own = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else None
        faults += [f"a cell too many or too few: {line}"] if own and cells and own != cells else []
        cells = own
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
            is_page = (GENERATED / target).resolve().is_file() or target.removesuffix(
                ".md"
            ) in PAGES
            faults += [] if "://" in target or is_page else [f"leads nowhere: {target}"]
    return faults + (["a block of code without an end"] if is_code else [])


def test_faults_of_a_page_are_seen():
    text = "# Title\n\n### Too deep\n\n[x](gone.md)\n\n| a | b |\n| --- | --- |\n| 1 |\n\n```text\n"
    assert len(faults_of(text)) == 4


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_drawn_of_the_results(name):
    figure = PAGES[name].chart(RESULTS.of(PAGES[name]))
    assert any(axis.has_data() for axis in figure.axes)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_takes_the_colours_of_the_page(name):
    text = page_text(name, RESULTS)
    assert not re.search(r"#000000|#ffffff|\bwhite\b", text)
    drawn = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert drawn
    for chart in drawn:
        root = ElementTree.fromstring(re.sub(r"xlink:|<!--.*?-->", "", chart, flags=re.DOTALL))
        assert root.get("role") == "img"
        colours = {colour for words, colour in words_and_colours(root) if words}
        assert colours == {"var(--pst-color-text-base)"}


def words_and_colours(node, colour=None):
    """Yield the words of each part of a chart, and the colour that they have or inherit."""
    fill = re.search(r"fill: ([^;]+)", node.get("style", ""))
    colour = fill[1] if fill else node.get("fill", colour)
    if node.tag.endswith(("text", "tspan")):
        yield (node.text or "").strip(), colour
    for part in node:
        yield from words_and_colours(part, colour)


def test_the_legend_names_lines_of_any_panel():
    panels = {"one": {"a": ([1, 2], [1, 2])}, "two": {"a": ([1, 2], [1, 2]), "b": ([1, 2], [2, 1])}}
    drawn = charts.svg(charts.lines(panels, "x", "y"), "words")
    assert [drawn.count(f">{name}</text>") for name in "ab"] == [1, 1]


def test_a_chart_is_the_same_each_time():
    drawn = [charts.svg(charts.bars(["a", "b"], {"x": [1.0, 2.0]}, "seconds"), "x") for _ in "ab"]
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) < 20_000


def test_only_pages_of_files_that_are_there_are_written(tmp_path):
    for name in ("serving", "mibc_speed"):
        shutil.copy(record.RESULTS / f"{name}.json", tmp_path)
    results = Results(tmp_path)
    assert set(there(results)) == {"serving", "mibc_speed"}
    index = index_text(results)
    assert f"## {GROUPS['speed']}" in index
    assert f"## {GROUPS['tables']}" not in index
    assert "(serving.md)" in index
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "gone.md").write_text("# Of a benchmark that left")
    assert sorted(write_pages(folder, results)) == ["index", "mibc_speed", "serving"]
    assert sorted(path.stem for path in folder.iterdir()) == ["index", "mibc_speed", "serving"]


def test_the_command_prints_a_page(capsys, tmp_path):
    assert main(["serving"]) == 0
    assert capsys.readouterr().out.startswith(f"# {PAGES['serving'].title}")
    assert main(["serving", "--results", str(tmp_path)]) == 1


def test_a_finding_without_a_peer_has_no_second_part():
    assert Finding("Seconds", "1.5 s").sentence == "Seconds: 1.5 s"
    assert Finding("Seconds", "1.5 s", "peer 2 s").sentence == "Seconds: 1.5 s; peer 2 s"
