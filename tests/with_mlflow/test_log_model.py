"""Estimators logged and loaded by the real MLflow: `make test-mlflow` has an environment for it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rareclass import MIBC, SKOPS_TRUSTED, OrdinalRankRCCV, RankRCCV, RareClassifier
from rareclass.online import CBR

mlflow = pytest.importorskip("mlflow", reason="MLflow is not here: make test-mlflow has it")


@pytest.fixture(scope="module", autouse=True)
def tracking(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'runs.db'}")
    mlflow.create_experiment("rare", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("rare")


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(200, 3)), columns=list("abc"))
    return X, (X["a"] + random.normal(size=200) > 1.6).astype(int)


def logged(model, **options):
    with mlflow.start_run():
        info = mlflow.sklearn.log_model(
            model, name="model", skops_trusted_types=list(SKOPS_TRUSTED), **options
        )
    return info.model_uri


@pytest.mark.parametrize(
    "estimator",
    [
        RankRCCV(lams=[0.1], cv=2),
        MIBC(),
        CBR(random_state=0),
        RareClassifier(members=["logistic regression", "extra trees"], cv=2),
        make_pipeline(StandardScaler(), RankRCCV(lams=[0.1], cv=2)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_is_logged_loads_and_scores_the_same(estimator, rows):
    X, y = rows
    model = estimator.fit(X, y)
    again = mlflow.sklearn.load_model(logged(model))
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


@pytest.mark.parametrize(
    "estimator",
    [
        RankRCCV(lams=[0.1], cv=2),
        RareClassifier(members=["logistic regression"], cv=2),
        OrdinalRankRCCV(lams=[0.1], cv=2),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_pyfunc_gives_probabilities(estimator, rows):
    X, y = rows
    y = np.digitize(X["a"], [0.5, 1.2]) if isinstance(estimator, OrdinalRankRCCV) else y
    model = estimator.fit(X, y)
    with warnings.catch_warnings(action="ignore"):  # hints on types of columns
        uri = logged(model, pyfunc_predict_fn="predict_proba", input_example=X.head(2))
    found = mlflow.pyfunc.load_model(uri).predict(X)
    np.testing.assert_array_equal(found, model.predict_proba(X))
