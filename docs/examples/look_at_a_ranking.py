"""
Plot how good a ranking is
==========================

A single measure says little about a ranking of few rare rows. Displays in the style of scikit-learn
show where the ranking is good, how certain that is, and how many rare rows a number of alerts
finds.
"""

# %%
# Of 20,000 rows 1 in 100 is rare. A kernel machine is trained on half of them and evaluated on the
# other half.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rareclass import RankRC
from rareclass.metrics import interval
from rareclass.report import (
    AlertsDisplay,
    GainsDisplay,
    PrecisionRecallDisplay,
    ScoreDistributionDisplay,
)

X, y = make_classification(
    20_000, 10, n_informative=5, weights=[0.99], flip_y=0.002, class_sep=1.2, random_state=3
)
learned = np.arange(len(y)) % 2 == 0
machine = RankRC(lam=2**-10, landmarks=("rare+majority", 200), random_state=0)
model = make_pipeline(StandardScaler(), machine).fit(X[learned], y[learned])
truth, scores = y[~learned], model.score_samples(X[~learned])
found = interval("average_precision", truth, scores)
print(f"{len(truth):,} test rows, {truth.sum()} of them rare")
print(f"average precision {found.value:.3f} (95% interval {found.low:.3f} to {found.high:.3f})")

# %%
# Bands are 95% confidence intervals. Two axes are logarithmic, because only the first rows of the
# list will be checked.

fig, axes = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained")
displays = (PrecisionRecallDisplay, GainsDisplay, AlertsDisplay, ScoreDistributionDisplay)
for ax, display in zip(axes.flat, displays, strict=True):
    display.from_predictions(truth, scores, ax=ax)
plt.show()
