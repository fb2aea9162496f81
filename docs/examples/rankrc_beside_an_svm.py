"""
The cost of a kernel machine
============================

A support vector machine with a kernel asks for kernel values between all rows. RankRC asks for
those between all rows and the rare ones: it grows with rows times rare rows. Here both learn the
same rows, one in a hundred rare, and more and more of them.
"""

# %%
# The rare class is a cloud in the midst of a wider one. Both see the same kernel width.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from rareclass import RankRC
from rareclass.metrics import roc_auc


def draw(n, rng):
    """n rows of five columns, one in a hundred rare and nearer to the origin."""
    y = np.arange(n) % 100 == 0
    return rng.normal(size=(n, 5)) * np.where(y, 0.6, 1.0)[:, None], y


rng = np.random.default_rng(0)
X_new, y_new = draw(10_000, rng)
RankRC().fit(*draw(1_000, rng))  # compiles its loops, once and for all
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
# On logarithmic axes a straight line is a power of the number of rows.

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for marker, name in zip("os", seconds, strict=True):
    left.loglog(sizes, seconds[name], marker + "-", label=name)
    right.semilogx(sizes, auc[name], marker + "-", label=name)
for ax, title in ((left, "Seconds to learn"), (right, "AUC on 10,000 new rows")):
    ax.set_xlabel("rows to learn from")
    ax.set_title(title)
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes], minor=False)
    ax.minorticks_off()
left.legend()
plt.show()
