"""Wrappers of any estimator: one score a row, the columns that its fit takes, and their folds."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    clone,
    is_outlier_detector,
)
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import _num_samples, has_fit_parameter

from rareclass.errors import ErrorKind, no_rows
from rareclass.findings import Finding, warn
from rareclass.folds.dealing import one_a_row
from rareclass.labels.partial_labels import signs
from rareclass.labels.spelling import plain, refuse_missing, spelled_as
from rareclass.labels.two_classes import Labels, label_array, read_labels
from rareclass.labels.weights import row_weights
from rareclass.metrics import roc_auc
from rareclass.metrics.scored_classes import FloatArray
from rareclass.parameters import seed_of

Folds = list[tuple[np.ndarray, np.ndarray]]
RESPONSES = ("score_samples", "decision_function", "predict_proba")


@runtime_checkable
class _Ranker(Protocol):
    pos_label_: Any
    score_samples: Any


def rarity_scores(
    estimator: Any,
    X: Any,
    pos_label: Any,
    responses: Sequence[str] | None = None,
    classes: Sequence[Any] = (False, True),
    is_finite: bool = True,
) -> FloatArray:
    """Scores of rows by a fitted estimator, higher where `pos_label` is likelier; shape (n_rows,).

    Taken is the first of `responses` that there is: by default ``score_samples`` of an estimator
    with a ``pos_label_`` (a ranker of this package), else ``decision_function`` or
    ``predict_proba``. Outlier detectors of scikit-learn score inliers high: theirs are turned.
    `classes` are those of an estimator that names none.

    Raises `InputError` where there is no response, the estimator does not know `pos_label`, or a
    score is NaN or, if `is_finite`, infinite, naming the row.
    """
    name, ranks = type(estimator).__name__, is_ranker(estimator)
    if responses is None:
        responses = RESPONSES[:1] if ranks else RESPONSES[1:]
    found = ((each, getattr(estimator, each, None)) for each in responses)
    response, method = next((pair for pair in found if pair[1] is not None), ("", None))
    if method is None:
        raise ErrorKind.UNSUPPORTED.error(
            f"{name} has no {' or '.join(responses)}: there is nothing to rank rows by.",
            "Use a classifier that has one.",
        )
    from rareclass.tables.frames import native_table

    scores = np.asarray(method(native_table(X)), dtype=np.float64)
    if is_outlier_detector(estimator) and not ranks:
        scores = -scores
    elif response == "score_samples":
        if ranks and last_step(estimator).pos_label_ != pos_label:
            scores = -scores
    else:
        of_estimator = list(getattr(estimator, "classes_", classes))
        if len(of_estimator) != 2 or pos_label not in of_estimator:
            raise ErrorKind.LABELS.error(
                f"{name} learned the labels {[plain(each) for each in of_estimator]}, "
                f"which are not two classes with {plain(pos_label)!r}.",
                "Fit it on rows of both classes.",
            )
        place = of_estimator.index(pos_label)
        scores = scores[:, place] if scores.ndim == 2 else (scores if place else -scores)
    if response == "predict_proba":
        what, bad = "not between 0 and 1", ~((scores >= 0.0) & (scores <= 1.0))
    else:
        what, bad = "no finite number", ~np.isfinite(scores) if is_finite else np.isnan(scores)
    if bad.any():
        row = int(bad.argmax())
        kind = ErrorKind.CELL if response == "predict_proba" else ErrorKind.NOT_FINITE
        raise kind.error(
            f"{response} of {name} gives row {row} the score {scores[row]:g}, which is {what}.",
            "Check the estimator and that row.",
            row=row,
            value=scores.item(row),
        )
    return scores


def fit_columns(estimator: Any, columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the columns that the estimator's fit takes, by the name that it has for them.

    In a pipeline these are columns of the last step. A column that is None is left out.
    """
    prefix = f"{estimator.steps[-1][0]}__" if is_pipeline(estimator) else ""
    return {
        prefix + name: np.asarray(column)
        for name, column in columns.items()
        if column is not None and has_fit_parameter(last_step(estimator), name)
    }


def is_ranker(estimator: Any) -> bool:
    """Return whether only the order of its scores is trained, as by the rankers of this package."""
    return isinstance(last_step(estimator), _Ranker)


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline; another estimator itself."""
    return estimator.steps[-1][1] if is_pipeline(estimator) else estimator


def is_pipeline(estimator: Any) -> bool:
    """Return whether this is a pipeline of scikit-learn."""
    from sklearn.pipeline import Pipeline

    return isinstance(estimator, Pipeline)


class WrappedRows(NamedTuple):
    """Training rows as folds take parts of them."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    labels: Labels

    @property
    def is_rare(self) -> np.ndarray:
        """True for each rare row of weight above 0."""
        return self.labels.is_rare(len(self.y))


class TwoClassScorer(ClassifierMixin):
    """Labels of two classes and an AUC, for whatever decides by a rarity score.

    Subclasses define ``score_samples``, ``decision_function``, ``classes_`` and ``pos_label_``.
    """

    classes_: np.ndarray
    pos_label_: Any
    decision_function: Callable[[Any], np.ndarray]
    score_samples: Callable[[Any], np.ndarray]

    def predict(self, X: Any) -> np.ndarray:
        """Label of every row: ``classes_[1]`` where `decision_function` is above 0."""
        is_second = self.decision_function(X) > 0.0  # says where it is not fitted
        return self.classes_[is_second.astype(int)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Area under the ROC curve of the rare class (of any, of several) against the majority.

        Raises `ValueError` where y lacks a class, a row's label, or has one that `fit` did not see.
        """
        scores = self.score_samples(X)
        y = label_array(y)
        refuse_missing(y)
        sign = signs(y, self.classes_, self.pos_label_)
        if len(sign) and (sign == sign[0]).all():
            raise ErrorKind.LABELS.error(
                f"y holds the class {plain(y[0])!r} only: an AUC needs rows of both "
                f"classes, {self.classes_.tolist()}."
            )
        return roc_auc(sign > 0, scores, sample_weight)

    @property
    def _rare_is_last(self) -> bool:
        return bool(self.pos_label_ == self.classes_[1])

    def _by_class(self, rare: FloatArray) -> FloatArray:
        """Return the probability of each of ``classes_`` from that of the rare class."""
        columns = (1.0 - rare, rare)
        return np.column_stack(columns if self._rare_is_last else columns[::-1])

    def _towards_last(self, decision: FloatArray) -> FloatArray:
        """Return decisions, above 0 for rare, as above 0 where ``classes_[1]`` is predicted."""
        if self._rare_is_last:
            return decision
        # A row at the threshold is not rare: turned round, it must be just above zero.
        return np.where(decision == 0.0, np.finfo(np.float64).tiny, -decision)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class EstimatorWrapper(TwoClassScorer, MetaEstimatorMixin, BaseEstimator):
    """Base of classifiers of two classes that are made of another estimator, learned in folds.

    Subclasses define ``estimator``, ``cv``, ``pos_label``, ``random_state`` and ``n_jobs``, and
    what a `TwoClassScorer` does.
    """

    estimator: Any
    cv: Any
    pos_label: Any
    random_state: Any
    n_jobs: int | None
    held_out_scores_: FloatArray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = deepcopy(get_tags(self.estimator).input_tags)
        return tags

    def _read(self, X: Any, y: Any, sample_weight: Any) -> WrappedRows:
        """Read rows, labels and weights, and keep the labels."""
        from rareclass.tables.frames import native_table

        (X,) = indexable(native_table(X))
        n_rows = _num_samples(X)
        if not n_rows:
            raise no_rows("X")
        weight = row_weights(sample_weight, n_rows)
        labels = read_labels(y, weight, self.pos_label, n_rows)
        self.classes_, self.pos_label_ = labels.classes, labels.pos_label
        y = spelled_as(label_array(y).reshape(-1), labels.classes)
        return WrappedRows(X, y, weight, labels)

    def _tell_of_weights(
        self, rows: WrappedRows, where: str, finding: Finding | None = None
    ) -> None:
        """Warn of weights that the estimator does not take."""
        if rows.weight is not None and not fit_columns(self.estimator, {"sample_weight": rows.y}):
            name = type(last_step(self.estimator)).__name__
            warn(f"{name} takes no sample_weight: weights count {where} alone.", finding=finding)

    def _n_folds(self) -> int | None:
        """Number of folds that ``cv`` is; None where it is a splitter or a list of folds."""
        is_number = isinstance(self.cv, (int, np.integer)) and not isinstance(self.cv, bool)
        return int(self.cv) if is_number else None

    def _split(
        self, rows: WrappedRows, target: np.ndarray, by: Any, remedy: str, splitter: Any = None
    ) -> Folds:
        """Row numbers to learn from and to score, by fold; `by` are the groups of all splitters.

        A whole number of folds stands for parts of the groups, or else stratified ones.
        """
        from rareclass.folds.splitters import splitter_for

        n_folds = self._n_folds()
        if n_folds is not None and splitter is None:
            n_folds = folds_at_most(n_folds, rows.labels, remedy) if by is None else n_folds
            splitter = splitter_for(n_folds, seed_of(self.random_state), rows.labels.pos_label, by)
        if splitter is None:
            kept, pairs = np.arange(len(target)), given_splits(self.cv, rows.X, target, by)
        else:
            kept = rows.labels.kept
            among = None if by is None else one_a_row(by, len(rows.y), "groups")[kept]
            pairs = splitter.split(kept, rows.y[kept], among)
        return [(kept[train], kept[test]) for train, test in pairs]

    def _keep_held_out(self, folds: Folds, scores: Sequence[FloatArray], n_rows: int) -> np.ndarray:
        """Keep the mean held-out score of every row; return how many folds test each."""
        places = np.concatenate([test for _, test in folds])
        times = np.bincount(places, minlength=n_rows)
        total = np.bincount(places, np.concatenate(scores), n_rows)
        self.held_out_scores_ = np.full(n_rows, np.nan)
        np.divide(total, times, out=self.held_out_scores_, where=times > 0)
        return times

    def _fitted(
        self, rows: WrappedRows, chosen: np.ndarray | None, columns: Mapping[str, Any]
    ) -> Any:
        """Fit the estimator on some rows, None for all, with their part of the columns it takes."""
        X, y = rows.X, rows.y
        given = fit_columns(self.estimator, columns)
        if chosen is not None:
            X, y = _safe_indexing(X, chosen), y[chosen]
            given = {name: column[chosen] for name, column in given.items()}
        return clone(self.estimator).fit(X, y, **given)

    def _keep_columns(self, model: Any) -> None:
        """Keep the columns that a fitted estimator has, where it has them."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            value = getattr(model, name, None)
            if value is not None:
                setattr(self, name, value)


def folds_at_most(cv: int, labels: Labels, remedy: str) -> int:
    """Return the number of stratified folds that there are rows for, with a warning of fewer.

    Raises `InputError` below 2 folds, or 2 rows of the smaller class.
    """
    fewest = min(len(labels.rare), len(labels.majority))
    if cv < 2 or fewest < 2:
        raise ErrorKind.TOO_FEW_ROWS.error(
            f"cv={cv} and {fewest} rows of the smaller class: cross-validation needs at least 2 "
            "folds and 2 rows of each class.",
            remedy,
        )
    if fewest < cv:
        warn(f"only {fewest} rows of the smaller class: {fewest} folds in place of {cv}.")
    return min(cv, fewest)


def given_splits(cv: Any, X: Any, y: np.ndarray, groups: Any = None) -> list[tuple[Any, Any]]:
    """Training and test rows of a splitter, or of a list of (train, test).

    Raises `InputError` where `cv` is neither.
    """
    from sklearn.model_selection import check_cv

    try:
        is_none = cv is None or isinstance(cv, bool)  # which scikit-learn takes for numbers
        splitter = check_cv("" if is_none else cv, y, classifier=True)
    except ValueError:
        raise ErrorKind.SETTING.error(
            f"cv={cv!r} is not a number of folds, a splitter or a list of folds."
        ) from None
    return list(splitter.split(X, y, groups))
