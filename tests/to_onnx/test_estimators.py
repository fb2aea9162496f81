"""Estimators of numbers: scores, labels and probabilities of the library, in another runtime."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import faults
from draws import draws
from rareclass import (
    MIBC,
    MIBCCV,
    RACH,
    OrdinalRankRC,
    OrdinalRankRCCV,
    RankRC,
    RankRCCV,
    RankSVM,
    RareClassifier,
    StochasticRankRC,
    to_onnx,
)
from rareclass.decide.calibration import METHODS, Calibration
from rareclass.encoding.bounded_numbers import BoundedNumbers
from rareclass.errors import ErrorKind, InputError
from rareclass.model.onnx.estimators import ModelOutputs, finished, probability
from rareclass.model.onnx.graph import Graph, TableInputs, Tensor
from rareclass.model.onnx.rare_classifier import bounded
from rareclass.online import CBR, OAM, OPAUC, AdaOAM, OnlineLogistic, UniExp
from to_onnx.sessions import answers, differences

PARITY = 1e-6
KERNELS = {
    "gaussian": RankRC(),
    "laplace": RankRC(kernel="laplace"),
    "linear": RankSVM(),
    "polynomial": RankRC(kernel="polynomial"),
    "learned scales": RankRC(width=2.0),
    "linear by landmarks": RankRC(kernel="linear"),
    "sparse": RankRC(penalty="l1"),
    "no landmark": RankRC(lam=1e9, penalty="l1"),
    "stochastic": StochasticRankRC(random_state=0),
}
LINEAR = {
    "mibc": MIBC(),
    "cbr": CBR(random_state=0),
    "oam": OAM(random_state=0),
    "opauc": OPAUC(random_state=0),
    "adaoam": AdaOAM(random_state=0),
    "uniexp": UniExp(random_state=0),
    "logistic": OnlineLogistic(random_state=0),
}
SEARCHES = {
    "rankrc": RankRCCV(lams=[1.0, 0.01], cv=2),
    "mibc": MIBCCV(Cs=[0.1, 1.0], cv=2),
    "levels": OrdinalRankRCCV(lams=[1.0, 0.01], cv=2),
}


@st.composite
def tables(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_features = draw(st.integers(1, 4))
    X = random.normal(size=(60, n_features)) * 10.0 ** draw(st.integers(-3, 3))
    X += draw(st.sampled_from([0.0, 1.0, 100.0])) * X.std()
    y = np.arange(60) % 6 == 0
    X[y, 0] += X.std()
    if draw(st.booleans()):
        X = X.round(1)
    new = np.concatenate([X, X[:5] + 1e-9, 3.0 * X[:5], np.zeros((1, n_features))])
    return X, y, new


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", [*KERNELS, *LINEAR])
@given(tables())
@draws(12)
def test_scores_are_those_of_the_library(name, table):
    X, y, new = table
    with warnings.catch_warnings(action="ignore"):  # of no landmark, and short solutions
        model = (KERNELS | LINEAR)[name].fit(X, y)
    if name == "learned scales":
        model.feature_scales_ = np.linspace(0.0, 2.0, X.shape[1]) / (X.std() or 1.0)
    apart, _, same = differences(answers(to_onnx(model), new), model, new)
    scale = max(1.0, float(np.abs(model.score_samples(new)).max()))
    assert apart <= PARITY * scale
    assert same or np.abs(model.score_samples(new) - model.offset_).min() <= PARITY * scale


@pytest.mark.parametrize("name", SEARCHES)
def test_probabilities_are_those_of_the_library(name):
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 3))
    y = np.where(X[:, 0] > 1.0, "rare", "usual")
    y = np.digitize(X[:, 0], [0.5, 1.2]) if name == "levels" else y
    model = SEARCHES[name].fit(X, y)
    new = np.concatenate([X, 5.0 * X])
    apart, of_probabilities, same = differences(answers(to_onnx(model), new), model, new)
    assert max(apart, of_probabilities) <= PARITY
    assert same


@pytest.mark.parametrize(
    "labels", [[False, True], [0, 1], ["a", "b"], [3.0, -1.0], ["rare", "A"]], ids=str
)
def test_labels_keep_their_type(labels):
    X = np.arange(20.0)[:, None]
    y = np.array(labels)[(X[:, 0] > 16).astype(int)]
    model = MIBC().fit(X, y)
    found = answers(to_onnx(model), X)["label"]
    assert found.tolist() == model.predict(X).tolist()


TREES = RareClassifier(members="extra trees", cv=2, n_jobs=1)


@pytest.mark.parametrize("model", [RankRC(), OrdinalRankRC(), TREES, CBR()], ids=repr)
def test_pipelines_convert(model):
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 3)) * [1.0, 100.0, 1e-3]
    y = (X[:, 0] > 1.0).astype(int)
    pipeline = make_pipeline(StandardScaler(), PCA(2), model).fit(X, y)
    found = answers(to_onnx(pipeline), X)
    *apart, same = differences(found, pipeline, X)
    assert max(apart) <= PARITY
    assert same
    assert found["score"].shape == (120, 1)


def refused(model):
    with pytest.raises(InputError) as told:
        to_onnx(model)
    return str(told.value)


def test_what_cannot_be_converted_says_why():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0] > 1.0
    assert "sparse rows" in refused(RankRC().fit(sparse.csr_array(X), y))
    assert "code of its own" in refused(RankRC(kernel=lambda a, b: a @ b.T).fit(X, y))
    assert "A RACH has no form" in refused(RACH().fit(X, y))
    assert "A RACH has no form" in refused(make_pipeline(StandardScaler(), RACH()).fit(X, y))
    steps = make_pipeline(FunctionTransformer(np.cbrt), MIBC()).fit(X, y)
    assert "FunctionTransformer" in refused(steps)
    with pytest.raises(NotFittedError):
        to_onnx(RankRC())


def test_several_rare_classes_are_refused_with_what_to_fit_instead():
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = np.repeat([0, 1, 2], [80, 20, 20])
    X[y > 0, y[y > 0] - 1] += 2.0
    model = RareClassifier(members="logistic regression", n_jobs=1, verbose=False)
    with faults.refused(ErrorKind.UNSUPPORTED, says="2 rare classes") as told:
        to_onnx(model.fit(X, y))
    assert "pos_label=" in told.value.remedy
    assert len(to_onnx(model.fit(X, y == 1)).graph.output) == 3


def value_of(formula, X):
    graph = Graph()
    inputs = TableInputs(graph, Tensor(graph, "X"))
    outputs = ModelOutputs(formula(Tensor(graph, "X")), None, None)
    return answers(finished(inputs, outputs, X.shape[1]), X)["score"]


@pytest.mark.parametrize("how", ["quantiles", "clipped"])
def test_numbers_are_bounded_as_the_library_bounds_them(how):
    random = np.random.default_rng(0)
    X = random.standard_cauchy(size=(200, 3)) * [1.0, 1e3, 1e-3] + [0.0, 5.0, -1.0]
    X[::3, 1] = 0.0
    numbers = BoundedNumbers(how).fit(X)
    new = np.concatenate([X, 10.0 * X, [[np.nan, 0.0, 1e30]]])
    found = value_of(lambda tensor: bounded(tensor, numbers), new)
    np.testing.assert_allclose(found, numbers.transform(new), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("are_shares", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_probabilities_are_those_of_the_map(method, are_shares):
    random = np.random.default_rng(1)
    y = np.arange(300) % 10 == 0
    scores = random.normal(size=300) + 1.5 * y
    scores = 1.0 / (1.0 + np.exp(-scores)) if are_shares else 20.0 * scores + 7.0
    calibration = Calibration.fit(y.astype(int), scores, method=method)
    new = np.concatenate([scores, [0.0, 1.0, 0.5, 3.0, -3.0]])
    found = value_of(lambda tensor: probability(tensor, calibration), new[:, None])
    np.testing.assert_allclose(found[:, 0], calibration(new), rtol=1e-9, atol=1e-12)
