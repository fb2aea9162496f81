"""What training knows of a target: the order of its labels, and which rows are the majority."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rareclass.verbs.targets.held_out import Estimate


class FoundLabels(NamedTuple):
    """The labels of a training file, before it is known what they mean.

    Attributes
    ----------
    column : str
        Name of the target.
    counts : dict of str to int
        Rows of every label as text, the most frequent first.
    row_of : callable
        The first row of the file that has a label, counted from 1: the file is read again.
    """

    column: str
    counts: dict[str, int]
    row_of: Callable[[str], int]


class Target(Protocol):
    """What the labels mean; its codes are what an encoder and a method learn from.

    Attributes
    ----------
    kind : str
        Which sort of target, as a model file names it.
    share : str
        What the mean of the codes of some rows is, in words.
    """

    kind: ClassVar[str]
    share: ClassVar[str]

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

    def notes_on_held_out(self, y: NDArray[np.int16], estimate: Estimate) -> list[str]:
        """Return what makes an estimate rough; `y` are the codes of the rows held out."""
        ...

    def compared_with(self, y: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Return the training rows that the percentile of a new score is among."""
        ...

    def metadata(self) -> dict[str, Any]:
        """Return what a model file says of it, as plain data, for the verbs on its models."""
        ...
