"""
Thirty alerts a day
===================

A team can check 30 payments a day. This example trains a model on six weeks of simulated payments,
chooses a threshold for that budget, and applies it to the next two weeks.
"""

# %%
# `DecisionClassifier` takes any scikit-learn classifier or ranker. It scores the training rows by
# cross-validation in the order of time and chooses the threshold on these held-out scores, counting
# alerts by day. Here ``confidence=None`` keeps the budget on an average day. The default,
# ``confidence=0.9``, keeps it on at least nine days of ten. The payments are those of
# ``rareclass demo``.

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rareclass import RankRC
from rareclass.decide import DecisionClassifier, ThresholdRule
from rareclass.fit.demo import PaymentSettings, simulate_payments

rows = simulate_payments(PaymentSettings(payments_a_day=800), seed=1)
day = rows["time"].dt.date().cast(pl.Int32).to_numpy()
day = day - day.min()
y, amount = rows["fraud"].to_numpy(), rows["amount"].to_numpy()
X = rows.select(
    *("amount", "km_from_home", "hours_since_last", "payments_24h", "over_usual", "shop_frauds"),
    pl.col("online").cast(pl.Float64),
    *((pl.col("kind") == each).cast(pl.Float64).alias(each) for each in ("electronics", "gifts")),
    log_amount=pl.col("amount").log(),
    log_hours=(1 + pl.col("hours_since_last")).log(),
    is_night=(pl.col("time").dt.hour() < 6).cast(pl.Float64),
).to_numpy()
learned = day < 42

machine = RankRC(lam=2**-10, landmarks=("rare+majority", 200), random_state=0)
ranker = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), machine)
model = DecisionClassifier(ranker, ThresholdRule.max_alerts(30, confidence=None), cv=3)
model.fit(X[learned], y[learned], time=rows["time"].to_numpy()[learned])
print(model.decision_.says())

# %%
# Days with fewer payments than an average day have fewer alerts, and busy days have more.

alert = model.predict(X).astype(bool)
weeks = np.arange(42, 56)
counts = np.array(
    [
        [
            (alert & (day == each)).sum(),
            (alert & y & (day == each)).sum(),
            (y & (day == each)).sum(),
        ]
        for each in weeks
    ]
)
late = ~learned
caught = amount[late & alert & y].sum() / amount[late & y].sum()
print(f"{counts[:, 1].sum()} of {counts[:, 2].sum()} frauds found, {caught:.0%} of their amount")

fig, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
ax.bar(weeks, counts[:, 0], color="0.8", label="alerts")
ax.bar(weeks, counts[:, 1], color="C0", label="frauds among the alerts")
ax.plot(weeks, counts[:, 2], "k_", ms=14, mew=2, label="all frauds")
ax.axhline(30, color="C1", lw=1.5, label="budget")
ax.set(xlabel="day", ylabel="payments", title="Alerts in the two weeks after the training")
ax.set_ylim(0, 48)
ax.legend(ncols=4, loc="upper center")
plt.show()
