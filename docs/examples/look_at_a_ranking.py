"""
Look at a ranking
=================

One figure says little of a ranking with few rare rows. Displays in scikit-learn's convention show
where it is good, how sure that is, and what a number of alerts would bring.
"""

# %%
# 20,000 rows, one in a hundred rare; a kernel machine learns from half of them.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rareclass import RankRC
from rareclass.metrics import average_precision_interval
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
found = average_precision_interval(truth, scores)
print(f"{truth.sum()} rare rows of {len(truth):,}")
print(f"average precision {found.value:.3f}, {found.low:.3f} to {found.high:.3f}")

# %%
# The axes are logarithmic where the first hundredth of the rows is what will be looked at.

fig, axes = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained")
displays = (PrecisionRecallDisplay, GainsDisplay, AlertsDisplay, ScoreDistributionDisplay)
for ax, display in zip(axes.flat, displays, strict=True):
    display.from_predictions(truth, scores, ax=ax)
plt.show()
