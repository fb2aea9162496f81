"""A page is one file: nothing is fetched, nothing from a table becomes markup, nothing is twice."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from command_line import says
from rareclass.metrics import interval
from rareclass.report.columns_and_rows import ImportanceDisplay
from rareclass.report.curves import cost_section, ranking_section, threshold_section
from rareclass.report.page import FactList, KeyFigure, Note, ReportPage, Section, rendered
from rareclass.report.scores_section import (
    ReliabilityDisplay,
    ScoreDistributionDisplay,
    scores_section,
)
from rareclass.report.subgroups import Subgroups, subgroups_section
from rareclass.report.threshold_table import ThresholdTable
from rareclass.table_block import TableBlock

EVIL = "</script><img src=x onerror=alert(1)>"
_VOID = {"meta", "link", "input", "img", "br"}


class InputSummary(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []
        self.ids = []
        self.attributes = []
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in _VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name == "id":
                self.ids.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in _VOID:
            assert self.open.pop() == tag


def judged(n=3000):
    generator = np.random.default_rng(0)
    y = generator.random(n) < 0.03
    scores = np.round(generator.normal(size=n) + 2.5 * y, 4)
    probabilities = 1 / (1 + np.exp(5 - 2 * scores))
    day = generator.integers(0, 9, n)
    table = ThresholdTable.of(y, scores, own=2.0, time=day, costs={"fp": 1.0, "fn": 9.0})
    cells = TableBlock(EVIL, ("a", "b"), (("1", EVIL),))
    blocks = FactList((("a", EVIL),)), Note(EVIL), cells
    sections = (
        threshold_section(table, EVIL, "rest", "a rule", f"rareclass {EVIL} {{threshold}}"),
        ranking_section(
            table, interval("roc_auc", y, scores), interval("average_precision", y, scores)
        ),
        scores_section(
            ScoreDistributionDisplay.of(y, scores, threshold=2.0),
            ReliabilityDisplay.of(y, probabilities),
        ),
        cost_section(table),
        subgroups_section(Subgroups.of("day", day, y, scores, 2.0, in_order=True), None),
        Section("data", EVIL, "", blocks),
    )
    return ReportPage(
        f"Finding {EVIL}", EVIL, EVIL, (KeyFigure("a", "1", EVIL),), sections, "Made."
    )


@pytest.fixture(scope="module")
def report():
    return judged()


@pytest.fixture(scope="module")
def page(report):
    return rendered(report)


@pytest.fixture(scope="module")
def seen(page):
    found = InputSummary()
    found.feed(page)
    return found


@pytest.mark.sampled(0)
def test_it_is_the_same_every_time_and_small(report, page):
    table = report.section("threshold").blocks[0].table
    assert cost_section(table) == report.section("cost")
    assert rendered(report) == page
    assert len(page.encode()) < 350_000
    cells = report.section("data").blocks[-1]
    assert cells.numeric is cells.numeric  # a page asks for it at each cell


def test_nothing_is_fetched(page, seen):
    assert seen.open == []
    assert "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'" in page
    for tag, name, value in seen.attributes:
        if name in ("src", "href", "action", "srcset", "data", "poster"):
            assert value.startswith(("#", "data:,")), (tag, name, value)
    addresses = set(re.findall(r"https?://[\w./-]+", page))
    assert addresses <= {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", page)
    assert "@import" not in page


def test_what_a_table_holds_is_text(seen):
    assert "img" not in seen.tags
    assert seen.tags.count("script") == 2
    assert "onerror" not in {name for _, name, _ in seen.attributes}


def test_a_column_may_be_called_anything():
    svg = ImportanceDisplay({"$\\frac{": 0.5, "a_$b$": 0.2, "<b>": 0.1}).on_page().svg
    says(svg, "$\\frac{</text>", "a_$b$</text>", "&lt;b&gt;</text>")


def test_names_are_unique_and_what_they_refer_to_is_there(page, seen):
    assert len(seen.ids) == len(set(seen.ids))
    for _, name, value in seen.attributes:
        if name in ("aria-labelledby", "for"):
            assert set(value.split()) <= set(seen.ids)
        if name in ("href", "xlink:href") and value.startswith("#"):
            assert value[1:] in seen.ids, value
    for name in re.findall(r"url\(#([\w-]+)\)", page):
        assert name in seen.ids


def test_every_plot_has_a_title_a_description_and_its_numbers(page):
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(plots) == 8
    for plot in plots:
        assert re.search(r'role="img" aria-labelledby="([\w-]+)-title \1-desc"', plot)
        assert "<title" in plot
        assert re.search(r"<desc[^>]*>[^<]{20}", plot)
        assert "<text" in plot  # searched and read, no outlines of letters
        # Colours are the page's, so that a theme changes them.
        assert not re.search(r"#[0-9a-f]{6}", plot, re.IGNORECASE)
    assert page.count("<details>") == 8  # the curves against alerts have ten thresholds


def test_without_javascript_the_own_threshold_and_ten_more_are_there(report, page):
    table = report.section("threshold").blocks[0].table
    k = table.own
    assert f'<b id="o-tp">{table.hits[k]:.0f}</b>' in page
    ten = re.search(r"<caption>Ten thresholds.*?</table>", page, re.DOTALL)[0]
    assert 9 <= ten.count("<tr>") - 1 <= 12
    assert "(the model" in ten
    assert '<div class="controls" hidden>' in page


def test_the_data_of_the_slider_is_the_table(report, page):
    data = json.loads(re.search(r'id="thresholds">(.*?)</script>', page, re.DOTALL)[1])
    table = report.section("threshold").blocks[0].table
    assert data["threshold"] == table.thresholds.tolist()
    assert data["hits"] == table.hits.tolist()
    assert data["false_alerts"] == table.false_alerts.tolist()
    assert data["own"] == table.own
    low = np.round(table.precision.low * data["scale"])
    assert data["precision_low"] == low.tolist()


@pytest.mark.thorough
def test_any_number_of_rows_and_groups_stays_below_half_a_megabyte():
    generator = np.random.default_rng(1)
    n = 60_000
    y = generator.random(n) < 0.02
    scores = generator.normal(size=n) + 2 * y
    names = generator.integers(0, 30_000, n)
    report = judged(n)
    parts = subgroups_section(None, Subgroups.of("customer", names, y, scores, 2.0))
    whole = ReportPage("a", "b", "c", (), (*report.sections[:4], parts), "d")
    assert len(rendered(whole).encode()) < 400_000
