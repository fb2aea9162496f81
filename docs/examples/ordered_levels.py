"""
Levels that have an order
=========================

Days in hospital: most patients have none, some a few, few have many. `OrdinalRankRCCV` ranks the
rows so that longer stays come first, and learns where one level ends and the next begins.
"""

# %%
# 3,000 patients, 2,500 of them without a stay. The level grows with a risk that is not linear in
# what is known of the patient.

import matplotlib.pyplot as plt
import numpy as np

from rareclass import OrdinalRankRCCV
from rareclass.metrics import mauc

rng = np.random.default_rng(0)
levels = ["none", "short", "long", "very long"]


def draw(n):
    """n patients: six columns, and the level of each."""
    X = rng.normal(size=(n, 6))
    risk = X[:, 0] + X[:, 1] * X[:, 2] + 0.7 * rng.normal(size=n)
    return X, np.array(levels)[np.searchsorted(np.array([1.4, 2.3, 3.3]), risk)]


X, y = draw(3_000)
X_new, y_new = draw(6_000)
model = OrdinalRankRCCV(
    levels=levels, landmarks=("rare", 200), lams=2.0 ** np.arange(-14, 0, 3), cv=3
).fit(X, y)
scores = model.score_samples(X_new)
code = np.array([levels.index(each) for each in y_new])
print(f"pairs of different levels in order: {mauc(code, scores):.3f}")
called = np.array([levels.index(each) for each in model.predict(X_new)])
print("patients by what they are (rows) and what they are called (columns):")
counts = np.zeros((4, 4), dtype=int)
np.add.at(counts, (code, called), 1)
print(counts)

# %%
# Scores of each level on new rows, a box from quarter to quarter; the dotted lines are the
# thresholds, each where calling a patient one level more begins to pay.

fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
by_level = [scores[code == k] for k in range(4)]
names = [f"{name} ({len(each):,})" for name, each in zip(levels, by_level, strict=True)]
ax.boxplot(by_level, orientation="horizontal", tick_labels=names, whis=(5, 95), showfliers=False)
for threshold in model.thresholds_:
    ax.axvline(threshold, color="C0", ls=":")
ax.set(xlabel="score", title="Longer stays score higher")
plt.show()
