"""
When only the top of the list is read
=====================================

The AUC gives every pair of rows the same weight, also far down a list that nobody reads to its end.
``loss="partial_auc"`` counts only the majority rows with the highest scores.
"""

# %%
# There are two groups of rare rows: a compact one that can reach the very top, and a wide one that
# overlaps the majority. The default loss compromises between the two.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_curve

from rareclass import RankRC
from rareclass.metrics import average_precision, partial_auc, roc_auc

rng = np.random.default_rng(0)


def draw(n):
    """Draw n rows in the plane; one in fifty is rare, of one of two groups."""
    y = np.arange(n) % 50 == 0
    X = rng.normal(size=(n, 2)) * 1.5
    kind = np.arange(n) % 100 == 0
    X[y & kind] = rng.normal(size=((y & kind).sum(), 2)) * 0.35 + [1.6, 0.4]
    X[y & ~kind] = rng.normal(size=((y & ~kind).sum(), 2)) * 1.3 + [-1.2, -1.0]
    return X, y


X, y = draw(6_000)
X_new, y_new = draw(40_000)
models = {
    "default loss": RankRC(lam=2**-10),
    "partial_auc, beta=0.02": RankRC(lam=2**-10, loss="partial_auc", loss_params={"beta": 0.02}),
}
scores = {name: model.fit(X, y).score_samples(X_new) for name, model in models.items()}
for name, each in scores.items():
    print(
        f"{name:24s} AUC {roc_auc(y_new, each):.3f}, "
        f"partial AUC {partial_auc(y_new, each, max_fpr=0.02):.3f}, "
        f"average precision {average_precision(y_new, each):.3f}"
    )

# %%
# Over the whole list (left) the curves are nearly equal. Among the first rows (right), which people
# will check, ``partial_auc`` finds more rare rows.

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for style, (name, each) in zip(("--", "-"), scores.items(), strict=True):
    fpr, tpr, _ = roc_curve(y_new, each)
    left.plot(fpr, tpr, style, label=name)
    right.plot(fpr, tpr, style)
left.legend()
left.set_title("Whole list")
right.set(xlim=(0, 0.05), ylim=(0, 0.6), title="Top of the list")
for ax in (left, right):
    ax.set(xlabel="false-positive rate", ylabel="true-positive rate")
plt.show()
