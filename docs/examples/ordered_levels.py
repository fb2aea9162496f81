"""
Ordered classes: days in hospital
=================================

Most patients have no stay in hospital, some have a short one, and few have a long one.
`OrdinalRankRCCV` ranks the patients so that longer stays score higher, and learns a threshold
between each two neighbouring levels.
"""

# %%
# About 2,500 of 3,000 training patients have no stay. The level depends on a risk that is not
# linear in the columns.

import matplotlib.pyplot as plt
import numpy as np

from rareclass import OrdinalRankRCCV
from rareclass.metrics import mauc

rng = np.random.default_rng(0)
levels = ["none", "short", "long", "very long"]


def draw(n):
    """Draw n patients: six columns, and the level of each."""
    X = rng.normal(size=(n, 6))
    risk = X[:, 0] + X[:, 1] * X[:, 2] + 0.7 * rng.normal(size=n)
    return X, np.array(levels)[np.searchsorted(np.array([1.4, 2.3, 3.3]), risk)]


X, y = draw(3_000)
X_new, y_new = draw(6_000)
model = OrdinalRankRCCV(
    levels=levels, landmarks=("rare", 200), lams=2.0 ** np.arange(-14, 0, 3), cv=3, random_state=0
).fit(X, y)
scores = model.score_samples(X_new)
code = np.array([levels.index(each) for each in y_new])
print(f"MAUC, the share of pairs of different levels in the right order: {mauc(code, scores):.3f}")
called = np.array([levels.index(each) for each in model.predict(X_new)])
print("true level (rows) against predicted level (columns), lowest level first:")
counts = np.zeros((4, 4), dtype=int)
np.add.at(counts, (code, called), 1)
print(counts)

# %%
# Scores of new patients by their true level. A box holds the middle half of the scores, the
# whiskers hold nine tenths. The dotted lines are the thresholds between the levels.

fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
by_level = [scores[code == k] for k in range(4)]
names = [f"{name} ({len(each):,})" for name, each in zip(levels, by_level, strict=True)]
ax.boxplot(by_level, orientation="horizontal", tick_labels=names, whis=(5, 95), showfliers=False)
for threshold in model.thresholds_:
    ax.axvline(threshold, color="C0", ls=":")
ax.set(xlabel="score", title="Longer stays score higher")
plt.show()
