"""Decisions, labels and probabilities where one class is rare, or several."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rareclass.decide.class_thresholds import decades_above
from rareclass.ensemble.combined_ranking import CombinedRanking
from rareclass.estimators.estimator import RankScorer
from rareclass.labels.two_classes import label_array, missing_labels, plain
from rareclass.metrics import roc_auc


class ClassScorer(CombinedRanking, RankScorer):
    """`RankScorer` for one rare class or several; the score is of any rare class."""

    def _predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if not self.has_several:
            return super()._predict_proba(X)
        assert self.calibration_ is not None
        scores, which = self.score_and_classes(X)
        rare = self.calibration_(scores)
        return self._by_class(1.0 - rare, rare[:, None] * which)

    _predict_proba.__name__ = "predict_proba"

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance from the threshold; of several rare classes a column a class.

        With two classes above 0 where ``classes_[1]`` is predicted, see `RankScorer`. With several
        rare classes of shape (n_rows, n_classes): 0 for the rest, and for rare class k
        :math:`log_{10} P(k | x) / t_k` with t_k of ``class_offsets_``, so that the greatest is
        predicted. P is at the share of rare rows of training.
        """
        check_is_fitted(self)
        if not self.has_several:
            return super().decision_function(X)
        scores, which = self.score_and_classes(X)
        known = self.calibration_
        rare = np.zeros(len(scores)) if known is None else known.at()(scores)
        decades = decades_above(rare[:, None] * which, self.class_offsets_)
        return self._by_class(np.zeros(len(scores)), decades)

    def predict(self, X: Any) -> np.ndarray:
        """The label of every row: the rare one where its score is above ``offset_``.

        Of several rare classes the one whose probability is the greatest multiple of its threshold
        in ``class_offsets_``, where it is above it; else the frequent one.
        """
        decision = self.decision_function(X)
        if decision.ndim == 1:
            return self.classes_[(decision > 0.0).astype(int)]
        return self.classes_[decision.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Area under the ROC curve of any rare class against the rest, in [0, 1].

        Raises `ValueError` where y lacks rare rows or others, a row's label, or has one that `fit`
        did not see.
        """
        if not self.has_several:
            return super().score(X, y, sample_weight)
        scores = self.score_samples(X)
        y = label_array(y)
        missing = missing_labels(y)
        if len(missing):
            raise ValueError(f"row {missing[0]} of y has no label: leave out such rows.")
        unknown = np.flatnonzero(~np.isin(y, self.classes_))
        if len(unknown):
            raise ValueError(
                f"row {unknown[0]}: label {plain(y[unknown[0]])!r} is not among the classes "
                f"{self.classes_.tolist()}."
            )
        rare = np.isin(y, np.asarray(self.pos_label_))
        if rare.all() or not rare.any():
            kind = "rare classes" if rare.all() else "the frequent class"
            raise ValueError(f"y holds rows of {kind} only: an AUC needs rows of both.")
        return roc_auc(rare, scores, sample_weight)

    def _by_class(self, rest: np.ndarray, rare: np.ndarray) -> np.ndarray:
        """Return columns in the order of ``classes_``, the frequent class among them."""
        labels = list(self.pos_label_)
        answer = np.empty((len(rest), len(self.classes_)))
        for column, label in enumerate(self.classes_.tolist()):
            answer[:, column] = rare[:, labels.index(label)] if label in labels else rest
        return answer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags
