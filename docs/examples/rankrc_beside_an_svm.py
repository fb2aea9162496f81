"""
The cost of a kernel machine
============================

A support vector machine computes kernel values between all pairs of rows. RankRC computes them only
between all rows and the rare rows, so its training takes less time. This example trains both on
samples of growing size, in which 1 row in 100 is rare.
"""

# %%
# The rare class is a narrow cloud inside a wider one. Both methods use the same kernel width.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from rareclass import RankRC
from rareclass.metrics import roc_auc


def draw(n, rng):
    """Draw n rows of five columns; one in a hundred is rare and nearer to the origin."""
    y = np.arange(n) % 100 == 0
    return rng.normal(size=(n, 5)) * np.where(y, 0.6, 1.0)[:, None], y


rng = np.random.default_rng(0)
X_new, y_new = draw(10_000, rng)
RankRC().fit(*draw(1_000, rng))  # the first fit compiles
sizes = [1_000, 2_000, 4_000, 8_000]
seconds = {"RankRC": [], "SVC, balanced": []}
auc = {"RankRC": [], "SVC, balanced": []}
for n in sizes:
    X, y = draw(n, rng)
    gamma = 1 / (2 * X.var(axis=0).sum())  # RankRC's width="mean", as SVC has it
    for name, model in (
        ("RankRC", RankRC(lam=2**-6)),
        ("SVC, balanced", SVC(gamma=gamma, class_weight="balanced")),
    ):
        start = perf_counter()
        model.fit(X, y)
        seconds[name].append(perf_counter() - start)
        auc[name].append(roc_auc(y_new, model.decision_function(X_new)))
    print(
        f"{n:6,} rows: "
        + "; ".join(f"{name} {seconds[name][-1]:.2f} s, AUC {auc[name][-1]:.3f}" for name in auc)
    )

# %%
# Both axes of the left plot are logarithmic. The steeper the line, the faster the time grows with
# the number of rows.

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for marker, name in zip("os", seconds, strict=True):
    left.loglog(sizes, seconds[name], marker + "-", label=name)
    right.semilogx(sizes, auc[name], marker + "-", label=name)
for ax, title in ((left, "Seconds of training"), (right, "AUC on 10,000 new rows")):
    ax.set_xlabel("training rows")
    ax.set_title(title)
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes], minor=False)
    ax.minorticks_off()
left.yaxis.set_major_formatter("{x:g}")
left.legend()
plt.show()
