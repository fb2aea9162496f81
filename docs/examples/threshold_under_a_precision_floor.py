"""
A threshold that holds on new rows
==================================

Suppose at least three of ten alerts must be frauds. A threshold that just reaches this precision on
held-out rows misses it on new rows about every second time. `ThresholdRule` adds a margin, so that
the precision holds in at least nine of ten samples.
"""

# %%
# A threshold is chosen on each of 400 samples of 4,000 rows, about 120 of them rare. The scores are
# simulated from normal distributions, so the precision of a threshold on new rows is known exactly.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from rareclass.decide import ThresholdRule

PREVALENCE, SHIFT, FLOOR = 0.03, 1.7, 0.3


def precision_on_new_rows(threshold):
    """Return the share of rare rows among all rows above a threshold."""
    rare = PREVALENCE * norm.sf(threshold - SHIFT)
    return rare / (rare + (1 - PREVALENCE) * norm.sf(threshold))


rules = {
    "confidence=None": ThresholdRule.min_precision(FLOOR, confidence=None),
    "confidence=0.9": ThresholdRule.min_precision(FLOOR, confidence=0.9),
}
kept = {name: [] for name in rules}
recall = {name: [] for name in rules}
rng = np.random.default_rng(0)
for _ in range(400):
    y = rng.random(4_000) < PREVALENCE
    scores = rng.normal(size=4_000) + SHIFT * y
    for name, rule in rules.items():
        chosen = rule.choose(y, scores)
        kept[name].append(precision_on_new_rows(chosen.threshold))
        recall[name].append(norm.sf(chosen.threshold - SHIFT))

for name, values in kept.items():
    share, found = np.mean(np.array(values) >= FLOOR), np.mean(recall[name])
    print(f"{name:16s} precision holds in {share:.0%} of samples, mean recall {found:.2f}")

# %%
# The margin costs recall: the threshold is higher and finds fewer rare rows.

fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
bins = np.arange(0.15, 0.62, 0.02)
for name, values in kept.items():
    ax.hist(values, bins, alpha=0.6, label=name)
ax.axvline(FLOOR, color="k", lw=1)
ax.annotate(
    "required",
    (FLOOR, 0.95),
    xycoords=("data", "axes fraction"),
    xytext=(5, 0),
    textcoords="offset points",
    va="top",
)
ax.set(xlabel="precision on new rows", ylabel="samples")
ax.set_title("Thresholds chosen on 400 samples for a precision of 0.3")
ax.legend()
plt.show()
