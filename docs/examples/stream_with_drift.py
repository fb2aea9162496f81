"""
A stream that drifts
====================

Rows arrive one by one, and halfway the rare class changes. `CBR` keeps the newest fifty rows of
each class and adapts. `OPAUC` keeps means and covariances of all rows so far and adapts slowly. A
model trained once, on the first rows, does not adapt.
"""

# %%
# The stream has 40,000 rows of ten columns, and 2% of the rows are rare. Between rows 15,000 and
# 25,000 the direction in which the rare rows lie turns by 90 degrees.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from rareclass.metrics import roc_auc
from rareclass.online import CBR, OPAUC

rng = np.random.default_rng(0)
n = 40_000
y = rng.random(n) < 0.02
turn = np.clip((np.arange(n) - 15_000) / 10_000, 0, 1) * np.pi / 2
X = rng.normal(size=(n, 10))
X[:, 0] += 2 * y * np.cos(turn)
X[:, 1] += 2 * y * np.sin(turn)

# %%
# `test_then_train` scores each row before it learns from that row, so every score is of an unseen
# row.

scores = {
    "CBR: newest 50 rows of each class": CBR(class_weight="balanced"),
    "OPAUC: moments of all rows so far": OPAUC(),
}
scores = {
    name: model.start(10, [False, True]).test_then_train(X, y) for name, model in scores.items()
}
once = LogisticRegression(class_weight="balanced").fit(X[:10_000], y[:10_000])
scores["trained once on 10,000 rows"] = once.decision_function(X)

window = 4_000
ends = np.arange(window, n + 1, 1_000)
fig, ax = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
for style, (name, found) in zip(("-", "--", ":"), scores.items(), strict=True):
    auc = [roc_auc(y[end - window : end], found[end - window : end]) for end in ends]
    ax.plot(ends, auc, style, lw=2, label=name)
    print(f"{name:33s} AUC of the first window {auc[0]:.3f}, of the last {auc[-1]:.3f}")
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.axvspan(15_000, 25_000, color="0.9", zorder=0)
ax.annotate("the rare class changes", (20_000, 0.97), ha="center")
ax.set(xlabel="rows so far", ylabel=f"AUC of the last {window:,} rows", ylim=(0.48, 1))
ax.legend(loc="lower left")
plt.show()
