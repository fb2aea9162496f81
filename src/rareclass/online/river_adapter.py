"""An online learner as a classifier of River; this module imports River where it is installed."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import exp, isfinite, sqrt
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import clone

from rareclass.errors import ErrorKind, MissingPackageError
from rareclass.labels.two_classes import two_labels
from rareclass.online.ranker import OnlineRanker, SparseRows, row_copies
from rareclass.rows.source import is_table

try:
    from river.base import MiniBatchClassifier
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "river":
        raise
    MiniBatchClassifier = object  # type: ignore[assignment, misc]

# The spread of the scores is that of about the last thousand rows: weights grow and drift.
_SPREAD_SHARE = 1e-3


def as_river(
    model: OnlineRanker, classes: Sequence[Any] = (False, True), seed: int | None = None
) -> "RiverClassifier":
    """Make a River classifier that learns as `model` does, from rows that are dicts.

    It goes wherever River takes a classifier: pipelines, `progressive_val_score`, mini-batches.

    Parameters
    ----------
    model : OnlineRanker
        A learner, e.g. ``CBR()``. Only its parameters are taken: it stays as it is, and the
        classifier begins with nothing learned.
    classes : sequence of two labels
        The labels that will come. The rare one is the model's ``pos_label``, by default the one
        that sorts last.
    seed : int or None
        In place of the model's ``random_state``.

    Returns
    -------
    RiverClassifier
        ``learn_one``, ``predict_proba_one``, ``predict_one`` and ``score_one`` (the raw score),
        and the same for tables of rows.

    Raises
    ------
    MissingPackageError, TypeError, ValueError
        Where River is not installed, `model` is no online learner, a parameter is out of range, or
        there are not two classes.

    Examples
    --------
    >>> from rareclass.online import CBR, as_river
    >>> ranker = as_river(CBR())
    >>> for amount, night, fraud in [(9, "no", False), (80, "yes", True), (7, "no", False)]:
    ...     ranker.learn_one({"amount": amount / 10, "night": night}, fraud)
    >>> ranker.predict_one({"amount": 7.0, "night": "yes", "never seen": 3})
    True
    >>> sorted(ranker.weights)
    ['amount', 'night=no', 'night=yes']
    """
    if MiniBatchClassifier is object:
        raise MissingPackageError(
            "as_river needs river, which is not installed.",
            'Install it: pip install "river".',
            ErrorKind.MISSING_PACKAGE,
            value="river",
        )
    two_labels(classes)  # says what is wrong with them
    return RiverClassifier(model, tuple(classes), seed)


class RiverClassifier(MiniBatchClassifier):
    """Ranks rows that are dicts by how much they look like the rare class, learning row by row.

    The score is ``f(x) = sum over the features of w[name] x[name]``, or that of an `OnlineMixture`.
    Made by `rareclass.online.as_river`, which says what the parameters are.

    Features may come and go. A new one gets a column with weight 0 when a row with it is learned
    from; one that is absent, None or NaN counts as 0. Text is one-hot: ``{"colour": "red"}`` is the
    feature ``colour=red`` with the value 1. True and False are 1 and 0. Scale numbers first, e.g.
    with River's ``StandardScaler``.

    The cost of a row is that of the model's `partial_fit`, plus some tens of microseconds for the
    dict; `score_one` is cheaper than the probability and the label, which need the threshold. Where
    rows come many at a time, an array and `test_then_train` are far faster. Columns are made a few
    ahead, so that features that appear one by one do not copy the state each time.

    Examples
    --------
    >>> from river import preprocessing
    >>> from rareclass.online import CBR, as_river
    >>> model = preprocessing.StandardScaler() | as_river(CBR(C=0.1))
    >>> for size in (1.0, 2.0, 9.0, 1.5):
    ...     model.learn_one({"size": size}, size > 5.0)
    >>> model.predict_one({"size": 8.0})
    True
    """

    def __init__(
        self, model: OnlineRanker, classes: tuple[Any, Any] = (False, True), seed: int | None = None
    ) -> None:
        if not isinstance(model, OnlineRanker):
            raise TypeError(
                f"model={model!r} is not an online learner; take one of rareclass.online, "
                "e.g. as_river(CBR())."
            )
        self.model = model
        self.classes = classes
        self.seed = seed
        self._learner = clone(model)
        if seed is not None:
            self._learner.set_params(random_state=seed)
        begun = clone(self._learner).start(1, classes)  # says what is wrong with the parameters
        self._rare = np.asarray(begun.pos_label_).item()
        self._majority = next(label for label in begun.classes_.tolist() if label != self._rare)
        self._columns: dict[Hashable, int] = {}
        self._width = 0  # columns of the learner: the named ones, then spare ones
        self._n_rows = 0
        self._mean, self._variance = 0.0, 0.0  # of the scores of late
        self._threshold: float | None = 0.0  # None: to be asked of the learner

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from rareclass.online.cbr import CBR

        yield {"model": CBR()}

    @property
    def weights(self) -> dict[Hashable, float]:
        """The weight of every feature learned from so far; an `OnlineMixture` has none."""
        if not self._learner._is_linear:
            raise AttributeError("A mixture has no feature weights.")
        if not self._n_rows:
            return {}
        return dict(zip(self._columns, self._learner.coef_.tolist(), strict=False))

    # -- learning ----------------------------------------------------------------------------

    def learn_one(self, x: dict[Hashable, Any], y: Any, w: float = 1.0) -> None:
        """Learn from a row.

        Parameters
        ----------
        x : dict
            Features by name: numbers, text, True or False; None and NaN are absent.
        y : label
            One of the two classes; another one raises `ValueError`.
        w : float
            Copies that the row stands for: 0 leaves it out.
        """
        self._learn([cells(x)], [self._sign(y)], [w])

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn from the rows of a table in their order: the same as from one after the other.

        Parameters
        ----------
        X : pandas or polars DataFrame, pyarrow Table
            Features by column name.
        y : Series, list or array of labels
        w : float, or Series, list or array of floats
            As in `learn_one`.
        """
        rows = _rows_of(X)
        series = nw.from_native(y, allow_series=True, pass_through=True)
        labels = series.to_list() if isinstance(series, nw.Series) else list(y)
        if len(labels) != len(rows):
            raise ValueError(f"X has {len(rows)} rows and y has {len(labels)}.")
        weight = np.asarray(w, dtype=float)
        if weight.ndim and weight.shape != (len(rows),):
            raise ValueError(f"X has {len(rows)} rows and w has {len(weight)}.")
        weights = np.broadcast_to(weight, len(rows)).tolist()
        self._learn(rows, [self._sign(label) for label in labels], weights)

    def _learn(
        self, rows: list[dict[Hashable, float]], signs: list[int], weights: list[float]
    ) -> None:
        for weight in weights:
            if not (isinstance(weight, Real) and 0.0 <= weight < float("inf")):
                raise ValueError(f"w={weight!r} must be a finite number, 0 or above.")
        kept = [i for i, weight in enumerate(weights) if weight > 0.0]
        if not kept:
            return
        self._make_room([rows[i] for i in kept])
        plain = all(weight == 1.0 for weight in weights)
        copies, step = row_copies(None if plain else np.array(weights, dtype=float), len(rows))
        order = range(len(rows)) if copies is None else copies.tolist()
        taken = [rows[i] for i in order]
        sign = np.array([signs[i] for i in order], dtype=np.int8)
        # Past the learner's own checks, which would cost more than the row: it is sound by now.
        self._follow(self._learner._learn_on(self._matrix(taken), sign, step).tolist())

    def _make_room(self, rows: list[dict[Hashable, float]]) -> None:
        """Give every feature of the rows a column, in the order a row at a time would."""
        columns = self._columns
        for row in rows:
            if row.keys() <= columns.keys():
                continue
            # Sorted, so that the order of a dict has no effect on the model.
            new = row.keys() - columns.keys()
            for name in sorted(new, key=lambda name: (str(name), type(name).__name__)):
                columns[name] = len(columns)
        if not self._n_rows:
            self._width = max(len(columns), 1)
            self._learner.start(self._width, self.classes)
        elif len(columns) > self._width:
            # A quarter more than before: a new width copies the state, covariance and all.
            wider = max(len(columns), self._width + self._width // 4)
            self._learner.add_features(wider - self._width)
            self._width = wider

    def _matrix(self, rows: list[dict[Hashable, float]]) -> np.ndarray | SparseRows:
        indptr, indices, data = in_csr_form(rows, self._columns)
        if self._learner._takes == "sparse":
            return SparseRows(indptr, indices, data)
        X = np.zeros((len(rows), self._width))
        X[np.repeat(np.arange(len(rows)), np.diff(indptr)), indices] = data
        return X

    def _follow(self, scores: list[float]) -> None:
        """Keep the spread of the scores, and forget the threshold, which has moved."""
        for score in scores:
            self._n_rows += 1
            share = max(1.0 / self._n_rows, _SPREAD_SHARE)
            off = score - self._mean
            self._mean += share * off
            self._variance = (1.0 - share) * (self._variance + share * off * off)
        self._threshold = None

    def _sign(self, y: Any) -> int:
        if y == self._rare:
            return 1
        if y == self._majority:
            return -1
        if y is None or y != y:
            raise ValueError(
                f"label {y!r}: a row cannot be learned before its label is known. Score it now, "
                "and learn it when the label comes."
            )
        raise ValueError(
            f"label {y!r} is neither {self._majority!r} (majority) nor {self._rare!r} (rare). "
            "Name both, and the rare one in the model, which else is the one that sorts last: "
            "as_river(CBR(pos_label=rare), classes=(majority, rare))."
        )

    # -- scoring -----------------------------------------------------------------------------

    def score_one(self, x: dict[Hashable, Any]) -> float:
        """Rarity score of a row: higher is more like the rare class. The thing to rank by.

        Features never learned from count as 0. Before anything is learned every score is 0.
        """
        return float(self._scores([cells(x)])[0])

    def predict_proba_one(self, x: dict[Hashable, Any], **kwargs: Any) -> dict[Any, float]:
        """The score of a row on a scale from 0 to 1, for each label.

        ``1 / (1 + exp(-(score - offset) / spread))`` for the rare label: one half at the threshold
        of the decision; the spread is the standard deviation of the scores of about the last
        thousand rows. It is for ranking and for River's interface, not a calibrated probability:
        both numbers move as rows come, so rank rows of different times by `score_one`.
        """
        rare = self._probability(self.score_one(x))
        return {self._majority: 1.0 - rare, self._rare: rare}

    def predict_one(self, x: dict[Hashable, Any], **kwargs: Any) -> Any:
        """The label of a row: the rare one above the model's threshold (``offset_``)."""
        return self._rare if self.score_one(x) > self._offset() else self._majority

    def score_many(self, X: Any) -> np.ndarray:
        """`score_one` of every row of a table."""
        return self._scores(_rows_of(X))

    def predict_proba_many(self, X: Any) -> Any:
        """`predict_proba_one` of every row, as a table of the same kind with a column a label."""
        rare = np.array([self._probability(score) for score in self.score_many(X).tolist()])
        frame = nw.from_native(X, eager_only=True)
        by_label = {self._majority: 1.0 - rare, self._rare: rare}
        if not frame.implementation.is_pandas_like():  # pandas alone takes labels that are no text
            by_label = {str(label): column for label, column in by_label.items()}
        return _like(nw.from_dict(by_label, backend=frame.implementation), frame)

    def predict_many(self, X: Any) -> Any:
        """`predict_one` of every row, as a column of the same kind."""
        offset, scores = self._offset(), self.score_many(X).tolist()
        labels = [self._rare if score > offset else self._majority for score in scores]
        frame = nw.from_native(X, eager_only=True)
        return _like(nw.new_series("", labels, backend=frame.implementation), frame)

    def _scores(self, rows: list[dict[Hashable, float]]) -> np.ndarray:
        if not self._n_rows:
            return np.zeros(len(rows))
        learner = self._learner
        known = list(columns_of(rows, self._columns))
        if learner._is_linear:
            coef = learner.coef_
            return np.array([coef[at] @ values for at, values in known], dtype=float)
        X = np.zeros((len(rows), self._width))
        for row, (at, values) in zip(X, known, strict=True):
            row[at] = values
        scores: np.ndarray = learner._scores(learner.state_, X)
        return scores

    def _offset(self) -> float:
        if self._threshold is None:
            self._threshold = float(self._learner.offset_)
        return self._threshold

    def _probability(self, score: float) -> float:
        spread = sqrt(self._variance) or 1.0
        above = (score - self._offset()) / spread
        # exp of a negative number only: the other one may be too large for a float.
        small = exp(-abs(above))
        return 1.0 / (1.0 + small) if above >= 0.0 else small / (1.0 + small)


def _rows_of(X: Any) -> list[dict[Hashable, float]]:
    if not is_table(X):
        raise TypeError(
            f"X of type {type(X).__name__} is not a table: pass a pandas or polars DataFrame, or "
            "single rows to learn_one and score_one."
        )
    frame = nw.from_native(X, eager_only=True)
    rows: Iterator[Mapping[Hashable, Any]] = frame.iter_rows(named=True)
    return [cells(row) for row in rows]


def _like(made: Any, frame: Any) -> Any:
    """The native table or column, with the index of the rows it was made from (pandas)."""
    native = made.to_native()
    index = nw.maybe_get_index(frame)
    if index is not None:
        native.index = index
    return native


def cells(x: Mapping[Hashable, Any]) -> dict[Hashable, float]:
    """The features of a row that are present, as numbers.

    None and NaN are absent, True and False are 1 and 0, and text becomes a feature of its own,
    ``name=value``, that is 1. Other values and infinite ones are refused by name.

    >>> cells({"size": 2, "new": True, "colour": "red", "age": None})
    {'size': 2.0, 'new': 1.0, 'colour=red': 1.0}
    """
    if not isinstance(x, Mapping):
        raise TypeError(
            f"x={x!r} of type {type(x).__name__} is not a row of River: pass a dict of features "
            "by name, e.g. {'amount': 12.5}. Arrays and tables go to the model's own partial_fit."
        )
    found: dict[Hashable, float] = {}
    for name, value in x.items():
        if value is None:
            continue
        if isinstance(value, str):
            found[f"{name}={value}"] = 1.0
            continue
        number = value if type(value) is float else _number(name, value)
        if isfinite(number):
            found[name] = number
        elif number == number:
            raise ValueError(
                f"feature {name!r} is {value!r}: only finite numbers can be learned from. Leave "
                "the feature out, or give None, where its value is not known."
            )
    return found


def _number(name: Hashable, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"feature {name!r} is {value!r} of type {type(value).__name__}: neither a number nor "
            "text. Convert it first, e.g. a time to seconds."
        ) from None


def columns_of(
    rows: Sequence[Mapping[Hashable, float]], columns: Mapping[Hashable, int]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The known features of each row: columns in increasing order, and values."""
    for row in rows:
        known = sorted((columns[name], value) for name, value in row.items() if name in columns)
        yield (
            np.array([column for column, _ in known], dtype=np.int64),
            np.array([value for _, value in known], dtype=np.float64),
        )


def in_csr_form(
    rows: Sequence[Mapping[Hashable, float]], columns: Mapping[Hashable, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The non-zeros of rows whose features are all known: row pointers, columns, values.

    >>> indptr, indices, data = in_csr_form([{"b": 2.0, "a": 1.0}, {"a": 0.0}], {"a": 0, "b": 1})
    >>> indptr.tolist(), indices.tolist(), data.tolist()
    ([0, 2, 2], [0, 1], [1.0, 2.0])
    """
    indptr, indices, data = [0], [], []
    for row in rows:
        for column, value in sorted((columns[name], value) for name, value in row.items()):
            if value:
                indices.append(column)
                data.append(value)
        indptr.append(len(indices))
    return (
        np.array(indptr, dtype=np.int64),
        np.array(indices, dtype=np.int64),
        np.array(data, dtype=np.float64),
    )
