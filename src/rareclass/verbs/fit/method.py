"""What training knows of a method: a few verbs, the same for all of them."""

from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rareclass.rows import LabelledRows, RowSource
from rareclass.verbs.targets.target import FoundLabels, Target


class EncodedRows(NamedTuple):
    """Rows that a method learns from.

    Attributes
    ----------
    X : ndarray, csr_matrix or RowSource
        In memory, or on disk.
    y : ndarray of int
        The code of each row's label; what it means the method knows (see
        `rareclass.verbs.targets.target.Target`).
    weight : ndarray or None
        How many copies each stands for.
    n_codes : int
        Codes there are; these rows may lack some.
    """

    X: Any
    y: NDArray[np.int16]
    weight: NDArray[np.float64] | None
    n_codes: int = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        if isinstance(self.X, RowSource):
            return self.X.n_rows, self.X.n_features
        n_rows, n_features = self.X.shape
        return n_rows, n_features

    def fit(self, estimator: Any) -> Any:
        """Fit an estimator on these rows and their codes.

        Rows on disk are closed then: they have no other use, and the next training wants the room.
        """
        if isinstance(self.X, RowSource):
            with LabelledRows(self.X, self.y, self.weight) as rows:
                return estimator.fit_rows(rows)
        return estimator.fit(self.X, self.y, sample_weight=self.weight)


class Terms(NamedTuple):
    """On what terms a method learns.

    Attributes
    ----------
    folds : int
        Folds of the cross-validation; below 2 there are too few rows for one.
    seed : int
        Of the folds and of whatever is random.
    memory : int
        Bytes that the method may use beside the rows.
    """

    folds: int
    seed: int
    memory: int


def how_chosen(given: Any, terms: Terms) -> str:
    """Return where the parameter of a method comes from: the user, the folds, or neither.

    Parameters
    ----------
    given : number or None
        What the user said; None if nothing.
    terms : Terms
        Those of the training that chose.
    """
    if given is not None:
        return "given"
    return "chosen by cross-validation" if terms.folds >= 2 else "a default: too few rare rows"


class TableSize(NamedTuple):
    """A table by its numbers, before it is encoded.

    Attributes
    ----------
    n_rows, n_rare : int
        Distinct rows, and the rare ones of them.
    n_columns : float
        About how many numbers a row has once encoded; of sparse rows, how many are stored.
    is_sparse : bool
        Whether rows are sparse.
    """

    n_rows: int
    n_rare: int
    n_columns: float
    is_sparse: bool


class Method(Protocol):
    """A way to learn a ranking, with what the user said about its parameters.

    A method that was not told its parameter chooses it by cross-validation. The model that it
    fits has ``score_samples``, and what its target's `Decision` asks for: ``offset_`` or
    ``thresholds_``, found on scores of rows held out.

    Attributes
    ----------
    name : str
        What ``--method`` calls it.
    parameter : str
        What it chooses, in words.
    """

    name: ClassVar[str]
    parameter: ClassVar[str]

    def read_target(self, found: FoundLabels, positive: str | None) -> Target:
        """Return what the labels of a file mean to this method.

        `positive` is the label that the user named as the rare class.

        Raises
        ------
        InputError
            When it cannot learn from these labels, with the remedy.
        """
        ...

    def outlook(self, size: TableSize, terms: Terms) -> str:
        """Return what to tell the user before it starts; nothing when it will be quick."""
        ...

    def fit(self, rows: EncodedRows, terms: Terms, notes: list[str]) -> Any:
        """Fit a model; what the user should know of it is added to `notes`.

        Raises
        ------
        InputError
            When it cannot be fitted in the memory allowed, with the remedy.
        """
        ...

    def as_chosen(self, model: Any) -> "Method":
        """Return this method with the parameter that `model` was fitted with."""
        ...

    def facts(self, model: Any, terms: Terms) -> dict[str, Any]:
        """Return what a model file says of the model, as plain data.

        `terms` are those of the training that chose the parameter: without folds none was chosen.
        """
        ...

    def summary(self, model: Any, terms: Terms) -> list[str]:
        """Return the lines that ``rareclass fit`` prints of the model; `terms` as in `facts`."""
        ...

    def lighten(self, model: Any) -> None:
        """Let go of what no verb needs of a model, in place, before it is saved."""
        ...
