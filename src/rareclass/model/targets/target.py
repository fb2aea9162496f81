"""What a target is to training, and to scores: its codes, decisions, and how good these are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import counted


@dataclass(frozen=True)
class Measure:
    """A measure with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class RankingEstimate:
    """Measures of a ranking on some rows."""

    measures: list[Measure]
    n_rows: float  # copies included
    n_rare: float | None = None  # where there is a rare class

    def rows_text(self, which: str = "") -> str:
        """Return the rows in words, such as 1,200 rows, 24 of them rare."""
        of_them = "" if self.n_rare is None else f", {self.n_rare:,.0f} of them rare"
        return counted(self.n_rows, f"{which}row") + of_them

    def as_plain_data(self) -> dict[str, Any]:
        """Return the estimate as dictionaries and numbers."""
        rare = {} if self.n_rare is None else {"n_rare": round(self.n_rare)}
        return {
            "n_rows": round(self.n_rows),
            **rare,
            "measures": {
                measure.name: {"value": measure.value, "low": measure.low, "high": measure.high}
                for measure in self.measures
            },
        }


def as_measure(name: str, interval: Sequence[float]) -> Measure:
    """Return an interval (value, low, high) under a name."""
    value, low, high = (float(number) for number in interval)
    return Measure(name, value, low, high)


@dataclass(frozen=True)
class Confusion:
    """Rows counted by what they are and what they are called."""

    title: str  # what decides
    is_names: list[str]
    called_names: list[str]
    counts: NDArray[Any]  # (n_is, n_called), copies included
    lines: list[str]  # what it comes to
    numbers: dict[str, Any]  # the same as plain data
    in_brief: list[str] = field(default_factory=list)  # what ``rareclass fit`` prints of it


class Decision(Protocol):
    """Turns scores into decisions, and compares them with labels.

    It is made from a model and its metadata.
    """

    needed: ClassVar[set[str]]  # what it looks up in the metadata
    quantiles: ClassVar[str]  # where they have the scores that a percentile is among
    column: ClassVar[str]  # of decisions in a file of scores
    n_codes: int
    names: list[str]  # of the codes
    thresholds: NDArray[np.float64]  # scores at which a code ends

    def __init__(self, model: Any, metadata: dict[str, Any]) -> None: ...

    def decide(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the code that each score is called."""
        ...

    def cells(self, called: NDArray[np.intp]) -> pl.Series:
        """Return codes as they are written into a file of scores."""
        ...

    def rules(self) -> list[str]:
        """Return how it decides, where ``rareclass fit`` says so."""
        ...

    def sentence(self, n_called: NDArray[np.intp]) -> str:
        """Say how many rows were called what; `n_called` counts the rows of each code."""
        ...

    def codes(self, labels: pl.Series, file: str) -> NDArray[np.intp]:
        """Return the codes of labels of a new file as text; -1 for an empty one.

        Raises `InputError` on a label that is unknown, or too few different ones to measure a
        ranking.
        """
        ...

    def estimate(
        self,
        y: NDArray[np.integer],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
    ) -> RankingEstimate:
        """Return measures of scores with 95 % intervals; `weight` counts copies."""
        ...

    def confusion(
        self,
        y: NDArray[np.integer],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
    ) -> Confusion:
        """Compare decisions with codes."""
        ...


class FoundLabels(NamedTuple):
    """The labels of a training file, before it is known what they mean."""

    column: str
    counts: dict[str, int]  # by label as text, the most frequent first
    row_of: Callable[[str], int]  # first row with a label, from 1: the file is read again


class Target(Protocol):
    """What the labels mean; its codes are what an encoder and a method learn from."""

    kind: ClassVar[str]  # as a model file names it
    share: ClassVar[str]  # what the mean of some codes is, in words

    @property
    def column(self) -> str:
        """Name of the target."""
        ...

    @property
    def counts(self) -> dict[str, int]:
        """Rows of every label, copies included."""
        ...

    @property
    def code_of(self) -> dict[str, int]:
        """The code of every label, from 0: the greater, the higher it is to be ranked.

        A code may stand for many labels.
        """
        ...

    @property
    def n_codes(self) -> int:
        """Codes there are."""
        ...

    @property
    def majority(self) -> int:
        """The code of the majority. All other rows are rare: methods hold them whole."""
        ...

    def description(self) -> list[str]:
        """Return the lines that say what was understood."""
        ...

    def notes(self) -> list[str]:
        """Return what may be odd about it."""
        ...

    def notes_on_held_out(self, y: NDArray[np.int16], estimate: RankingEstimate) -> list[str]:
        """Return what makes an estimate rough; `y` are the codes of the rows held out."""
        ...

    def compared_with(self, y: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Return the training rows that the percentile of a new score is among."""
        ...

    def metadata(self) -> dict[str, Any]:
        """Return what a model file says of it, as plain data, for the verbs on its models."""
        ...
