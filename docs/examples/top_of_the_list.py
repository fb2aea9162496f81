"""
When only the top is read
=========================

The AUC counts every pair alike, also those far down a list that nobody reads to its end. With
``loss="partial_auc"`` only the share of the majority that stands highest counts.
"""

# %%
# Two kinds of rare rows: a compact one that could stand at the very top, and a wide one that no
# model tells from the majority well. The plain loss tries to please both.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_curve

from rareclass import RankRC
from rareclass.metrics import average_precision, partial_auc, roc_auc

rng = np.random.default_rng(0)


def draw(n):
    """n rows in the plane, one in fifty rare, of two kinds."""
    y = np.arange(n) % 50 == 0
    X = rng.normal(size=(n, 2)) * 1.5
    kind = np.arange(n) % 100 == 0
    X[y & kind] = rng.normal(size=((y & kind).sum(), 2)) * 0.35 + [1.6, 0.4]
    X[y & ~kind] = rng.normal(size=((y & ~kind).sum(), 2)) * 1.3 + [-1.2, -1.0]
    return X, y


X, y = draw(6_000)
X_new, y_new = draw(40_000)
models = {
    "all pairs": RankRC(lam=2**-10),
    "partial AUC, up to .02": RankRC(lam=2**-10, loss="partial_auc", loss_params={"beta": 0.02}),
}
scores = {name: model.fit(X, y).score_samples(X_new) for name, model in models.items()}
for name, each in scores.items():
    print(
        f"{name:24s} AUC {roc_auc(y_new, each):.3f}, "
        f"up to .02: {partial_auc(y_new, each, max_fpr=0.02):.3f}, "
        f"average precision {average_precision(y_new, each):.3f}"
    )

# %%
# Over all of the list the two curves are one; among the first rows, which are the ones that will be
# looked at, the second finds more.

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for style, (name, each) in zip(("--", "-"), scores.items(), strict=True):
    fpr, tpr, _ = roc_curve(y_new, each)
    left.plot(fpr, tpr, style, label=name)
    right.plot(fpr, tpr, style)
left.legend()
left.set_title("All of the list")
right.set(xlim=(0, 0.05), ylim=(0, 0.6), title="The first twentieth of the majority")
for ax in (left, right):
    ax.set(xlabel="false-positive rate", ylabel="true-positive rate")
plt.show()
