"""
Probabilities after undersampling
=================================

To draw as many majority rows as there are rare ones makes learning quick, and makes the classifier
say .5 where one row in a hundred is rare. `CalibratedRanker` gives its scores probabilities at the
true base rate.
"""

# %%
# A forest learns from a balanced part of the rows. `CalibratedRanker` scores all rows by forests
# that did not see them, and learns one map from these scores to probabilities.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss

from rareclass.decide import CalibratedRanker
from rareclass.report import ReliabilityDisplay

X, y = make_classification(
    60_000, 12, n_informative=6, weights=[0.99], flip_y=0.0, class_sep=0.7, random_state=0
)
learned = np.arange(len(y)) < 20_000


class Undersampled(ClassifierMixin, BaseEstimator):
    """A forest on as many majority rows as there are rare ones."""

    def fit(self, X, y):
        """Draw the rows and learn from them."""
        rng = np.random.default_rng(0)
        rare, rest = np.flatnonzero(y == 1), np.flatnonzero(y != 1)
        rows = np.r_[rare, rng.choice(rest, len(rare), replace=False)]
        self.forest_ = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
        self.forest_.fit(X[rows], y[rows])
        self.classes_ = self.forest_.classes_
        return self

    def predict_proba(self, X):
        """Return the shares of trees."""
        return self.forest_.predict_proba(X)


plain = Undersampled().fit(X[learned], y[learned])
calibrated = CalibratedRanker(Undersampled()).fit(X[learned], y[learned])
said = {
    "undersampled forest": plain.predict_proba(X[~learned])[:, 1],
    "CalibratedRanker": calibrated.predict_proba(X[~learned])[:, 1],
}
truth = y[~learned]
print(f"rare among new rows: {truth.mean():.4f}")
for name, p in said.items():
    print(f"{name:20s} mean {p.mean():.4f}, log loss {log_loss(truth, p):.4f}")

# %%
# On logarithmic axes, where rare classes live: rows are put in groups by what was said of them, and
# a bar is the exact 95 % interval of the share that was rare.

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
for ax, (name, p) in zip(axes, said.items(), strict=True):
    ReliabilityDisplay.from_predictions(truth, p, ax=ax)
    ax.set_title(name)
plt.show()
