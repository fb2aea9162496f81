"""What a model file says of a score: a decision, and how good decisions are."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.verbs.targets.held_out import Estimate


@dataclass(frozen=True)
class Confusion:
    """Rows counted by what they are and what they are called.

    Attributes
    ----------
    title : str
        What decides.
    is_names, called_names : list of str
        Of rows and columns.
    counts : ndarray of shape (n_is, n_called)
        Rows, copies included.
    lines : list of str
        What it comes to.
    numbers : dict
        The same as plain data.
    in_brief : list of str
        The lines that ``rareclass fit`` prints.
    """

    title: str
    is_names: list[str]
    called_names: list[str]
    counts: NDArray[Any]
    lines: list[str]
    numbers: dict[str, Any]
    in_brief: list[str] = field(default_factory=list)


class Decision(Protocol):
    """Turns scores into decisions, and compares them with labels.

    It is made from a model and its metadata.

    Attributes
    ----------
    needed : set of str
        What it looks up in the metadata of a model file.
    quantiles : str
        Where the metadata have the training scores that a percentile is among.
    column : str
        What the column of decisions is called in a file of scores.
    n_codes : int
        Decisions there are.
    """

    needed: ClassVar[set[str]]
    quantiles: ClassVar[str]
    column: ClassVar[str]
    n_codes: int

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

        Raises
        ------
        InputError
            On a label that is unknown, or too few different ones to measure a ranking.
        """
        ...

    def estimate(
        self,
        y: NDArray[np.integer],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
    ) -> Estimate:
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
