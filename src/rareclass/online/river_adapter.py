"""An online learner as a classifier of River; this module imports River where it is installed."""

from collections.abc import Hashable, Mapping, Sequence
from math import inf, isinf, sqrt
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from rareclass.errors import ErrorKind, needed_for
from rareclass.online.ranker import OnlineRanker, SparseRows

try:
    from river.base import Classifier
except ImportError:  # `as_river` says why
    Classifier = object  # type: ignore[assignment, misc]

# The spread of the scores is that of about the last thousand rows: weights grow and drift.
_SPREAD_SHARE = 1e-3


def as_river(model: OnlineRanker, classes: Sequence[Any] = (False, True)) -> "RiverClassifier":
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

    Raises `MissingPackageError` without River, `TypeError` where `model` is no online learner, and
    `ValueError` on a parameter out of range or other than two classes.

    >>> from rareclass.online import CBR, as_river
    >>> ranker = as_river(CBR())
    >>> for amount, night, fraud in [(9, "no", False), (80, "yes", True), (7, "no", False)]:
    ...     ranker.learn_one({"amount": amount / 10, "night": night}, fraud)
    >>> ranker.predict_one({"amount": 7.0, "night": "yes", "never seen": 3})
    True
    >>> sorted(ranker.weights)
    ['amount', 'night=no', 'night=yes']
    """
    with needed_for("as_river", "river"):
        import river.base  # noqa: F401 (without it the class below is no classifier of River)
    return RiverClassifier(model, classes)


class RiverClassifier(Classifier):
    """Ranks rows that are dicts by how much they look like the rare class, learning row by row.

    The score is ``f(x) = sum over the features of w[name] x[name]``, or that of an `OnlineMixture`.
    Made by `rareclass.online.as_river`, which says what the parameters are.

    Features may come and go. A new one gets a column with weight 0 when a row with it is learned
    from; one that is absent, None or NaN counts as 0. Text is one-hot: ``{"colour": "red"}`` is the
    feature ``colour=red`` with the value 1. True and False are 1 and 0. Scale numbers first.

    A row costs what it does in the model's `partial_fit`, plus some tens of microseconds for the
    dict; where rows come many at a time, an array and `test_then_train` are far faster.

    >>> from river import preprocessing
    >>> from rareclass.online import CBR, as_river
    >>> model = preprocessing.StandardScaler() | as_river(CBR(C=0.1))
    >>> for size in (1.0, 2.0, 9.0, 1.5):
    ...     model.learn_one({"size": size}, size > 5.0)
    >>> model.predict_one({"size": 8.0})
    True
    """

    def __init__(self, model: OnlineRanker, classes: Sequence[Any] = (False, True)) -> None:
        if not isinstance(model, OnlineRanker):
            raise TypeError(f"model={model!r} is not an online learner; pass e.g. as_river(CBR()).")
        self.model, self.classes = model, classes
        self._learner = clone(model).start(1, classes)
        self._rare = np.asarray(self._learner.pos_label_).item()
        self._majority = next(c for c in self._learner.classes_.tolist() if c != self._rare)
        self._columns: dict[Hashable, int] = {}
        self._n_rows, self._mean, self._variance = 0, 0.0, 0.0  # the last two of scores lately
        self._threshold: float | None = 0.0  # None: to be asked of the learner

    @property
    def weights(self) -> dict[Hashable, float]:
        """The weight of every feature learned from so far; an `OnlineMixture` has none."""
        return dict(zip(self._columns, self._learner.coef_.tolist(), strict=False))

    def learn_one(self, x: dict[Hashable, Any], y: Any) -> None:
        """Learn from a row, a dict of numbers, text, True or False; None and NaN are absent.

        A label `y` that is neither of the two classes raises `ValueError`.
        """
        row, sign = cells(x), self._sign(y)
        self._make_room(row)
        rows = self._rows(row, self._learner._takes)
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
        row, learner = cells(x), self._learner
        if not self._n_rows:
            return 0.0
        if learner._is_linear:
            rows = self._rows(row, "sparse")
            return float(learner.coef_[rows.indices] @ rows.data)
        return float(learner._scores(learner.state_, self._rows(row, "dense"))[0])

    def predict_proba_one(self, x: dict[Hashable, Any], **kwargs: Any) -> dict[Any, float]:
        """The score of a row on a scale from 0 to 1, for each label.

        ``1 / (1 + exp(-(score - offset) / spread))`` for the rare label: one half at the threshold
        of the decision; the spread is the standard deviation of about the last thousand scores. It
        is no calibrated probability: rank rows of different times by `score_one`.
        """
        if self._threshold is None:
            self._threshold = float(self._learner.offset_)
        above = self.score_one(x) - self._threshold
        rare = float(expit(above / (sqrt(self._variance) or 1.0)))
        return {self._majority: 1.0 - rare, self._rare: rare}

    def _make_room(self, row: dict[Hashable, float]) -> None:
        """Give every feature of a row a column; the order of the dict does not matter."""
        for name in sorted(row.keys() - self._columns.keys(), key=repr):
            self._columns[name] = len(self._columns)
        width, n = self._learner.n_features_in_, len(self._columns)
        if not self._n_rows:
            self._learner.start(max(n, 1), self.classes)
        elif n > width:
            # A quarter more than before: a new width copies the state, covariance and all.
            self._learner.add_features(max(n - width, width // 4))

    def _rows(self, row: dict[Hashable, float], takes: str) -> Any:
        """Return a row as a learner takes it, without the features that have no column yet."""
        columns = self._columns
        known = sorted((columns[name], v) for name, v in row.items() if v and name in columns)
        pairs = np.array(known, float).reshape(-1, 2)
        indices, values = pairs[:, 0].astype(np.int64), pairs[:, 1].copy()
        if takes == "sparse":
            return SparseRows(np.array([0, len(known)]), indices, values)
        dense = np.zeros((1, self._learner.n_features_in_))
        dense[0, indices] = values
        return dense

    def _sign(self, y: Any) -> int:
        sign = int(y == self._rare) - int(y == self._majority)
        if sign == 0:
            raise ErrorKind.LABELS.error(
                f"label {y!r} is neither {self._majority!r} (majority) nor {self._rare!r} (rare). "
                "A row without a label can only be scored; as_river takes classes=(majority, rare)."
            )
        return sign


def cells(x: Mapping[Hashable, Any]) -> dict[Hashable, float]:
    """The features of a row that are present, as numbers; others and infinite ones are refused.

    >>> cells({"size": 2, "new": True, "colour": "red", "age": None})
    {'size': 2.0, 'new': 1.0, 'colour=red': 1.0}
    """
    if not isinstance(x, Mapping):
        raise TypeError(f"x={x!r} is not a row of River: pass a dict of features by name.")
    found: dict[Hashable, float] = {}
    for name, value in x.items():
        if isinstance(value, str):
            found[f"{name}={value}"] = 1.0
        elif value is not None:
            try:
                number = float(value)
            except (TypeError, ValueError, OverflowError):
                number = inf
            if isinf(number):
                raise ErrorKind.CELL.error(
                    f"{name!r} is {value!r}: pass text, a finite number or None."
                )
            if number == number:
                found[name] = number
    return found
