"""Online learners in River: its own checks, rows as dicts, and the same model as `partial_fit`."""

import math
import pickle
import random

import numpy as np
import pytest
from river import checks, evaluate, metrics, preprocessing
from sklearn.base import clone

from rareclass.online import CBR, as_river
from rareclass.online.river_adapter import RiverClassifier
from registered import ONLINE

# A mixture has no weights of its own to compare.
LINEAR = {name: model for name, model in ONLINE.items() if name != "mixture"}


def every_learner(test):
    """Run a test with one learner, and with all in ``make test-rest``."""
    every = pytest.mark.parametrize("model", LINEAR.values(), ids=LINEAR)
    return pytest.mark.sampled(1)(every(test))


def stream(n_rows=300, n_features=6, seed=0):
    """Rows as an array and as dicts, and labels of which a fifth or so are True."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    y = X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n_rows) > 1.0
    names = [f"f{j}" for j in range(n_features)]
    return X, [dict(zip(names, row, strict=True)) for row in X.tolist()], y.tolist()


def seeded(model, seed):
    return clone(model).set_params(random_state=seed)


def learned(model, rows, labels, **options):
    ranker = as_river(model, **options)
    for x, y in zip(rows, labels, strict=True):
        ranker.learn_one(x, y)
    return ranker


@pytest.mark.sampled(0)  # takes long
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(
            ONLINE[name],
            # The adapter is the same for all.
            marks=() if name == "cbr" else pytest.mark.thorough,
            id=name,
        )
        for name in ONLINE
    ],
)
def test_river_checks(model, monkeypatch):
    parameters = classmethod(lambda cls: iter([{"model": CBR()}]))
    monkeypatch.setattr(RiverClassifier, "_unit_test_params", parameters)
    checks.check_estimator(as_river(model))


@every_learner
def test_same_weights_as_partial_fit(model):
    X, rows, labels = stream()
    ranker = learned(seeded(model, 3), rows, labels)
    plain = seeded(model, 3).partial_fit(X, labels, classes=[False, True])
    assert list(ranker.weights) == [f"f{j}" for j in range(6)]
    np.testing.assert_array_equal(list(ranker.weights.values()), plain.coef_)
    scores = [ranker.score_one(x) for x in rows]
    np.testing.assert_allclose(scores, plain.score_samples(X), rtol=1e-12, atol=1e-12)
    assert [ranker.predict_one(x) for x in rows] == plain.predict(X).tolist()


@every_learner
def test_features_that_appear_and_vanish_count_as_zero(model):
    _, rows, labels = stream(200, 12)
    drawn = random.Random(0)
    rows = [
        {name: v for j, (name, v) in enumerate(x.items()) if j <= i // 12 and drawn.random() < 0.7}
        for i, x in enumerate(rows)
    ]
    ranker = learned(seeded(model, 3), rows, labels)
    # The same rows with every column there from the first row on.
    X = np.array([[x.get(name, 0.0) for name in ranker.weights] for x in rows])
    plain = seeded(model, 3).partial_fit(X, labels, classes=[False, True])
    assert len(ranker.weights) == 12
    np.testing.assert_allclose(list(ranker.weights.values()), plain.coef_, rtol=1e-12, atol=1e-13)


def test_text_flags_and_missing_values():
    ranker = as_river(CBR())
    for fraud in (False, True, False):
        x = {"land": "DE" if fraud else "FR", "new": fraud, "age": None, "size": math.nan, "n": 2}
        ranker.learn_one(x, fraud)
    assert sorted(ranker.weights) == ["land=DE", "land=FR", "n", "new"]
    assert ranker.weights["land=DE"] > 0 > ranker.weights["land=FR"]
    assert ranker.score_one({"new": np.True_}) == ranker.weights["new"]
    assert ranker.score_one({"land": "IT", "unknown": 4.0}) == 0.0


def test_probability_is_the_logistic_of_the_score_in_standard_deviations():
    X, rows, labels = stream()
    ranker = learned(CBR(random_state=3), rows, labels)
    plain = CBR(random_state=3).start(6, [False, True])
    spread = plain.test_then_train(X, labels).std()
    wanted = 1.0 / (1.0 + np.exp(-(plain.score_samples(X) - plain.offset_) / spread))
    found = [ranker.predict_proba_one(x) for x in rows]
    rare = np.array([p[True] for p in found])
    np.testing.assert_allclose(rare, wanted, rtol=1e-9)
    np.testing.assert_allclose([p[False] for p in found], 1.0 - wanted, rtol=1e-9)
    assert [ranker.predict_one(x) for x in rows] == (rare > 0.5).tolist()
    assert 0.0 < rare.min() < 0.5 < rare.max() < 1.0
    for far in (1e300, -1e300):
        assert sum(ranker.predict_proba_one({"f0": far}).values()) == 1.0


def test_pipeline():
    _, rows, labels = stream(1000)
    rows = [{name: 50.0 + 20.0 * v for name, v in x.items()} for x in rows]
    model = preprocessing.StandardScaler() | as_river(CBR(C=0.1))
    metric = evaluate.progressive_val_score(
        list(zip(rows, labels, strict=True)), model, metrics.ROCAUC(n_thresholds=100)
    )
    assert metric.get() > 0.9
    assert model.score_one(rows[labels.index(True)]) > model.score_one(rows[labels.index(False)])


def test_own_labels():
    _, rows, labels = stream(100)
    names = ["fraud" if y else "valid" for y in labels]
    by_default = learned(CBR(), rows, names, classes=("fraud", "valid"))
    named = learned(CBR(pos_label="fraud"), rows, names, classes=("valid", "fraud"))
    assert named.weights == learned(CBR(), rows, labels).weights
    np.testing.assert_allclose(
        list(by_default.weights.values()), [-w for w in named.weights.values()], rtol=1e-9
    )
    assert named.predict_proba_one(rows[0]).keys() == {"fraud", "valid"}
    assert {named.predict_one(x) for x in rows} == {"fraud", "valid"}


def test_model_given_is_not_changed():
    X, rows, labels = stream(40)
    model = CBR().fit(X, labels)
    before = model.coef_.copy()
    ranker = learned(model, rows, labels)
    np.testing.assert_array_equal(model.coef_, before)
    assert ranker.weights == learned(CBR(), rows, labels).weights


@every_learner
def test_pickled_model_goes_on_the_same(model):
    _, rows, labels = stream(100)
    model = seeded(model, 5)
    whole = learned(model, rows, labels)
    ranker = learned(model, rows[:60], labels[:60])
    ranker = pickle.loads(pickle.dumps(ranker))
    for x, y in zip(rows[60:], labels[60:], strict=True):
        ranker.learn_one(x, y)
    assert ranker.weights == whole.weights


def test_errors_say_what_to_do():
    ranker = as_river(CBR())
    for value in (math.inf, [1]):
        with pytest.raises(ValueError, match=r"'size' is .*: pass text, a finite number or None"):
            ranker.learn_one({"size": value}, True)
    for label in ("yes", None, math.nan):
        with pytest.raises(
            ValueError, match=r"is neither False .* nor True .* only be scored.*classes="
        ):
            ranker.learn_one({"size": 1.0}, label)
    with pytest.raises(TypeError, match="is not a row of River: pass a dict"):
        ranker.learn_one([1.0, 2.0], True)
    assert ranker.weights == {}
    with pytest.raises(ValueError, match="C=-1 must be"):
        as_river(CBR(C=-1))
    with pytest.raises(TypeError, match=r"is not an online learner.*as_river\(CBR\(\)\)"):
        as_river(metrics.ROCAUC())
