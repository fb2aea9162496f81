"""
Cases that nobody recorded
==========================

Some rare rows carry the label of the majority because nobody noticed them. `audit` lists the rows
whose label is probably wrong and says how many there are at most, and `missed_case_measures` gives
the precision that a model has when a known share of missed cases is counted as cases.
"""

# %%
# The rows are tumours measured under a microscope, which come with scikit-learn. 100 malignant ones
# are kept, and every fifth of them is recorded as benign.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from rareclass.labels import audit
from rareclass.metrics import interval, missed_case_measures

data = load_breast_cancer(as_frame=True)
rng = np.random.default_rng(0)
malignant = data.target.to_numpy() == 0
kept = np.sort(np.r_[np.flatnonzero(~malignant), rng.permutation(np.flatnonzero(malignant))[:100]])
X, true = data.data.iloc[kept].reset_index(drop=True), malignant[kept]
missed = np.flatnonzero(true)[::5]
recorded = true.copy()
recorded[missed] = False

found = audit(X, recorded, members=["logistic regression"], top=20, verbose=False)
limit = found.missed.limit
print(f"{len(missed)} cases were missed; the audit says at most {limit.most:.0f}")
hits = np.isin(found.missed.row, missed)
print(f"{hits[:10].sum()} of the first 10 rows listed, {hits.sum()} of 20, are missed cases")

# %%
# By the recorded labels a missed case is a false alert, so that the scores look worse than they
# are. Scores are out of fold: the model that scored a row did not learn from it. A fifth of the
# cases was missed.

measured = missed_case_measures(recorded, found.score, 0.0, missed_cases=0.2)
measures = {
    "recorded labels": interval("average_precision", recorded, found.score),
    "corrected": measured.average_precision,
    "true labels": interval("average_precision", true, found.score),
}
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
bins = np.linspace(found.score.min(), found.score.max(), 30)
groups = {"benign": ~true, "recorded": recorded, "missed": true & ~recorded}
left.hist([found.score[rows] for rows in groups.values()], bins, stacked=True, label=list(groups))
left.set(xlabel="out-of-fold score", ylabel="rows")
left.legend()
for place, each in enumerate(measures.values()):
    reach = [[each.value - each.low], [each.high - each.value]]
    right.errorbar(each.value, place, xerr=reach, fmt="o", capsize=4, color=f"C{place}")
right.set_yticks(range(3), measures)
right.set(xlabel="average precision, 95% interval", ylim=(2.5, -0.5))
plt.show()
