"""An online learner as a classifier of River; this module imports River where it is installed."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import exp, isfinite, sqrt
from typing import Any

import numpy as np
from sklearn.base import clone

from rareclass.errors import ErrorKind, MissingPackageError
from rareclass.labels.two_classes import two_labels
from rareclass.online.ranker import OnlineRanker, SparseRows

try:
    from river.base import Classifier
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "river":
        raise
    Classifier = object  # type: ignore[assignment, misc]

# The spread of the scores is that of about the last thousand rows: weights grow and drift.
_SPREAD_SHARE = 1e-3


def as_river(
    model: OnlineRanker, classes: Sequence[Any] = (False, True), seed: int | None = None
) -> "RiverClassifier":
    """Make a River classifier that learns as `model` does, from rows that are dicts.

    It goes wherever River takes a classifier: pipelines, `progressive_val_score`.

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
        ``learn_one``, ``predict_proba_one``, ``predict_one`` and ``score_one`` (the raw score).

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
    if Classifier is object:
        raise MissingPackageError(
            "as_river needs river, which is not installed.",
            'Install it: pip install "river".',
            ErrorKind.MISSING_PACKAGE,
            value="river",
        )
    two_labels(classes)  # says what is wrong with them
    return RiverClassifier(model, tuple(classes), seed)


class RiverClassifier(Classifier):
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
    ahead: features that appear one by one do not copy the state each time.

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
        self._learner.start(1, classes)
        self._rare = np.asarray(self._learner.pos_label_).item()
        self._majority = next(c for c in self._learner.classes_.tolist() if c != self._rare)
        self._columns: dict[Hashable, int] = {}
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
        return dict(zip(self._columns, self._learner.coef_.tolist(), strict=False))

    def learn_one(self, x: dict[Hashable, Any], y: Any) -> None:
        """Learn from a row.

        Parameters
        ----------
        x : dict
            Features by name: numbers, text, True or False; None and NaN are absent.
        y : label
            One of the two classes; another one raises `ValueError`.
        """
        row, sign = cells(x), self._sign(y)
        self._make_room(row)
        known = self._known(row)
        rows = known if self._learner._takes == "sparse" else self._dense(known)
        # Past the learner's own checks, which would cost more than the row: it is sound by now.
        score = self._learner._learn_on(rows, np.array([sign], np.int8), np.ones(1))[0]
        self._n_rows += 1
        share = max(1.0 / self._n_rows, _SPREAD_SHARE)
        off = float(score) - self._mean
        self._mean += share * off
        self._variance = (1.0 - share) * (self._variance + share * off * off)
        self._threshold = None

    def score_one(self, x: dict[Hashable, Any]) -> float:
        """Rarity score of a row: higher is more like the rare class. The thing to rank by.

        Features never learned from count as 0. Before anything is learned every score is 0.
        """
        rows, learner = self._known(cells(x)), self._learner
        if not self._n_rows:
            return 0.0
        if learner._is_linear:
            return float(learner.coef_[rows.indices] @ rows.data)
        return float(learner._scores(learner.state_, self._dense(rows))[0])

    def predict_proba_one(self, x: dict[Hashable, Any], **kwargs: Any) -> dict[Any, float]:
        """The score of a row on a scale from 0 to 1, for each label.

        ``1 / (1 + exp(-(score - offset) / spread))`` for the rare label: one half at the threshold
        of the decision; the spread is the standard deviation of the scores of about the last
        thousand rows. It is for ranking and for River's interface, not a calibrated probability:
        both numbers move as rows come, so rank rows of different times by `score_one`.
        """
        above = (self.score_one(x) - self._offset()) / (sqrt(self._variance) or 1.0)
        # exp of a negative number only: the other one may be too large for a float.
        small = exp(-abs(above))
        rare = 1.0 / (1.0 + small) if above >= 0.0 else small / (1.0 + small)
        return {self._majority: 1.0 - rare, self._rare: rare}

    def predict_one(self, x: dict[Hashable, Any], **kwargs: Any) -> Any:
        """The label of a row: the rare one above the model's threshold (``offset_``)."""
        return self._rare if self.score_one(x) > self._offset() else self._majority

    def _make_room(self, row: dict[Hashable, float]) -> None:
        """Give every feature of a row a column; the order of the dict does not matter."""
        new = row.keys() - self._columns.keys()
        for name in sorted(new, key=lambda name: (str(name), type(name).__name__)):
            self._columns[name] = len(self._columns)
        width = self._learner.n_features_in_
        if not self._n_rows:
            self._learner.start(max(len(self._columns), 1), self.classes)
        elif len(self._columns) > width:
            # A quarter more than before: a new width copies the state, covariance and all.
            self._learner.add_features(max(len(self._columns) - width, width // 4))

    def _known(self, row: dict[Hashable, float]) -> SparseRows:
        """The non-zeros of a row in columns that there are, in increasing order."""
        columns = self._columns
        known = sorted((columns[name], v) for name, v in row.items() if v and name in columns)
        indices = np.array([column for column, _ in known], dtype=np.int64)
        return SparseRows(
            np.array([0, len(known)]), indices, np.array([v for _, v in known], float)
        )

    def _dense(self, rows: SparseRows) -> np.ndarray:
        dense = np.zeros((1, self._learner.n_features_in_))
        dense[0, rows.indices] = rows.data
        return dense

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

    def _offset(self) -> float:
        if self._threshold is None:
            self._threshold = float(self._learner.offset_)
        return self._threshold


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
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(
                f"feature {name!r} is {value!r} of type {type(value).__name__}: neither a number "
                "nor text. Convert it first, e.g. a time to seconds."
            ) from None
        if isfinite(number):
            found[name] = number
        elif number == number:
            raise ValueError(
                f"feature {name!r} is {value!r}: only finite numbers can be learned from. Leave "
                "the feature out, or give None, where its value is not known."
            )
    return found
