"""Methods as training knows them: a few verbs, the same for all."""

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.target import Positive
from rareclass.errors import ErrorKind, setting
from rareclass.estimators.estimator import FitsRows
from rareclass.folds.dealing import dealt_with_both, exactly, group_numbers, moments, most_folds
from rareclass.model.facts import MethodFacts, RareClassScores, ScoredRows
from rareclass.model.table_scorer import Ranker
from rareclass.model.targets import FoundLabels, TargetFacts, rare_target
from rareclass.rows import LabelledRows, RowSource
from rareclass.tables.columns import Column

Estimator = TypeVar("Estimator", bound=FitsRows)
Model = TypeVar("Model", bound=FitsRows)


class EncodedRows(NamedTuple):
    """Rows that a method learns from."""

    X: Any  # array, CSR matrix, or RowSource on disk
    y: NDArray[np.int16]  # codes of labels, see `RareClassFacts`
    weight: NDArray[np.float64] | None  # how many copies each stands for
    n_codes: int = 2  # codes there are; these rows may lack some
    groups: NDArray[Any] | None = None  # rows of one group are held out together
    time: NDArray[Any] | None = None  # rows are held out by stretches of time
    which: NDArray[np.int16] | None = None  # position of the class of rare rows, of several

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        if isinstance(self.X, RowSource):
            return self.X.n_rows, self.X.n_features
        n_rows, n_features = self.X.shape
        return n_rows, n_features

    def fit(self, estimator: Estimator, **beside: Any) -> Estimator:
        """Fit an estimator on these rows and their codes; `beside` are more columns for its fit.

        Rows on disk are closed then: they have no other use, and the next training wants the room.
        """
        if isinstance(self.X, RowSource):
            with LabelledRows(self.X, self.y, self.weight) as rows:
                return estimator.fit_rows(rows)
        return estimator.fit(self.X, self.y, sample_weight=self.weight, **beside)

    def cv(self, terms: "Terms") -> Any:
        """Return what an estimator's ``cv`` is: a number of folds, or folds by groups or time.

        Raises `InputError` where groups or times leave no two folds.
        """
        if self.groups is None and self.time is None:
            return terms.folds
        name = "groups" if self.time is None else "time"
        is_rare = self.y != np.argmax(np.bincount(self.y, self.weight))
        if self.time is None:
            place = group_numbers(self.groups, len(self.y), setting(name))
            n_folds = min(terms.folds, most_folds(is_rare, place))
            number = dealt_with_both(n_folds, terms.seed, is_rare, place) if n_folds > 1 else None
        else:
            number = _cut(terms, is_rare, moments(self.time, len(self.y)))
        if number is None:
            raise ErrorKind.COMBINATION.error(
                f"{setting(name)}: the rows to learn from cannot be cut into two folds with rows "
                "of both classes.",
                f"Leave out {setting(name)}.",
            )
        return [
            (np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in np.unique(number)
        ]


class Terms(NamedTuple):
    """On what terms a method learns."""

    folds: int  # below 2 there are too few rows for a cross-validation
    seed: int
    memory: int  # bytes to use beside the rows
    share: float = 1.0  # of the time allowed, for methods that are given a time
    n_rows: int = 0  # distinct ones, to learn from


def _cut(
    terms: Terms, is_rare: NDArray[np.bool_], moment: NDArray[np.intp]
) -> NDArray[np.int64] | None:
    """Number of the stretch of time of each row, as many as have rows of both classes."""
    for n_folds in range(terms.folds, 1, -1):
        number = exactly(n_folds, is_rare, moment)
        if number is not None and len(np.unique(number[~is_rare])) == n_folds:
            return number
    return None


def how_chosen(given: Any, terms: Terms, on_rows: int | None = None) -> str:
    """Return where the parameter of a method comes from: the user, the folds, or neither.

    `on_rows` is how many rows were dealt into folds, where these were not all.
    """
    if given is not None:
        return "given"
    if terms.folds < 2:
        return "a default: too few rare rows"
    return "chosen by cross-validation" + (f" on {on_rows:,} rows" if on_rows else "")


class TableSize(NamedTuple):
    """A table by its numbers, before it is encoded."""

    n_rows: int  # distinct ones
    n_rare: int
    n_columns: float  # numbers a row has once encoded; stored ones of a sparse row
    is_sparse: bool


class Method(Generic[Model]):
    """A way to learn a ranking, with what the user said about its parameters.

    A method that was not told its parameter chooses it by cross-validation. The model that it
    fits has ``score_samples``, and what its target's `Decision` asks for: ``offset_`` or
    ``thresholds_``, found on scores of rows held out. What is answered here is so of methods of
    encoded rows that learn until they are done.
    """

    name: ClassVar[str]  # what ``--method`` calls it
    parameter: ClassVar[str]  # what it chooses, in words
    reads_types: ClassVar[bool] = False  # learns from typed columns and encodes them itself
    numbers: ClassVar[str] = "clipped"  # how encoded rows have them, as `TableEncoder` says
    may_be_stopped: ClassVar[bool] = False  # Ctrl-C leaves a model of what was learned by then
    cross_fits: ClassVar[bool] = False  # scores its training rows as if they were new ones

    def read_target(self, found: FoundLabels, positive: Positive) -> TargetFacts:
        """Return what the labels of a file mean: by default, one label against the rest.

        `positive` is the label that the user named as the rare class, or several of them.

        Raises `InputError` when it cannot learn from these labels, with the remedy.
        """
        return rare_target(found.counts, positive, found.column)

    def outlook(self, size: TableSize, terms: Terms) -> str:
        """Return what to tell the user before it starts; nothing when it will be quick."""
        return ""

    def fit(self, rows: EncodedRows, terms: Terms, notes: list[str]) -> Model:
        """Fit a model; what the user should know of it is added to `notes`.

        Raises `InputError` when it cannot be fitted in the memory allowed, with the remedy.
        """
        raise NotImplementedError

    def as_learned(self, model: Model, columns: Sequence[Column]) -> Sequence[Column]:
        """Return columns of the table with what the model decided of them."""
        return columns

    def cross_fitted(self, model: Model, rows: EncodedRows) -> ScoredRows:
        """Return scores of the rows that it was fitted on, where it cross-fits."""
        raise NotImplementedError

    def scored_classes(self, model: Model, encoder: Any, rows: Any) -> RareClassScores | None:
        """Return the classes of new rows and their probabilities, where several are rare.

        `rows` is a part of the training set. None where the method does not learn them.
        """
        return None

    def as_chosen(self, model: Model) -> Self:
        """Return this method with the parameter that `model` was fitted with."""
        raise NotImplementedError

    def is_whole(self, model: Model) -> bool:
        """Return whether all was trained that there was to train: time may have ended before."""
        return True

    def facts(self, model: Model, terms: Terms, chosen: "Method[Model]") -> MethodFacts:
        """Return what a model file says of the model.

        `terms` are those of the training that chose the parameter: without folds none was chosen.
        `chosen` is the method with which the saved model was trained, as `as_chosen` returned it.
        """
        raise NotImplementedError

    def majority_quantiles(self, model: Model) -> list[float] | None:
        """Return scores at equal steps of the held-out majority; None to count training rows."""
        return None

    def summary(self, model: Model, terms: Terms, thresholds: NDArray[np.float64]) -> list[str]:
        """Return lines on the parameters for ``fit --details``; `terms` as in `facts`."""
        return []

    def as_stored(self, model: Model) -> Ranker:
        """Return what the model file holds: what no command needs is left out, or dropped."""
        raise NotImplementedError
