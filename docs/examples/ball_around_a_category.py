"""
Find more cases like five known ones
====================================

Five wines are known to be of a rare kind, forty are known not to be, and the rest have no label.
`RACHCV` finds the smallest ball around the five that excludes the forty. It lists the unlabelled
wines inside the ball and describes what is typical of them.
"""

# %%
# The data are measurements of Italian wines by three growers, which come with scikit-learn. The
# rare kind are 20 wines of the third grower; five of them are labelled.

import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from rareclass import RACHCV
from rareclass.report import draw_ball

wine = load_wine(as_frame=True)
rng = np.random.default_rng(1)
third = np.flatnonzero(wine.target == 2)
kept = np.sort(np.r_[np.flatnonzero(wine.target != 2), rng.choice(third, 20, replace=False)])
X = wine.data.iloc[kept].reset_index(drop=True)
truth = wine.target.to_numpy()[kept] == 2

y = np.full(len(X), -1)  # no label
y[rng.choice(np.flatnonzero(truth), 5, replace=False)] = 1
y[rng.choice(np.flatnonzero(~truth), 40, replace=False)] = 0

scaler = StandardScaler().set_output(transform="pandas")
model = RACHCV(random_state=0).fit(scaler.fit_transform(X), y)
found = (model.transduction_ == 1) & (y == -1)
unseen = truth & (y == -1)
print(
    f"{found.sum()} unlabelled wines lie inside the ball. "
    f"{(found & truth).sum()} of them are of the third grower, who has {unseen.sum()} in all."
)

# %%
# What is typical inside, in standard deviations from the mean of all wines:

print("\n".join(str(model.describe()).splitlines()[:12]))

# %%
# Left: a plane through the centre of the ball. Right: the distances of the wines to the centre.

ball = draw_ball(model.picture())
