"""
Probabilities after undersampling
=================================

Undersampling keeps only as many majority rows as there are rare rows. Training becomes fast, but
predicted probabilities become far too high. `CalibratedRanker` maps the scores to probabilities at
the true base rate.
"""

# %%
# A random forest is trained on a balanced sample. `CalibratedRanker` scores each training row by a
# forest that was trained without it, and learns one map from all these scores to probabilities.

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
    """Random forest on as many majority rows as there are rare rows."""

    def fit(self, X, y):
        """Draw a balanced sample and train on it."""
        rng = np.random.default_rng(0)
        rare, rest = np.flatnonzero(y == 1), np.flatnonzero(y != 1)
        rows = np.r_[rare, rng.choice(rest, len(rare), replace=False)]
        self.forest_ = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
        self.forest_.fit(X[rows], y[rows])
        self.classes_ = self.forest_.classes_
        return self

    def predict_proba(self, X):
        """Return the mean prediction of the trees."""
        return self.forest_.predict_proba(X)


plain = Undersampled().fit(X[learned], y[learned])
calibrated = CalibratedRanker(Undersampled()).fit(X[learned], y[learned])
predicted = {
    "undersampled forest": plain.predict_proba(X[~learned])[:, 1],
    "CalibratedRanker": calibrated.predict_proba(X[~learned])[:, 1],
}
truth = y[~learned]
print(f"share of rare rows among new rows: {truth.mean():.4f}")
for name, p in predicted.items():
    print(f"{name:20s} mean probability {p.mean():.4f}, log loss {log_loss(truth, p):.4f}")

# %%
# New rows are grouped by their predicted probability. A bar is the exact 95% confidence interval of
# the observed share of rare rows; points of a calibrated model lie near the dotted line. The axes
# are logarithmic, because most probabilities are small.

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
for ax, (name, p) in zip(axes, predicted.items(), strict=True):
    ReliabilityDisplay.from_predictions(truth, p, ax=ax)
    ax.set_title(name)
plt.show()
