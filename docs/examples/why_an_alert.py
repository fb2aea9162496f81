"""
Why this alert?
===============

An alert is looked at by somebody who asks why. `explain` says what each column does to the score of
a row, and which rare rows of the training table it is near to.
"""

# %%
# Tumours measured under a microscope, which scikit-learn brings. Malignant ones are thinned to
# thirty among 357, so that they are the rare class.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from rareclass import RankRCCV
from rareclass.explain import explain

data = load_breast_cancer(as_frame=True)
rng = np.random.default_rng(0)
malignant = data.target.to_numpy() == 0
rare = rng.choice(np.flatnonzero(malignant), 60, replace=False)
learned = np.sort(np.r_[np.flatnonzero(~malignant)[::2], rare[:30]])
new = np.sort(np.r_[np.flatnonzero(~malignant)[1::2], rare[30:]])
columns = [name for name in data.data if name.startswith("mean ")]
scaler = StandardScaler().set_output(transform="pandas").fit(data.data[columns].iloc[learned])
X, X_new = (scaler.transform(data.data[columns].iloc[each]) for each in (learned, new))

model = RankRCCV(cv=3).fit(X, malignant[learned])
scores = model.score_samples(X_new)
first = np.argsort(-scores)[:3]
print(f"of the ten highest {malignant[new][np.argsort(-scores)[:10]].sum()} are malignant")

# %%
# A bar is how much less the row would score if the column had its typical value, here the mean of
# the training rows.

told = explain(model.best_estimator_, X_new.iloc[first])
nearest = told.nearest(1)

fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharey=True, sharex=True)
for place, ax in enumerate(axes):
    effect = told.contributions[place]
    ax.barh(columns, effect, color=np.where(effect > 0, "C1", "C0"))
    ax.axvline(0, color="k", lw=0.8)
    ax.set_title(f"alert {place + 1}, score {scores[first[place]]:.2f}")
axes[0].invert_yaxis()
axes[1].set_xlabel("what the column adds to the score")
plt.show()
