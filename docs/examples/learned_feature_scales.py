"""
Which columns matter?
=====================

A Gaussian kernel gives all columns the same weight, so many noise columns hide a few informative
ones. With ``feature_scaling="learned"``, `RankRC` learns a scale for each column from held-out
pairs of rows. Columns that do not help get the scale 0.
"""

# %%
# Only the first four of thirty columns are informative: rare rows are closer to zero in them.

import matplotlib.pyplot as plt
import numpy as np

from rareclass import RankRC
from rareclass.metrics import roc_auc


def draw(n, rng):
    """Draw n rows of thirty columns, one in twenty rare."""
    y = np.arange(n) % 20 == 0
    X = rng.normal(size=(n, 30))
    X[np.ix_(y, range(4))] *= 0.35
    return X, y


rng = np.random.default_rng(0)
X, y = draw(1_000, rng)
X_new, y_new = draw(10_000, rng)
models = {
    "equal scales": RankRC(lam=2**-8).fit(X, y),
    "learned scales": RankRC(lam=2**-8, feature_scaling="learned", random_state=0).fit(X, y),
    "only the informative columns": RankRC(lam=2**-8).fit(X[:, :4], y),
}
auc = {
    name: roc_auc(y_new, model.score_samples(X_new[:, : model.n_features_in_]))
    for name, model in models.items()
}
for name, value in auc.items():
    print(f"{name:28s} AUC {value:.3f}")

# %%
# The learned scales above 0. Without learning every column has the scale 1.

scales = models["learned scales"].feature_scales_
used = np.flatnonzero(scales)
used = used[np.argsort(-scales[used])]
fig, ax = plt.subplots(figsize=(6, 0.6 + 0.25 * len(used)), layout="constrained")
ax.barh([f"column {k}" for k in used], scales[used])
ax.axvline(1.0, color="0.5", linestyle="--")
ax.invert_yaxis()
ax.set_xlabel("scale inside the kernel")

# %%
fig, ax = plt.subplots(figsize=(6, 2), layout="constrained")
ax.barh(list(auc), list(auc.values()), color=["0.7", "C0", "0.7"])
ax.set_xlim(0.5, 1.05)
ax.invert_yaxis()
ax.bar_label(ax.containers[0], fmt="%.3f", padding=3)
ax.set_title("AUC on new rows")
plt.show()
