"""The parts of a report page, as frozen plain data: sections of blocks."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from rareclass.report.threshold_table import ThresholdTable


@dataclass(frozen=True)
class KeyFigure:
    """A number at the top of the page, with its unit and its basis."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"

    words: str


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    kind: ClassVar[str] = "heading"

    words: str


@dataclass(frozen=True)
class Note:
    """A paragraph with a warning or an instruction."""

    kind: ClassVar[str] = "note"

    words: str


@dataclass(frozen=True)
class Listing:
    """Lines, one below the other."""

    kind: ClassVar[str] = "listing"

    lines: tuple[str, ...]


class Fact(NamedTuple):
    """A name with its value."""

    name: str
    value: str


@dataclass(frozen=True)
class FactList:
    """Names with their values."""

    kind: ClassVar[str] = "facts"

    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class PageTable:
    """Cells as text; `numeric` has the places of the columns that are aligned as numbers."""

    kind: ClassVar[str] = "table"

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Plot:
    """A drawing with a description for readers who cannot see it, and the numbers behind it."""

    kind: ClassVar[str] = "plot"

    key: str  # a word, unique on the page
    title: str
    description: str
    svg: str
    table: PageTable | None = None
    wide: bool = False  # fills the width of the page where it stands alone


@dataclass(frozen=True)
class Image:
    """A picture in pixels."""

    kind: ClassVar[str] = "image"

    title: str
    description: str
    png: bytes


@dataclass(frozen=True)
class Plots:
    """Plots side by side where the page is wide enough."""

    kind: ClassVar[str] = "plots"

    plots: tuple[Plot, ...]


class AxisSpan(NamedTuple):
    """Place of the axes in a drawing, as shares of its width, and the limits of the x axis."""

    left: float
    right: float
    low: float
    high: float


@dataclass(frozen=True)
class ThresholdChoice:
    """The threshold that the reader drags."""

    kind: ClassVar[str] = "choice"

    table: ThresholdTable
    rare: str  # name of the rare class
    rest: str  # name of the majority class
    command: str  # sets another threshold; contains {threshold}
    plot: Plot | None = None  # precision and recall against alerts; the chosen threshold is marked
    axis: AxisSpan | None = None  # of that plot


Block = Text | Heading | Note | Listing | FactList | PageTable | Plots | Image | ThresholdChoice


@dataclass(frozen=True)
class Section:
    """A part of the page under its own heading."""

    key: str
    title: str
    lead: str  # the finding, in a sentence
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class ReportPage:
    """A whole page.

    Attributes
    ----------
    title, subtitle : str
    verdict : str
        The one finding to remember.
    figures : tuple of KeyFigure
        At the top.
    sections : tuple of Section
    made : str
        Date and version, see `made_now`.
    """

    title: str
    subtitle: str
    verdict: str
    figures: tuple[KeyFigure, ...]
    sections: tuple[Section, ...]
    made: str

    def section(self, key: str) -> Section:
        """Return the section with this key; raises `KeyError` where there is none."""
        for each in self.sections:
            if each.key == key:
                return each
        raise KeyError(key)


def settings_section(facts: list[Fact]) -> Section:
    """Settings, versions, seed and date; the last section of every report."""
    words = "What it takes to do it again."
    return Section("settings", "Settings", words, (FactList(tuple(facts)),))
