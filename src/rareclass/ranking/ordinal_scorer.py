"""From a score to an ordered level, and to a MAUC."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from rareclass.labels.levels import encode
from rareclass.metrics import mauc


class OrdinalScorer(ClassifierMixin):
    """Levels from a score: what every ordinal ranking machine shares.

    Whoever inherits has ``score_samples``, ``thresholds_`` and ``classes_``. It is a classifier
    to scikit-learn, not a regressor: labels may be text, `predict` gives one of them, and
    splitters and scorers should keep every level in every fold.
    """

    def decision_function(self, X: Any) -> np.ndarray:
        """Rank of every row, one number whatever the number of levels: `score_samples`.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self.score_samples(X)

    def predict(self, X: Any) -> np.ndarray:
        """The level of every row: k where ``thresholds_[k - 1] < score <= thresholds_[k]``."""
        scores = self.score_samples(X)
        return self.classes_[np.searchsorted(self.thresholds_, scores, side="left")]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """MAUC: share of the pairs of rows of different levels that are in order, in [0, 1].

        Raises
        ------
        ValueError
            Where y holds a label that `fit` did not know, or rows of one level only.
        """
        codes = encode(y, self.classes_)[1]
        return mauc(codes, self.score_samples(X), sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
