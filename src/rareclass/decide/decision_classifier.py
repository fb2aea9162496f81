"""DecisionClassifier: any classifier or ranker with a threshold that keeps a constraint."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from rareclass.decide.alert_budget import PERIODS, AtMostAlertsAPeriod, covered_periods
from rareclass.decide.rarity_scores import (
    RESPONSES,
    EstimatorWrapper,
    Folds,
    WrappedRows,
    rarity_scores,
)
from rareclass.decide.threshold_rule import ChosenBand, ReviewBand, ThresholdRule
from rareclass.errors import ErrorKind
from rareclass.findings import warn
from rareclass.folds import RareTimeSplit
from rareclass.folds.dealing import one_a_row, read_times
from rareclass.machine import all_or_nothing
from rareclass.parameters import check_choice

ALERT, PASS = "alert", "pass"
_REFITTED = "the model of all rows is none of those that scored them"


def _has_probabilities(model: "DecisionClassifier") -> bool:
    return hasattr(vars(model).get("estimator_", model.estimator), "predict_proba")


@dataclass(eq=False, repr=False)
class DecisionClassifier(EstimatorWrapper):
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
    (True, 'fixed sequence of exact binomial tests')
    """

    estimator: Any
    rule: Any
    cv: Any = 5
    refit: bool = True
    response: str = "auto"
    unmet: str = "warn"
    pos_label: Any = None
    random_state: int | None = None
    n_jobs: int | None = None

    @all_or_nothing
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
            Rows of one group are held out together, and count together for the rule.
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
        rows = self._read(X, y, sample_weight)
        if isinstance(self.cv, str):
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            self.held_out_scores_ = self._scores(self.estimator, rows.X)
        else:
            columns = {"sample_weight": rows.weight, "groups": groups, "time": time}
            self._tell_of_weights(rows, "for the threshold")
            self._learn(rows, columns, self._folds(rows, groups, time))
        self._keep_columns(self.estimator_)
        self._choose(rows, time, costs, groups)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """The estimator's score of every row, turned so that higher is rarer; shape (n_rows,)."""
        check_is_fitted(self, "decision_")
        return self._scores(self.estimator_, X)

    def decision_function(self, X: Any) -> np.ndarray:
        """Distance of the score from ``threshold_``, above 0 where ``classes_[1]`` is predicted.

        With an infinite threshold these are finite numbers of one sign, in the order of the scores:
        scorers of scikit-learn take no infinite ones.
        """
        scores = self.score_samples(X)
        if np.isinf(self.threshold_):
            side = np.sign(self.threshold_)
            size = np.abs(scores) + np.hypot(scores, 1.0)
            return self._towards_last(-side * np.where(side * scores > 0, 0.5 / size, 0.5 * size))
        return self._towards_last(scores - self.threshold_)

    @available_if(_has_probabilities)
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

    # -- inside ------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if not isinstance(self.rule, (ThresholdRule, ReviewBand)):
            raise ErrorKind.SETTING.error(f"rule={self.rule!r} is no ThresholdRule or ReviewBand.")
        check_choice("response", self.response, ("auto", *RESPONSES))
        check_choice("unmet", self.unmet, ("warn", "raise"))
        if isinstance(self.cv, str) and self.cv != "prefit":
            raise ErrorKind.SETTING.error(f"cv={self.cv!r} is no number, splitter or 'prefit'.")

    def _scores(self, model: Any, X: Any) -> np.ndarray:
        named = RESPONSES if self.response == "auto" else (self.response,)
        classes = self.classes_.tolist()
        return rarity_scores(model, X, self.pos_label_, named, classes, is_finite=False)

    def _folds(self, rows: WrappedRows, groups: Any, time: Any) -> Folds:
        splitter, n_folds = None, self._n_folds()
        by = time if isinstance(self.cv, RareTimeSplit) else groups
        if n_folds is not None and time is not None and groups is None:
            by = self._time_of_folds(time, len(rows.y))
            splitter = RareTimeSplit(n_folds, pos_label=rows.labels.pos_label)
        folds = self._split(rows, rows.y, by, 'Use cv="prefit" with other rows.', splitter)
        tested = np.bincount(np.concatenate([test for _, test in folds]))
        if tested.max() > 1:
            raise ErrorKind.ROWS.error(
                f"cv tests row {int(np.argmax(tested > 1))} more than once: a threshold needs "
                "each row once at most. Use a splitter without repeats."
            )
        if not self.refit and len(folds) > 1:
            raise ErrorKind.COMBINATION.error(
                f"refit=False keeps the model of a single split, and cv makes {len(folds)}: use "
                "refit=True, or a cv of one split such as ShuffleSplit(1)."
            )
        return folds

    def _time_of_folds(self, time: Any, n_rows: int) -> np.ndarray:
        """Times, or the periods of the rule: a day is tested whole, or not at all."""
        read, rule = read_times(time, n_rows), self.rule
        rules = (rule.block, rule.review) if isinstance(rule, ReviewBand) else (rule,)
        limits = (each.constraint for each in rules)
        named = [each.period for each in limits if isinstance(each, AtMostAlertsAPeriod)]
        return covered_periods(read, max(named, key=PERIODS.__getitem__)).place if named else read

    def _learn(self, rows: WrappedRows, columns: Mapping[str, Any], folds: Folds) -> None:
        """Held-out scores of all folds, and the model that predicts."""

        def held_out(train: np.ndarray, test: np.ndarray) -> tuple[Any, np.ndarray]:
            model = self._fitted(rows, train, columns)
            scores = self._scores(model, _safe_indexing(rows.X, test))
            return (None if self.refit else model), scores

        scored = Parallel(n_jobs=self.n_jobs)(delayed(held_out)(*fold) for fold in folds)
        self._keep_held_out(folds, [scores for _, scores in scored], len(rows.y))
        self.estimator_ = self._fitted(rows, None, columns) if self.refit else scored[0][0]

    def _choose(self, rows: WrappedRows, time: Any, costs: Any, groups: Any) -> None:
        tested, weight, n_rows = ~np.isnan(self.held_out_scores_), rows.weight, len(rows.y)
        self.decision_ = self.rule.choose(
            rows.is_rare[tested],
            self.held_out_scores_[tested],
            None if weight is None else weight[tested],
            costs={k: one_a_row(given, n_rows, k)[tested] for k, given in (costs or {}).items()},
            time=None if time is None else one_a_row(time, n_rows, "time")[tested],
            groups=None if groups is None else one_a_row(groups, n_rows, "groups")[tested],
        )
        if not isinstance(self.cv, str) and self.refit:
            self.decision_ = self.decision_.approximately(_REFITTED)
        found = self.decision_
        chosen = (found.block, found.review) if isinstance(found, ChosenBand) else (found,)
        self.threshold_ = chosen[0].threshold
        for one in chosen:
            if not one.met and self.unmet == "raise":
                raise ErrorKind.NOT_REACHABLE.error(one.says())
            if not one.met:
                warn(one.says(), finding=one.findings[0])
