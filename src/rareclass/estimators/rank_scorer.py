"""From a rarity score to decisions, labels and an AUC."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from rareclass.estimators.probabilities import HasProbabilities
from rareclass.labels.two_classes import label_array, plain, signs
from rareclass.metrics import roc_auc


class RankScorer(HasProbabilities, ClassifierMixin):
    """Decisions from a rarity score: what every ranking classifier shares.

    Whoever inherits has ``score_samples``, ``offset_``, ``classes_`` and ``pos_label_``.
    """

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance from the threshold, above 0 where ``classes_[1]`` is predicted.

        This is ``score_samples(X) - offset_``, negated when the rare class is ``classes_[0]``:
        scikit-learn's scorers expect larger values for the class that sorts last.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        decision = self.score_samples(X) - self.offset_
        if self.pos_label_ == self.classes_[1]:
            return decision
        # A row at the threshold is not rare: turned round, it must be just above zero.
        return np.where(decision == 0.0, np.finfo(np.float64).tiny, -decision)

    def predict(self, X: Any) -> np.ndarray:
        """The label of every row: the rare one where its score is above ``offset_``."""
        decision = self.decision_function(X)
        return self.classes_[(decision > 0.0).astype(int)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Area under the ROC curve of the rare class against the majority, in [0, 1].

        Raises
        ------
        ValueError
            Where y lacks a class, or holds a row without a label or with one that `fit` did not
            see.
        """
        scores = self.score_samples(X)
        y = label_array(y)
        sign = signs(y, self.classes_, self.pos_label_)
        if not sign.all():
            row = int(np.argmax(sign == 0))
            raise ValueError(f"row {row} of y has no label: leave out the rows without one.")
        if len(sign) and (sign == sign[0]).all():
            raise ValueError(
                f"y holds the class {plain(y[0])!r} only: an AUC needs rows of both "
                f"classes, {self.classes_.tolist()}."
            )
        return roc_auc(sign > 0, scores, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags
