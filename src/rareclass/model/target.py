"""What a target is to training, and to scores: its codes, decisions, and how good these are."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.model.facts import RankingEstimate, TargetFacts


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
    """Turns scores into decisions, and compares them with labels."""

    column: ClassVar[str]  # of decisions in a file of scores
    n_codes: int
    names: list[str]  # of the codes
    thresholds: NDArray[np.float64]  # scores at which a code ends

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

    def facts(self) -> TargetFacts:
        """Return what a model file says of the target."""
        ...
