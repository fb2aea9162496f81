"""A report page: its parts as plain data, numbers in the words of a reader, and the one HTML file.

The file makes no requests, is readable without JavaScript, and is equal for equal reports.
"""

import math
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any, NamedTuple

from rareclass.errors import needed_for
from rareclass.metrics.intervals import Interval
from rareclass.table_block import TableBlock

SPACE = "\u00a0"
"""Between a number and its unit: no line ends there."""
NONE = "\u2013"
"""In place of a number that does not exist."""


@dataclass(frozen=True)
class KeyFigure:
    """A number at the top of the page, with its unit and its basis."""

    label: str
    value: str
    note: str = ""


class PagePart:
    """A part of a section that is no table."""


@dataclass(frozen=True)
class Text(PagePart):
    """A paragraph."""

    words: str


class Heading(Text):
    """A heading within a section."""


class Note(Text):
    """A paragraph with a warning or an instruction."""


@dataclass(frozen=True)
class Listing(PagePart):
    """Lines, one below the other."""

    lines: tuple[str, ...]


class Fact(NamedTuple):
    """A name with its value."""

    name: str
    value: str


@dataclass(frozen=True)
class FactList(PagePart):
    """Names with their values."""

    facts: tuple[Fact, ...]


class AxisSpan(NamedTuple):
    """Place of the axes in a drawing, as shares of its width, and the limits of the x axis."""

    left: float
    right: float
    low: float
    high: float


@dataclass(frozen=True)
class Plot(PagePart):
    """A drawing with a description for readers who cannot see it, and the numbers behind it."""

    key: str  # a word, unique on the page
    title: str
    description: str
    svg: str
    axis: AxisSpan
    table: TableBlock | None = None
    wide: bool = False  # fills the width of the page where it stands alone


@dataclass(frozen=True)
class Image(PagePart):
    """A picture in pixels."""

    title: str
    description: str
    png: bytes


@dataclass(frozen=True)
class Plots(PagePart):
    """Plots side by side where the page is wide enough."""

    plots: tuple[Plot, ...]


PageBlock = PagePart | TableBlock


@dataclass(frozen=True)
class Section:
    """A part of the page under its own heading."""

    key: str
    title: str
    lead: str  # the finding, in a sentence
    blocks: tuple[PageBlock, ...]


def _made_now() -> str:
    when = datetime.now(UTC).strftime("%Y-%m-%d at %H:%M UTC")
    return f"Made by rareclass {version('rareclass')} on {when}."


@dataclass(frozen=True)
class ReportPage:
    """A whole page."""

    title: str
    subtitle: str
    verdict: str  # the one finding to remember
    figures: tuple[KeyFigure, ...]  # at the top
    sections: tuple[Section, ...]
    made: str = field(default_factory=_made_now)

    def section(self, key: str) -> Section:
        """Return the section with this key; raises `KeyError` where there is none."""
        return {each.key: each for each in self.sections}[key]


class FinishedReport(NamedTuple):
    """A page, and its numbers as plain data for scripts."""

    page: ReportPage
    numbers: dict[str, Any]


def rows_facts(n_rows: int, n_rare: int) -> list[Fact]:
    """Return the number of rows, and of rare ones with their share."""
    rare = f"{whole(n_rare)} ({percent(n_rare / n_rows)})"
    return [Fact("Rows", whole(n_rows)), Fact("Rare rows", rare)]


def settings_section(facts: list[Fact]) -> Section:
    """Settings, versions, seed and date; the last section of every report."""
    words = "What it takes to do it again."
    return Section("settings", "Settings", words, (FactList(tuple(facts)),))


def figure_of(label: str, measure: Interval) -> KeyFigure:
    """Figure of a measure between 0 and 1 with its interval."""
    return KeyFigure(label, f"{measure.value:.3f}", measure.bounds_text())


def rendered(page: ReportPage) -> str:
    """Return the HTML with its style, script and drawings inside.

    Raises `MissingPackageError` without jinja2, which `rareclass[cli]` brings.
    """
    with needed_for("A report", "rareclass[cli]"):
        import jinja2
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    # The markup of a part is chosen by the name of its class.
    environment.filters["kind"] = lambda block: type(block).__name__
    environment.filters["base64"] = lambda png: b64encode(png).decode("ascii")
    template = environment.from_string(_part("page.html.j2"))
    return template.render(report=page, css=_part("page.css"), script=_part("page.js"))


@cache
def _part(name: str) -> str:
    return (files("rareclass.report") / "html" / name).read_text(encoding="utf-8")


def whole(number: float) -> str:
    r"""Format a count: whole, or with one decimal where weights make it fractional.

    >>> whole(12345.0), whole(3.25), whole(float("nan"))
    ('12,345', '3.2', '\u2013')
    """
    if math.isnan(number):
        return NONE
    if abs(number - round(number)) < 1e-9 or abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:,.1f}"


def percent(share: float) -> str:
    r"""Format a share in percent, with enough digits to tell it from 0 and from 100 %.

    >>> percent(0.312), percent(0.00012), percent(1.0), percent(0.0), percent(0.9996)
    ('31.2\xa0%', '0.012\xa0%', '100\xa0%', '0\xa0%', '99.96\xa0%')
    """
    if math.isnan(share):
        return NONE
    return f"{percent_number(share)}{SPACE}%"


def percent_number(share: float) -> str:
    """Format a share in percent without the sign, for the lower bound of a range.

    >>> percent_number(0.1234), percent_number(0.00123), percent_number(0.999999)
    ('12.3', '0.12', '99.99')
    """
    number = 100.0 * share
    if number in (0.0, 100.0):
        return f"{number:.0f}"
    if number > 99.9:  # never rounded to all
        return f"{math.floor(100.0 * number + 1e-9) / 100.0:.2f}"
    return f"{number:.1f}" if number >= 1.0 else f"{number:.2g}"


def percent_with_bounds(interval: Interval) -> str:
    r"""Format a share with the bounds of its interval.

    >>> percent_with_bounds(Interval(0.31, 0.26, 0.364))
    '31.0\xa0% (26.0 to 36.4\xa0%)'
    """
    if math.isnan(interval.value):
        return NONE
    return f"{percent(interval.value)} ({percent_bounds(interval)})"


def percent_bounds(interval: Interval) -> str:
    r"""Format the bounds of a share.

    >>> percent_bounds(Interval(0.31, 0.26, 0.364)), percent_bounds(Interval(0.5, 0.5, 0.5))
    ('26.0 to 36.4\xa0%', 'exact')
    """
    if interval.low == interval.high:
        return "exact"
    return f"{percent_number(interval.low)} to {percent(interval.high)}"
