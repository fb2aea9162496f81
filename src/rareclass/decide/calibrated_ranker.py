"""CalibratedRanker: probabilities from any classifier's scores, with few rare rows."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from rareclass.decide.calibration import METHODS, Calibration, log_odds_shift
from rareclass.decide.rarity_scores import (
    EstimatorWrapper,
    Folds,
    WrappedRows,
    is_ranker,
    rarity_scores,
)
from rareclass.errors import ErrorKind
from rareclass.findings import Finding, FindingKind, warn
from rareclass.folds.score_scale import MajorityScores, ScoreMap, match_majority
from rareclass.machine import all_or_nothing
from rareclass.metrics.scored_classes import FloatArray
from rareclass.parameters import check_choice


class _FoldScorer(NamedTuple):
    """The model of a fold, and the map to the scale that the folds share."""

    model: Any
    scale: ScoreMap

    def __call__(self, X: Any, pos_label: Any) -> FloatArray:
        """Scores of rows, higher where rarer."""
        return self.scale(rarity_scores(self.model, X, pos_label))


@dataclass(eq=False, repr=False)
class CalibratedRanker(EstimatorWrapper):
    r"""Probabilities from any classifier or ranker, at the base rate that is true.

    Every row is scored by a model that has not seen it (cross-fitting), and one map from scores to
    probabilities is learned on all of them together: with few rare rows a map for each fold, as in
    `sklearn.calibration.CalibratedClassifierCV`, has one or two of them to go by. Scores may be
    those of a model that was trained on resampled or weighted rows, and need not look like
    probabilities.

    Parameters
    ----------
    estimator : estimator
        A scikit-learn classifier of two classes, or a pipeline that ends in one, with
        ``decision_function``, ``predict_proba`` or, of this package, ``score_samples``.
    method : {"auto", "isotonic", "beta", "logistic"}, default="auto"
        The map. "auto" is the mean of beta and isotonic calibration, in shares chosen by
        cross-validated log loss, with an ensemble also of isotonic regressions of parts of the
        rows; see `rareclass.decide.calibration` and docs/decisions/0030.
    cv : int, splitter or iterable of (train, test), default=5
        Folds. An integer makes stratified, shuffled folds, fewer when there are fewer rare rows;
        with `groups` they keep groups together. Rows that no fold tests are not mapped from.
    ensemble : bool, default=True
        Score new rows with the models of the folds, and take the mean of their probabilities: the
        map was learned on just their scores. False learns the estimator once more on all rows, and
        scores with that: a fraction of the time and size, but its scores are not quite those
        that the map is about.
    prevalence : float or None, default=None
        Share of rare rows where the model is used, between 0 and 1, if it is not that of the
        training rows by weight: for thinned or case-control training rows.
    majority_sampling_rate : float or None, default=None
        In place of `prevalence`: the share of the majority that was kept for training, in (0, 1].
        Leave both out where `sample_weight` puts back what was left out.
    pos_label : label or None, default=None
        The rare class; None is the label of fewer rows.
    random_state : int, RandomState or None, default=None
        Shuffles the folds; None is 0.
    n_jobs : int or None, default=None
        Folds that are learned at a time, as in joblib.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    pos_label_ : label
    calibration_ : Calibration
        The map; `set_prevalence` changes its prevalence.
    estimators_ : list
        The models that score: those of the folds, or one of all rows.
    held_out_scores_ : ndarray of shape (n_rows,)
        What the map was learned on: mean score of each row by models that have not seen it (a
        ranker's in deviations from the mean of the majority), NaN where no fold tests it or its
        weight is 0.
    n_features_in_, feature_names_in_
        Of the estimator, where it has them.

    Raises
    ------
    ValueError
        On one class or more than two, folds without rare rows, scores that are not finite, weights
        that are all zero, and parameters outside their range.

    Warns
    -----
    UserWarning
        Where all held-out scores are equal, so that every probability is the prevalence; where the
        estimator takes no weights, which then count in the map alone; where folds are fewer.

    Notes
    -----
    Scores of a ranker, such as `RankRC`, say nothing but the order: each model's are measured from
    the mean of the majority, in its deviations. Time: `cv` fits of the estimator (one more with
    ``ensemble=False``), and O(n log n).
    ``sample_weight`` is given to the estimator (to the last step of a pipeline) and to the map:
    whole weights are copies. A weight that balances the classes, such as
    ``class_weight="balanced"`` of the estimator, belongs to the estimator: given here it would
    be taken for what rows stand for.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(600, weights=[0.95], random_state=0)
    >>> balanced = LogisticRegression(class_weight="balanced")
    >>> float(balanced.fit(X, y).predict_proba(X)[:, 1].mean().round(2)), float(y.mean().round(2))
    (0.18, 0.06)
    >>> model = CalibratedRanker(balanced).fit(X, y)
    >>> float(model.predict_proba(X)[:, 1].mean().round(2))
    0.06
    """

    estimator: Any
    method: str = "auto"
    cv: Any = 5
    ensemble: bool = True
    prevalence: float | None = None
    majority_sampling_rate: float | None = None
    pos_label: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    calibration_: Calibration = field(init=False)

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn scores and their map.

        Parameters
        ----------
        X : array, sparse matrix, pandas or polars table, or list of n_rows
            What the estimator takes.
        y : array-like of shape (n_rows,)
            Two labels of any type.
        sample_weight : array-like of shape (n_rows,) or None
            Weights at or above 0: k counts a row k times, 0 leaves it out.
        groups : array-like of shape (n_rows,) or None
            For the folds: rows of one group, such as a customer, are held out together. What a
            splitter given as `cv` takes.

        Returns
        -------
        CalibratedRanker
            This estimator.
        """
        check_choice("method", self.method, tuple(METHODS))
        rows = self._read(X, y, sample_weight)
        # Shares out of range are refused before anything is learned.
        log_odds_shift(0.5, self.prevalence, self.majority_sampling_rate)
        self._tell_of_weights(
            rows, "in the map from scores to probabilities", Finding(FindingKind.WEIGHTS_IN_MAP)
        )
        folds = self._folds(rows, groups)
        fits = (delayed(self._held_out)(rows, train, test) for train, test in folds)
        found = Parallel(n_jobs=self.n_jobs)(fits)
        self._scorers = [scorer for scorer, _ in found]
        self._learn_map(rows, folds, [scores for _, scores in found])
        if not self.ensemble:
            self._scorers = [self._held_out(rows, rows.labels.kept, rows.labels.kept)[0]]
        self.estimators_ = [scorer.model for scorer in self._scorers]
        self._keep_columns(self.estimators_[0])
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each of ``classes_``, strictly between 0 and 1; shape (n_rows, 2)."""
        return self._by_class(self._rare_probability(X))

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-odds of the rare class: higher is rarer; shape (n_rows,)."""
        rare = self._rare_probability(X)
        return np.log(rare) - np.log1p(-rare)

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of ``classes_[1]``, above 0 where it is predicted; shape (n_rows,)."""
        log_odds = self.score_samples(X)
        return log_odds if self._rare_is_last else -log_odds

    def set_prevalence(
        self, prevalence: float | None = None, majority_sampling_rate: float | None = None
    ) -> Self:
        """State another prevalence for the fitted model: nothing is learned again.

        Parameters and errors as in `at_prevalence`; without any it is that of the training rows.
        """
        check_is_fitted(self)
        self.calibration_ = self.calibration_.at(prevalence, majority_sampling_rate)
        return self

    # -- inside ------------------------------------------------------------------------------

    def _folds(self, rows: WrappedRows, groups: Any) -> Folds:
        """Row numbers to learn from and to score, of weight above 0, by fold."""
        is_rare, counts = rows.is_rare, np.zeros(len(rows.y), dtype=bool)
        counts[rows.labels.kept] = True
        pairs, folds = self._split(rows, is_rare, groups, "Give more rows of that class."), []
        for number, (train, test) in enumerate(pairs):
            train, test = train[counts[train]], test[counts[test]]
            if is_rare[train].all() or not is_rare[train].any():
                raise ErrorKind.LABELS.error(
                    f"fold {number + 1} learns from one class only.",
                    "Use fewer folds, or stratified ones: cv=a number, or RareStratifiedKFold.",
                )
            folds.append((train, test))
        return folds

    def _learn_map(self, rows: WrappedRows, folds: Folds, scores: list[FloatArray]) -> None:
        times = self._keep_held_out(folds, scores, len(rows.y))
        places, value = np.concatenate([test for _, test in folds]), np.concatenate(scores)
        weight = None if rows.weight is None else rows.weight[places]
        if times.max() > 1:  # rows that several folds test count once all the same
            weight = (1.0 if weight is None else weight) / times[places]
        is_rare = rows.y[places] == self.pos_label_
        if is_rare.all() or not is_rare.any():
            raise ErrorKind.LABELS.error(
                "the folds test rows of one class only.", "Use stratified folds."
            )
        if value.min() == value.max():
            warn(
                f"all held-out scores of {type(self.estimator).__name__} are equal: every "
                "probability is the prevalence.",
                finding=Finding(FindingKind.CONSTANT_SCORES, {"score": float(value[0])}),
            )
        several = self.ensemble and len(self._scorers) > 1
        found = Calibration.fit(is_rare, value, weight, method=self.method, several_models=several)
        self.calibration_ = found.at(self.prevalence, self.majority_sampling_rate)

    def _rare_probability(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        each = [self.calibration_(scorer(X, self.pos_label_)) for scorer in self._scorers]
        return np.mean(each, axis=0)

    def _held_out(
        self, rows: WrappedRows, train: np.ndarray, test: np.ndarray
    ) -> tuple[_FoldScorer, FloatArray]:
        """Learn from the rows `train`, score the rows `test`; rankers on the majority's scale."""
        model = self._fitted(rows, train, {"sample_weight": rows.weight})
        scorer = _FoldScorer(model, ScoreMap())
        if not len(test):
            return scorer, np.empty(0)
        pos_label = rows.labels.pos_label
        scores = scorer(_safe_indexing(rows.X, test), pos_label)
        majority = rows.y[test] != pos_label
        if not is_ranker(model) or not majority.any():
            return scorer, scores
        weight = None if rows.weight is None else rows.weight[test][majority]
        scale = match_majority(MajorityScores.of(scores[majority], weight))
        return scorer._replace(scale=scale), scale(scores)
