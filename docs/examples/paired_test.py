"""
Is one ranking better than another?
===================================

Two confidence intervals can overlap although one ranking is significantly better: rows that are
hard for one ranking are usually hard for the other. A paired test compares both on the same rows.
"""

# %%
# The scores of an old and a new model for the same rows are correlated (0.9).

import matplotlib.pyplot as plt
import numpy as np

from rareclass.metrics import interval, paired_difference

rng = np.random.default_rng(2)
y = np.arange(6_000) < 60
common = rng.normal(size=6_000)
old = 0.95 * common + 0.31 * rng.normal(size=6_000) + 1.3 * y
new = 0.95 * common + 0.31 * rng.normal(size=6_000) + 1.6 * y

measures = {"AUC": "roc_auc", "average precision": "average_precision"}
alone, paired = {}, {}
for name, metric in measures.items():
    alone[name] = [interval(metric, y, scores) for scores in (old, new)]
    paired[name] = paired_difference(y, new, old, metric)
    test = paired[name]
    print(
        f"{name}: old {test.value_b:.3f}, new {test.value_a:.3f}, "
        f"difference {test.low:+.3f} to {test.high:+.3f} (95% interval), p = {test.p_value:.4f}"
    )

# %%
# Left: the intervals of the two rankings, which overlap. Right: the interval of the difference. The
# AUC of the new model is significantly higher, because the interval of its difference excludes
# zero. The interval for average precision includes zero, so that difference is not significant.

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained", sharey=True)
for place, name in enumerate(measures):
    for offset, each, colour in zip((-0.12, 0.12), alone[name], ("C1", "C0"), strict=True):
        left.plot([each.low, each.high], [place + offset] * 2, color=colour, lw=2)
        left.plot(each.value, place + offset, "o", color=colour)
    test = paired[name]
    right.plot([test.low, test.high], [place] * 2, color="k", lw=2)
    right.plot(test.difference, place, "ko")
left.plot([], [], "o-", color="C1", label="old")
left.plot([], [], "o-", color="C0", label="new")
left.legend(loc="upper right")
right.axvline(0, color="0.6", lw=1)
left.set_yticks(range(2), list(measures))
left.set_ylim(-0.5, 1.5)
left.set_title("Each ranking, 95% interval")
right.set_title("New minus old, 95% interval")
plt.show()
