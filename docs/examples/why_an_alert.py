"""
Why was this row flagged?
=========================

Whoever checks an alert wants to know why it was raised. `explain` gives the effect of each column
on the score of a row, and `nearest_cases` finds the rare training rows that the row is most like.
"""

# %%
# The rows are tumours measured under a microscope, which come with scikit-learn. Only 60 malignant
# tumours are kept, so that they are the rare class; half of all rows are training rows.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from rareclass import RankRCCV
from rareclass.explain import explain, nearest_cases

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
print(f"{malignant[new][np.argsort(-scores)[:10]].sum()} of the 10 highest rows are malignant")

# %%
# A bar shows how much lower the row would score if the column had its typical value, here the mean
# of the training rows.

alerts = X_new.iloc[first]
explanation = explain(model.best_estimator_, alerts)
cases = nearest_cases(model.best_estimator_, alerts, X[malignant[learned]], k=1)
for place, case in enumerate(cases.places[:, 0], 1):
    print(f"alert {place} is most like malignant training row {case}")

fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharey=True, sharex=True)
for place, ax in enumerate(axes):
    effect = explanation.contributions[place]
    ax.barh(columns, effect, color=np.where(effect > 0, "C1", "C0"))
    ax.axvline(0, color="k", lw=0.8)
    ax.set_title(f"alert {place + 1}, score {scores[first[place]]:.2f}")
axes[0].invert_yaxis()
axes[1].set_xlabel("effect of the column on the score")
plt.show()
