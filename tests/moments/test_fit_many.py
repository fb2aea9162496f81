"""Many labels against the rest, held against a fit of each."""

import pickle
from contextlib import contextmanager

import numpy as np
import pytest
from scipy import sparse

from draws import quick
from moments.mibc_cases import (
    COVARIANCES,
    EXACT,
    assert_same_hyperplane,
    each_covariance,
    rare_rows,
)
from rareclass.moments import MIBC
from rareclass.rows import from_arrays


def topics(n=400, d=8, n_labels=4, seed=0):
    """Rows with several labels each or none; a label moves its rows, one has a single row."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, n_labels)) < 0.04).astype(int)
    Y[:, 1] = 0
    Y[17] = 1  # one row with every label: the only one of label 1
    X = rng.normal(size=(n, d)) + Y @ rng.normal(size=(n_labels, d))
    return X * (rng.random((n, d)) < 0.7), Y


X, Y = topics()
rtol_of = {name: 1e-4 if name == "sparse_inverse" else 1e-7 for name in COVARIANCES}


def separate(container, parameters, Y=Y, X=X, weight=None):
    return [
        MIBC(pos_label=1, **parameters).fit(container(X), label, weight)
        for label in np.asarray(Y, int).T
    ]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", COVARIANCES)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "labels", quick(2, [np.asarray, sparse.csc_matrix, sparse.csr_array, sparse.coo_array])
)
@pytest.mark.parametrize("weighted", [False, True])
def test_many_fits_are_separate_fits(name, container, labels, weighted):
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], 400) if weighted else None
    if weighted:
        weight[17] = 1.0
    parameters = {**COVARIANCES[name], **EXACT}
    models = MIBC(**parameters).fit_many(container(X), labels(Y), weight)
    wanted = separate(container, parameters, weight=weight)
    assert len(models) == 4
    for one, other in zip(models, wanted, strict=True):
        assert_same_hyperplane(one, other, rtol_of[name])
        np.testing.assert_allclose(one.decision_function(container(X)), one.decision_function(X))
        assert one.dual_coef_.shape == other.dual_coef_.shape
        assert (one.pos_label_, one.classes_.tolist()) == (1, [0, 1])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.filterwarnings("ignore:The covariance of the majority has no inverse:UserWarning")
def test_columns_that_only_a_label_has(container):
    """What varies in the rows of a label alone is constant in its majority, and 0 there."""
    data = np.c_[X, np.where(Y[:, 0] == 1, 0.1 * np.arange(400), 0.0)]
    data[:, 2] = np.where(Y[:, 2] == 1, data[:, 2], 5.0)
    for name in ("full", "diagonal", "factor"):
        parameters = {**COVARIANCES[name], "ridge": 0.2, **EXACT}
        models = MIBC(**parameters).fit_many(container(data), Y)
        for one, other in zip(models, separate(container, parameters, X=data), strict=True):
            assert_same_hyperplane(one, other, 1e-7)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_far_from_zero(container):
    data = rare_rows(400)[0] + [1e6, -1e6, 0.0, 1e5, 0.0]
    models = MIBC(**EXACT).fit_many(container(data), Y)
    for one, other in zip(models, separate(container, EXACT, X=data), strict=True):
        np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6 * np.abs(other.coef_).max())


@each_covariance
def test_labels_of_nearly_every_row(given):
    """The rest may be a handful: nearly all rows are taken out again."""
    many = np.ones((400, 1), int)
    many[::25] = 0
    parameters = {**given, "ridge": 1.0} if given != COVARIANCES["shrunk"] else given
    one = MIBC(**parameters, **EXACT).fit_many(X, many)[0]
    other = separate(np.asarray, {**parameters, **EXACT}, many)[0]
    assert_same_hyperplane(one, other, 1e-4 if "sparse_i" in str(given) else 1e-7)


def test_the_estimator_stays_as_it_is_and_labels_keep_hyperplanes_only():
    estimator = MIBC(C=0.3).fit(X, Y[:, 0])
    before = pickle.dumps(estimator)
    models = estimator.fit_many(X, Y)
    assert pickle.dumps(estimator) == before
    for model in models:
        assert model.get_params() == estimator.get_params()
        assert not hasattr(model, "moments_")
        assert not hasattr(model, "rare_rows_")
        assert model.predict(X).shape == (400,)
        with pytest.raises(ValueError, match="forgotten its rows"):
            model.partial_fit(X, Y[:, 0])
    assert not hasattr(models[0], "feature_names_in_")


def test_names_rows_from_elsewhere_and_threads():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    wanted = MIBC(n_jobs=1).fit_many(X, Y)
    for data in (frame, from_arrays(frame, None)):
        for one, other in zip(MIBC(n_jobs=3).fit_many(data, Y), wanted, strict=True):
            np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)
            assert list(one.feature_names_in_) == list("abcdefgh")
    frames = MIBC().fit_many(X, pd.DataFrame(Y, columns=list("wxyz")))
    np.testing.assert_array_equal(frames[3].coef_, wanted[3].coef_)


def test_any_number_but_0_is_a_label_and_stored_zeros_are_none():
    signed = sparse.csr_array(Y * np.random.default_rng(0).choice([-1.0, 0.5, 3.0], Y.shape))
    stored = sparse.csr_array(
        (Y.ravel().astype(float), np.tile(np.arange(4), 400), np.arange(401) * 4), Y.shape
    )
    wanted = MIBC().fit_many(X, Y == 1)
    for labels in (signed, stored):
        for one, other in zip(MIBC().fit_many(X, labels), wanted, strict=True):
            np.testing.assert_array_equal(one.coef_, other.coef_)


def test_labels_that_tell_nothing_are_refused_by_column():
    none, every = Y.copy(), Y.copy()
    none[:, 2], every[:, 3] = 0, 1
    with pytest.raises(ValueError, match=r"label 2 \(column 2 of Y\) has no row"):
        MIBC().fit_many(X, none)
    with pytest.raises(ValueError, match=r"label 3 \(column 3 of Y\) has every row"):
        MIBC().fit_many(X, sparse.csc_array(every))
    weight = np.where(np.arange(400) == 17, 0.0, 1.0)  # the only row of label 1
    with pytest.raises(ValueError, match=r"label 1 \(column 1 of Y\) has no row"):
        MIBC().fit_many(X, Y, weight)
    missing = Y.astype(float)
    missing[9, 3] = np.nan
    for labels in (missing, sparse.csr_array(missing)):
        with pytest.raises(ValueError, match="NaN or infinity: row 9, column 3"):
            MIBC().fit_many(X, labels)


def test_what_is_no_label_matrix_is_refused():
    with pytest.raises(ValueError, match="MultiLabelBinarizer"):
        MIBC().fit_many(X, Y[:, 0])
    with pytest.raises(ValueError, match="X has 400 rows and Y has 399"):
        MIBC().fit_many(X, Y[1:])
    with pytest.raises(ValueError, match="C=-1"):
        MIBC(C=-1).fit_many(X, Y)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\)"):
        MIBC().fit_many(X, Y, np.ones(3))
    assert MIBC().fit_many(X, Y[:, :0]) == []


def test_progress_counts_the_labels(monkeypatch):
    told = []

    @contextmanager
    def track(title, total):
        told.append(total)
        yield lambda step=1: told.append(step)

    monkeypatch.setattr("rareclass.moments.solution.track", track)
    MIBC().fit_many(X, Y)
    assert told == [4, 1, 1, 1, 1]
