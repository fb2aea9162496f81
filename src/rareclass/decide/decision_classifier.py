"""DecisionClassifier: any classifier or ranker with a threshold that keeps a constraint."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted

from rareclass.decide.constraints import AtMostAlertsADay
from rareclass.decide.rarity_scores import fit_columns, last_step, scores_inliers_high
from rareclass.decide.threshold_rule import (
    ChosenBand,
    ChosenThreshold,
    ReviewBand,
    ThresholdRule,
)
from rareclass.errors import ErrorKind, InputError
from rareclass.findings import FindingKind, warn
from rareclass.folds import RareGroupKFold, RareStratifiedKFold, RareTimeSplit
from rareclass.folds.dealing import read_times
from rareclass.labels.two_classes import Labels, read_labels, row_weights, signs
from rareclass.metrics.areas import roc_auc

ALERT, PASS = "alert", "pass"
RESPONSES = ("score_samples", "decision_function", "predict_proba")
_REFITTED = "the model of all rows is none of those that scored them"
_GROUPED = "rows of a group are not independent of each other"
Folds = list[tuple[np.ndarray, np.ndarray]]


def _has(name: str) -> Any:
    """Make the test of whether the estimator inside has a method."""

    def check(self: "DecisionClassifier") -> bool:
        return hasattr(getattr(self, "estimator_", self.estimator), name)

    return check


class DecisionClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Any scikit-learn classifier or ranker, with a threshold that keeps a constraint.

    Held-out scores of all rows come from models that did not learn from them; `rule` chooses the
    threshold; a model of all rows then predicts: rare is what scores above ``threshold_``.

    Parameters
    ----------
    estimator : estimator
        With ``score_samples``, ``decision_function`` or ``predict_proba``.
    rule : ThresholdRule or ReviewBand
        What the threshold keeps; a `ReviewBand` makes two.
    cv : int, splitter, iterable of (train, test) or "prefit", default=5
        What holds rows out. An integer: that many `RareStratifiedKFold`, or `RareGroupKFold` where
        `fit` is given groups, or else `RareTimeSplit` where it is given time. A row may be tested
        once at most. "prefit": `estimator` is fitted already, and `fit` is given rows that it did
        not see.
    refit : bool, default=True
        Fit on all rows after the threshold is chosen. False, with a `cv` of a single split, keeps
        the model of that split.
    response : {"auto", "score_samples", "decision_function", "predict_proba"}
        What is thresholded; "auto" is the first that the estimator has. Of an outlier detector of
        scikit-learn, which scores inliers high, the scores are turned.
    unmet : {"warn", "raise"}, default="warn"
        What happens when no threshold meets the constraint.
    pos_label : label or None, default=None
        The rare class; None is the label of fewer rows.
    random_state : int or None, default=None
        Shuffles folds; None is 0.
    n_jobs : int or None, default=None
        Folds that are learned at a time.

    Attributes
    ----------
    threshold_ : float
        On the scale of `score_samples`. With a `ReviewBand`: above which a row is blocked.
    decision_ : ChosenThreshold or ChosenBand
        Whether the constraint is met and how held-out rows do: alerts, precision, recall.
    held_out_scores_ : ndarray of shape (n_rows,)
        NaN for rows of no test part.
    estimator_ : estimator
    classes_ : ndarray of shape (2,)
    pos_label_ : label
    n_features_in_, feature_names_in_
        As of `estimator_`, where it has them.

    Raises
    ------
    ValueError
        On parameters outside their range, one class or more than two.
    InputError
        Where folds cannot all hold rare rows, all scores are tied, or with ``unmet="raise"``.

    Warns
    -----
    UserWarning
        Where the constraint is not met, with the finding.

    Notes
    -----
    The guarantee of a rule is for the scores that it was shown. It is exact with ``cv="prefit"``,
    and with ``refit=False`` and a single split. With folds and a refit it is for the folds'
    models; that of all rows learned from more, and its scores may lie a little otherwise (decision
    0031 has how often constraints then hold).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(3000, weights=[0.95], class_sep=2, random_state=0)
    >>> model = DecisionClassifier(LogisticRegression(), ThresholdRule.min_precision(0.7))
    >>> chosen = model.fit(X, y).decision_
    >>> chosen.met, chosen.procedure
    (True, 'learn then test, fixed sequence')
    """

    def __init__(
        self,
        estimator: Any,
        rule: Any,
        cv: Any = 5,
        refit: bool = True,
        response: str = "auto",
        unmet: str = "warn",
        pos_label: Any = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.rule = rule
        self.cv = cv
        self.refit = refit
        self.response = response
        self.unmet = unmet
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        time: Any = None,
        costs: Mapping[str, Any] | None = None,
    ) -> Self:
        """Score rows by models that did not see them, choose the threshold, learn from all rows.

        Parameters
        ----------
        X : whatever the estimator takes, of n_rows rows
        y : array-like of shape (n_rows,)
            Two labels of any type.
        sample_weight : array-like of shape (n_rows,), optional
            Copies of each row; for the estimator, where its fit takes them, and for the rule.
        groups : array-like of shape (n_rows,), optional
            Rows of one group are held out together.
        time : array-like of shape (n_rows,), optional
            When each row was: for rules about days, and for folds where no groups are given.
            Groups and time are handed to the estimator as well where its fit takes them.
        costs : mapping of str to array-like of shape (n_rows,), optional
            Costs of each row, by the names that the rule has for them.

        Returns
        -------
        estimator
            This one.
        """
        self._check_parameters()
        (X,) = indexable(X)
        n_rows = _num_samples(X)
        if n_rows == 0:
            raise InputError(
                "X has 0 rows.", "Rows of both classes are needed.", ErrorKind.TOO_FEW_ROWS
            )
        labels = read_labels(y, sample_weight, self.pos_label, n_rows)
        self.classes_, self.pos_label_ = labels.classes, labels.pos_label
        weight = row_weights(sample_weight, n_rows)
        y = np.asarray(y).ravel()
        if isinstance(self.cv, str):
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            self.held_out_scores_ = self._scores(self.estimator, X)
        else:
            columns = {"sample_weight": weight, "groups": groups, "time": time}
            given = fit_columns(self.estimator, columns)
            if weight is not None and not any(name.endswith("sample_weight") for name in given):
                warn(
                    f"{type(last_step(self.estimator)).__name__}.fit takes no sample_weight: "
                    "weights count for the threshold alone."
                )
            folds = self._folds(X, y, labels, groups, time)
            self._learn(X, y, given, folds)
        self._keep_columns()
        is_rare = np.zeros(n_rows, dtype=bool)
        is_rare[labels.rare] = True
        self._choose(is_rare, weight, time, costs, grouped=groups is not None)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """The estimator's score of every row, turned so that higher is rarer.

        Parameters
        ----------
        X : whatever the estimator takes

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self, "decision_")
        return self._scores(self.estimator_, X)

    def decision_function(self, X: Any) -> np.ndarray:
        """Distance of the score from ``threshold_``, above 0 where ``classes_[1]`` is predicted."""
        scores = self.score_samples(X)
        if np.isinf(self.threshold_):
            decision = np.where(scores > self.threshold_, np.inf, -np.inf)
        else:
            decision = scores - self.threshold_
        if self.pos_label_ == self.classes_[1]:
            return decision
        # A row at the threshold is not rare: turned round, it must be just above zero.
        return np.where(decision == 0.0, np.finfo(np.float64).tiny, -decision)

    def predict(self, X: Any) -> np.ndarray:
        """The label of every row: the rare one where its score is above ``threshold_``."""
        is_second = self.decision_function(X) > 0.0
        return self.classes_[is_second.astype(int)]

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """The estimator's probabilities, as they are: `predict` goes by the threshold."""
        check_is_fitted(self, "decision_")
        return self.estimator_.predict_proba(X)

    def decide(self, X: Any) -> np.ndarray:
        """ "block", "review" or "pass" for every row; without a band "alert" or "pass"."""
        scores = self.score_samples(X)
        if isinstance(self.decision_, ChosenBand):
            return self.decision_.decide(scores)
        return np.where(scores > self.threshold_, ALERT, PASS)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Area under the ROC curve of the scores, in [0, 1]; no threshold matters to it."""
        scores = self.score_samples(X)
        sign = signs(np.asarray(y), self.classes_, self.pos_label_)
        return roc_auc(sign > 0, scores, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags = deepcopy(get_tags(self.estimator).input_tags)
        return tags

    # -- inside ------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if not isinstance(self.rule, (ThresholdRule, ReviewBand)):
            raise ValueError(f"rule={self.rule!r} must be a ThresholdRule or a ReviewBand.")
        if self.response not in ("auto", *RESPONSES):
            raise ValueError(f"response={self.response!r} is not one of {['auto', *RESPONSES]}.")
        if self.unmet not in ("warn", "raise"):
            raise ValueError(f"unmet={self.unmet!r} must be 'warn' or 'raise'.")
        if isinstance(self.cv, str) and self.cv != "prefit":
            raise ValueError(f"cv={self.cv!r} is not a number of folds, a splitter or 'prefit'.")

    def _scores(self, model: Any, X: Any) -> np.ndarray:
        named = RESPONSES if self.response == "auto" else (self.response,)
        name = next((one for one in named if hasattr(model, one)), None)
        if name is None:
            raise ValueError(f"{type(model).__name__} has none of {list(named)}.")
        values = np.asarray(getattr(model, name)(X), dtype=float)
        classes = np.asarray(getattr(model, "classes_", self.classes_))
        if not np.array_equal(classes, self.classes_):
            raise InputError(
                f"the estimator knows the classes {classes.tolist()}, and y holds "
                f"{self.classes_.tolist()}.",
                "Give rows of both classes that it learned.",
                ErrorKind.LABELS,
            )
        if name == "predict_proba":
            values = values[:, int(self.pos_label_ == self.classes_[1])]
        elif self._turned(model, name):
            values = -values
        missing = np.flatnonzero(np.isnan(values))
        if len(missing):
            raise InputError(
                f"{name} of {type(model).__name__} is NaN at row {missing[0]} of those given.",
                "Leave such rows out, or use an estimator that scores them.",
                ErrorKind.NOT_FINITE,
                row=int(missing[0]),
            )
        return values

    def _turned(self, model: Any, response: str) -> bool:
        """Return whether the model answers lower numbers where rows are rarer."""
        if scores_inliers_high(model):
            return True
        if response == "decision_function":
            return bool(self.pos_label_ == self.classes_[0])
        return bool(getattr(last_step(model), "pos_label_", self.pos_label_) != self.pos_label_)

    def _folds(self, X: Any, y: np.ndarray, labels: Labels, groups: Any, time: Any) -> Folds:
        n_rows = len(y)
        if not isinstance(self.cv, (int, np.integer)) or isinstance(self.cv, bool):
            if not (hasattr(self.cv, "split") or isinstance(self.cv, Iterable)):
                raise ValueError(f"cv={self.cv!r} is not a number of folds, a splitter or a list.")
            by = time if isinstance(self.cv, RareTimeSplit) else groups
            folds = list(check_cv(self.cv, y, classifier=True).split(X, y, by))
        else:
            kept = np.sort(np.concatenate([labels.rare, labels.majority]))
            splitter, by = self._splitter(int(self.cv), labels, groups, time, n_rows)
            by = None if by is None else np.asarray(by)[kept]
            folds = [(kept[a], kept[b]) for a, b in splitter.split(kept, y[kept], by)]
        tested = np.bincount(np.concatenate([test for _, test in folds]), minlength=n_rows)
        if tested.max() > 1:
            raise ValueError(
                f"cv tests row {int(np.argmax(tested > 1))} more than once: a threshold needs "
                "each row once at most. Use a splitter without repeats."
            )
        if not self.refit and len(folds) > 1:
            raise ValueError(
                f"refit=False keeps the model of a single split, and cv makes {len(folds)}: use "
                "refit=True, or a cv of one split such as ShuffleSplit(1)."
            )
        return folds

    def _splitter(self, cv: int, labels: Labels, groups: Any, time: Any, n_rows: int) -> Any:
        """Splitter that an integer stands for, and the column that it splits by."""
        seed = 0 if self.random_state is None else self.random_state
        if groups is not None:
            return RareGroupKFold(cv, random_state=seed, pos_label=labels.pos_label), groups
        if time is not None:
            read = read_times(time, n_rows)
            if self._about_days():  # a day is tested whole, or not at all
                read = read.astype("M8[D]") if read.dtype.kind == "M" else np.floor(read)
            return RareTimeSplit(cv, pos_label=labels.pos_label), read
        fewest = min(len(labels.rare), len(labels.majority))
        if cv < 2 or fewest < 2:
            raise InputError(
                f"cv={cv} and {fewest} rows of the smaller class: held-out scores need at least 2 "
                "folds and 2 rows of each class.",
                'Use cv="prefit" with other rows.',
                ErrorKind.TOO_FEW_ROWS,
            )
        if fewest < cv:
            warn(f"only {fewest} rows of the smaller class: {fewest} folds in place of {cv}.")
        folds = min(cv, fewest)
        return RareStratifiedKFold(folds, random_state=seed, pos_label=labels.pos_label), None

    def _about_days(self) -> bool:
        rules = (
            (self.rule.block, self.rule.review)
            if isinstance(self.rule, ReviewBand)
            else (self.rule,)
        )
        return any(isinstance(rule.constraint, AtMostAlertsADay) for rule in rules)

    def _learn(self, X: Any, y: np.ndarray, given: dict[str, np.ndarray], folds: Folds) -> None:
        """Held-out scores of all folds, and the model that predicts."""

        def learned(rows: np.ndarray | None) -> Any:
            if rows is None:
                return clone(self.estimator).fit(X, y, **given)
            columns = {name: column[rows] for name, column in given.items()}
            return clone(self.estimator).fit(_safe_indexing(X, rows), y[rows], **columns)

        def held_out(train: np.ndarray, test: np.ndarray) -> tuple[Any, np.ndarray]:
            model = learned(train)
            return (None if self.refit else model), self._scores(model, _safe_indexing(X, test))

        scored = Parallel(n_jobs=self.n_jobs)(delayed(held_out)(*fold) for fold in folds)
        self.held_out_scores_ = np.full(len(y), np.nan)
        for (_, test), (_, scores) in zip(folds, scored, strict=True):
            self.held_out_scores_[test] = scores
        self.estimator_ = learned(None) if self.refit else scored[0][0]

    def _keep_columns(self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    def _choose(
        self,
        is_rare: np.ndarray,
        weight: np.ndarray | None,
        time: Any,
        costs: Mapping[str, Any] | None,
        grouped: bool,
    ) -> None:
        tested = ~np.isnan(self.held_out_scores_)
        self.decision_ = self.rule.choose(
            is_rare[tested],
            self.held_out_scores_[tested],
            None if weight is None else weight[tested],
            costs={name: np.asarray(column)[tested] for name, column in (costs or {}).items()},
            time=None if time is None else np.asarray(time)[tested],
        )
        if not isinstance(self.cv, str) and self.refit:
            self.decision_ = self.decision_.approximately(_REFITTED)
        if grouped:
            self.decision_ = self.decision_.approximately(_GROUPED)
        band = isinstance(self.decision_, ChosenBand)
        chosen: list[ChosenThreshold] = (
            [self.decision_.block, self.decision_.review] if band else [self.decision_]
        )
        self.threshold_ = chosen[0].threshold
        for one in chosen:
            for finding in one.findings:
                if finding.kind == FindingKind.CONSTRAINT_NOT_MET and self.unmet == "raise":
                    raise InputError(one.says(), kind=ErrorKind.NOT_REACHABLE)
                if finding.kind == FindingKind.CONSTRAINT_NOT_MET:
                    warn(one.says(), finding=finding)
