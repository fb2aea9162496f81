"""
A ball around a few cases
=========================

Five rows are known to be of a rare kind and forty are known not to be; nobody has looked at the
others. `RACHCV` finds the smallest ball around the cases that the cleared rows stay out of, says
which of the others lie in it, and what is typical of them.
"""

# %%
# Measurements of 178 Italian wines, which scikit-learn brings. The rare kind are 20 wines of the
# third grower; of five of them that is known.

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

y = np.full(len(X), -1)  # nobody has looked
y[rng.choice(np.flatnonzero(truth), 5, replace=False)] = 1
y[rng.choice(np.flatnonzero(~truth), 40, replace=False)] = 0

scaler = StandardScaler().set_output(transform="pandas")
model = RACHCV(random_state=0).fit(scaler.fit_transform(X), y)
found = (model.transduction_ == 1) & (y == -1)
unseen = truth & (y == -1)
print(
    f"{found.sum()} wines found, {(found & truth).sum()} of them of the third grower; "
    f"there are {unseen.sum()}"
)

# %%
# What is typical of the inside, in deviations from the mean of all wines:

print("\n".join(str(model.describe()).splitlines()[:12]))

# %%
# On the left a plane through the centre of the ball, on the right the distances to it.

ball = draw_ball(model.picture())
