"""What a page is made of: sections of blocks, all of them frozen plain data."""

from dataclasses import dataclass
from typing import ClassVar

from rareclass.report.summaries.threshold_table import ThresholdTable


@dataclass(frozen=True)
class Figure:
    """A number that stands out, with its unit and what it rests on."""

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
    """A paragraph that warns, or says what to do."""

    kind: ClassVar[str] = "note"

    words: str


@dataclass(frozen=True)
class Listing:
    """Lines, one below the other."""

    kind: ClassVar[str] = "listing"

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Names with what they are."""

    kind: ClassVar[str] = "facts"

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """Cells as they are shown. Columns that `numeric` names by place are aligned as numbers."""

    kind: ClassVar[str] = "table"

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Plot:
    """A drawing with its description and the numbers behind it."""

    kind: ClassVar[str] = "plot"

    key: str  # unlike any other of the page: a word
    title: str
    description: str  # what there is to see, for those who do not see it
    svg: str
    table: Table | None = None
    wide: bool = False  # takes the width of the page where it stands alone


@dataclass(frozen=True)
class Image:
    """A picture that is there as pixels."""

    kind: ClassVar[str] = "image"

    title: str
    description: str
    png: bytes


@dataclass(frozen=True)
class Plots:
    """Plots side by side where there is room."""

    kind: ClassVar[str] = "plots"

    plots: tuple[Plot, ...]


@dataclass(frozen=True)
class ThresholdChoice:
    """The threshold that the reader drags."""

    kind: ClassVar[str] = "choice"

    table: ThresholdTable
    rare: str  # names of the classes
    rest: str
    rule: str  # what set the model's own threshold
    command: str  # that sets another; with {threshold} in it
    plot: Plot | None = None  # precision and recall against alerts, on which the choice is marked
    # Of that plot: where its axes lie in it, and what they span, (left, right, low, high).
    axis: tuple[float, float, float, float] | None = None


Block = Text | Heading | Note | Listing | Facts | Table | Plots | Image | ThresholdChoice


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading of its own."""

    key: str
    title: str
    lead: str  # what it says, in a sentence
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Report:
    """A whole page.

    Attributes
    ----------
    title, subtitle : str
    verdict : str
        What the reader is to know if nothing else is read.
    figures : tuple of Figure
        At the top.
    sections : tuple of Section
    made : str
        When, and by which version.
    """

    title: str
    subtitle: str
    verdict: str
    figures: tuple[Figure, ...]
    sections: tuple[Section, ...]
    made: str

    def section(self, key: str) -> Section:
        """The section of that key; `KeyError` where there is none."""
        for each in self.sections:
            if each.key == key:
                return each
        raise KeyError(key)
