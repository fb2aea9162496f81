"""
Eight rare rows
===============

A `RankRC` model is a weighted sum of kernel functions, one at each landmark. By default the rare
rows are the landmarks. With eight rare rows that is too few: 200 majority rows as further landmarks
let the model also lower the score where the majority lies.
"""

# %%
# Among scikit-learn's digits the 8 is the rare class. Each of twelve draws takes 8 eights and half
# of the other digits for training. The other 166 eights and 812 digits are the test rows.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from rareclass import RankRC
from rareclass.metrics import roc_auc

X, digit = load_digits(return_X_y=True)
y = digit == 8


def draw(seed):
    """Return the training rows, eight of them rare, and the test rows."""
    rng = np.random.default_rng(seed)
    rare, rest = rng.permutation(np.flatnonzero(y)), rng.permutation(np.flatnonzero(~y))
    return np.r_[rare[:8], rest[: len(rest) // 2]], np.r_[rare[8:], rest[len(rest) // 2 :]]


methods = {
    "RankRC, rare landmarks": RankRC(lam=2**-8),
    "RankRC, and 200 majority landmarks": RankRC(
        lam=2**-8, landmarks=("rare+majority", 200), random_state=0
    ),
    "SVC, balanced": SVC(class_weight="balanced"),
    "logistic regression, balanced": LogisticRegression(class_weight="balanced", max_iter=1000),
}
auc = {name: [] for name in methods}
for seed in range(12):
    train, test = draw(seed)
    for name, method in methods.items():
        model = make_pipeline(StandardScaler(), method).fit(X[train], y[train])
        auc[name].append(roc_auc(y[test], model.decision_function(X[test])))

for name, values in auc.items():
    print(f"{name:34s} mean AUC {np.mean(values):.3f}, worst {np.min(values):.3f}")

# %%
# Each point is a draw, each line a mean. Majority landmarks help much. A support vector machine,
# which has a kernel function at every row it needs, is slightly better still, and on so few rows it
# is fast. The points of a method spread widely: with eight rare rows one draw says little.

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for place, values in enumerate(auc.values()):
    ax.plot(values, np.full(12, place), "o", alpha=0.5, color=f"C{place}")
    ax.plot([np.mean(values)] * 2, [place - 0.3, place + 0.3], color=f"C{place}", lw=3)
ax.set_yticks(range(len(auc)), list(auc))
ax.invert_yaxis()
ax.set_xlabel("AUC on test rows")
ax.set_title("Eight rare training rows, twelve draws")
plt.show()
