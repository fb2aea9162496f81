"""
Which columns count
===================

A Gaussian kernel counts every column the same, so that noise drowns the few columns that matter.
With ``feature_scaling="learned"`` each column gets a scale, by the loss of held-out pairs, and
columns that do not help are dropped.
"""

# %%
# Thirty columns, of which the first four tell: rare rows are nearer to zero in them.

import matplotlib.pyplot as plt
import numpy as np

from rareclass import RankRC
from rareclass.metrics import roc_auc
from rareclass.report import draw_feature_scales


def draw(n, rng):
    """n rows of thirty columns, one in twenty rare."""
    y = np.arange(n) % 20 == 0
    X = rng.normal(size=(n, 30))
    X[np.ix_(y, range(4))] *= 0.35
    return X, y


rng = np.random.default_rng(0)
X, y = draw(1_000, rng)
X_new, y_new = draw(10_000, rng)
models = {
    "all columns alike": RankRC(lam=2**-8).fit(X, y),
    "learned scales": RankRC(lam=2**-8, feature_scaling="learned", random_state=0).fit(X, y),
    "the four that tell": RankRC(lam=2**-8).fit(X[:, :4], y),
}
auc = {
    name: roc_auc(y_new, model.score_samples(X_new[:, : model.n_features_in_]))
    for name, model in models.items()
}
for name, value in auc.items():
    print(f"{name:20s} AUC {value:.3f}")

# %%
# The scales of the columns in use: 1 is what every column has without learning.

names = [f"column {k}" for k in range(30)]
scales = draw_feature_scales(models["learned scales"], names)

# %%
fig, ax = plt.subplots(figsize=(6, 2), layout="constrained")
ax.barh(list(auc), list(auc.values()), color=["0.7", "C0", "0.7"])
ax.set_xlim(0.5, 1.05)
ax.invert_yaxis()
ax.bar_label(ax.containers[0], fmt="%.3f", padding=3)
ax.set_title("AUC on new rows")
plt.show()
