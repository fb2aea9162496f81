"""OrdinalRankRC on a real scale of seven marks, two of them with a handful of rows."""

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from rareclass import OrdinalRankRC, OrdinalRankRCCV
from rareclass.metrics import mauc
from real_data import real_file


@pytest.mark.thorough
def test_wine_is_ranked_by_its_quality():
    table = pl.read_parquet(real_file("wine_quality.parquet"))
    y = table["quality"].to_numpy()
    X = table.drop("quality", "target").to_numpy().astype(np.float64)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    model = OrdinalRankRCCV(
        lams=2.0 ** np.arange(-4, -17, -4), cv=3, landmarks=("rare", 300), random_state=0
    ).fit(X, y)
    assert model.majority_level_ == 6
    assert model.classes_.tolist() == [3, 4, 5, 6, 7, 8, 9]
    of_ridge = mauc(y_test, Ridge().fit(X, y).predict(X_test))
    assert model.score(X_test, y_test) > of_ridge + 0.03 > 0.78

    def macro_error(predicted):
        error = np.abs(predicted - y_test)
        return np.mean([error[y_test == mark].mean() for mark in np.unique(y_test)])

    # Guessing the middle mark for all errs by 12 / 7; rounding the ridge regression by 1.48.
    assert macro_error(model.predict(X_test)) < 1.15
    plain = OrdinalRankRC(lam=model.best_lam_, landmarks=("rare", 300), random_state=0).fit(X, y)
    np.testing.assert_allclose(plain.score_samples(X_test), model.score_samples(X_test), atol=1e-6)
