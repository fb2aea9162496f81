"""Dask collections: real workers, in this process where nothing else is asked."""

import time
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from draws import quick
from rareclass import (
    MIBC,
    MIBCCV,
    OrdinalRankRC,
    OrdinalRankRCCV,
    RankRC,
    RankRCCV,
    StochasticRankRC,
)
from rareclass.errors import InputError
from rareclass.rows import from_dask

pytestmark = pytest.mark.sampled(0)

dask = pytest.importorskip("dask", reason='pip install "rareclass[dask]"')
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

N = 1500
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
Y = (X[:, 0] ** 2 + X[:, 1] / 2 + RNG.normal(size=N) / 2 > 3.5).astype(int)
LEVELS = Y + (X[:, 0] > 2)
WEIGHT = RNG.integers(0, 4, N).astype(float)


def no_file(number):
    raise FileNotFoundError(f"part-{number}.parquet")


def test_without_a_cluster_the_remedy_is_told():
    with pytest.raises(InputError, match=r"dask\.distributed\.Client\(\)"):
        from_dask(da.zeros((4, 1)), client=None)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def chunks(n_parts):
    return -(-N // n_parts)


ESTIMATORS = [
    RankRC(lam=2**-6, tol=1e-10),
    RankRC(lam=2**-6, tol=1e-10, landmarks=("rare", 20), random_state=0),
    RankRC(lam=1e-3, tol=1e-10, penalty="l1"),
    RankRC(lam=2**-6, tol=1e-10, loss="pnorm_push"),
    RankRCCV(lams=[1.0, 0.01], cv=3, tol=1e-10, random_state=0),
    MIBC(),
    MIBCCV(Cs=[0.1, 1.0], cv=3, tol=1e-10, random_state=0),
    StochasticRankRC(lam=0.1, tol=0.05, landmarks=("rare", 10), random_state=0),
]
# One of them in as many ways as there are, moments and a search once; the others take their time.
QUICK = {(id(ESTIMATORS[k]), n) for k, n in ((1, 1), (1, 2), (1, 7), (4, 7), (5, 7))}
FITS = [
    pytest.param(each, n, marks=() if (id(each), n) in QUICK else pytest.mark.thorough)
    for each in ESTIMATORS
    for n in (1, 2, 7)
]


@pytest.mark.parametrize(("estimator", "n_parts"), quick(3, FITS), ids=str)
def test_a_fit_is_the_one_in_memory(client, estimator, n_parts):
    weight = WEIGHT if n_parts == 2 else None
    expected = estimator.fit(X, Y, weight).score_samples(X)
    size = chunks(n_parts)
    rows = from_dask(
        da.from_array(X, chunks=(size, 2)),
        da.from_array(Y, chunks=size),
        weight=None if weight is None else da.from_array(weight, chunks=size),
    )
    found = estimator.fit_rows(rows).score_samples(X)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize(
    "estimator",
    quick(1, [OrdinalRankRC(tol=1e-10), OrdinalRankRCCV(lams=[1.0, 0.1], cv=2, tol=1e-10)]),
    ids=str,
)
def test_levels_are_the_same_too(client, estimator):
    expected = estimator.fit(X, LEVELS).score_samples(X)
    found = estimator.fit(da.from_array(X, chunks=(400, 4)), da.from_array(LEVELS, chunks=400))
    np.testing.assert_allclose(found.score_samples(X), expected, rtol=1e-8, atol=1e-8)
    assert len(found.classes_) == 3


def test_frames_of_unknown_length_and_several_types(client):
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["a"] = frame["a"].astype(np.float32)
    frame["k"] = RNG.integers(0, 5, N)
    names = np.where(Y, "fraud", "ok")
    expected = RankRC(tol=1e-10).fit(frame, names)
    whole = dd.from_pandas(frame.assign(y=names, w=1.0), npartitions=4)
    whole = whole[whole["k"] >= 0]  # lengths are not known any more
    rows = from_dask(whole, target="y", weight="w")
    assert rows.feature_names == (*"abcd", "k")
    found = RankRC(tol=1e-10).fit_rows(rows)
    assert found.classes_.tolist() == ["fraud", "ok"]
    np.testing.assert_array_equal(found.feature_names_in_, expected.feature_names_in_)
    scores = expected.score_samples(frame)
    np.testing.assert_allclose(found.score_samples(frame), scores, rtol=1e-8, atol=1e-9)
    lazy = found.score_samples(whole.drop(columns=["y", "w"]))
    assert isinstance(lazy, dd.Series)
    np.testing.assert_allclose(lazy.compute(), scores, rtol=1e-8, atol=1e-9)
    some = from_dask(whole, target="y", columns=["b", "a"], dtype="float32")
    assert (some.feature_names, some.source.dtype) == (("b", "a"), np.float32)


def test_sparse_and_empty_blocks_and_blocks_of_one_class(client):
    cells = sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0))
    order = np.argsort(-Y, kind="stable")  # the rare rows are all in the first blocks
    cells, y = cells[order], Y[order]
    edges = [0, 0, 20, 700, 700, N]
    blocks = [dask.delayed(cells[a:b]) for a, b in pairwise(edges)]
    labels = [dask.delayed(y[a:b]) for a, b in pairwise(edges)]
    rows = from_dask(blocks, labels)
    expected = RankRC(tol=1e-10).fit(cells, y).score_samples(cells)
    found = RankRC(tol=1e-10).fit_rows(rows)
    np.testing.assert_allclose(found.score_samples(cells), expected, rtol=1e-8, atol=1e-9)
    moments = MIBC(covariance="diagonal").fit(cells, y)
    np.testing.assert_allclose(
        MIBC(covariance="diagonal").fit_rows(from_dask(blocks, labels)).coef_,
        moments.coef_,
        rtol=1e-8,
    )


def test_scores_are_lazy_and_of_the_same_parts(client):
    model = RankRCCV(lams=[0.1], cv=3).fit(X, Y)
    parts = da.from_array(X, chunks=(400, 2))
    for method in ("score_samples", "decision_function", "predict", "predict_proba", "transform"):
        lazy = getattr(model, method)(parts)
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == parts.chunks[0]
        expected = getattr(model, method)(X)
        assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-9, atol=1e-12)
    y = da.from_array(Y, chunks=400)
    assert model.score(parts, y) == pytest.approx(model.score(X, Y), rel=1e-12)


def test_bad_parts_are_named(client):
    bad = X.copy()
    bad[900, 1] = np.nan
    with pytest.raises(InputError, match=r"part 2 .*NaN: row 100, column 1"):
        RankRC().fit(da.from_array(bad, chunks=(400, 4)), Y)
    frame = dd.from_pandas(pd.DataFrame({"a": ["x", "y"], "y": [0, 1]}), npartitions=1)
    with pytest.raises(InputError, match="column 'a' holds String, not numbers"):
        from_dask(frame, target="y")
    with pytest.raises(InputError, match="no column 'z'"):
        from_dask(frame, target="z")
    with pytest.raises(InputError, match="target= has 3 parts, the features 4"):
        from_dask(da.zeros((8, 1), chunks=(2, 1)), da.zeros(8, chunks=3))
    with pytest.raises(InputError, match="2 rows and 3 of its target"):
        from_dask(da.zeros((4, 1), chunks=(2, 1)), da.zeros(6, chunks=3))
    with pytest.raises(InputError, match="part 1 has the columns 3, others 2"):
        from_dask([dask.delayed(np.zeros((2, 2))), dask.delayed(np.zeros((2, 3)))])
    with pytest.raises(TypeError, match="ndarray is no Dask array"):
        from_dask(X)


def test_a_part_that_cannot_be_read_is_no_lost_scheduler(client):
    with pytest.raises(FileNotFoundError, match=r"part-7\.parquet"):
        from_dask([dask.delayed(no_file)(7)])


def test_delayed_blocks_are_learned_from_as_rows_only(client):
    block = dask.delayed(np.ones)((3, 2))
    for X in (block, [block, block]):
        with pytest.raises(InputError, match=r"fit_rows\(rareclass.rows.from_dask"):
            MIBC().fit(X, np.arange(6) < 2)


def test_a_model_that_did_not_learn_scores_nothing(client):
    with pytest.raises(NotFittedError):
        MIBC().score_samples(da.ones((6, 2), chunks=(3, 2)))


def test_workers_forget_rows_that_nobody_holds(client):
    def held():
        return {key for keys in client.has_what().values() for key in keys if "read_part" in key}

    before = held()
    rows = from_dask(da.from_array(X, chunks=(500, 4)))
    own = held() - before
    assert len(own) == 3
    rows.close()
    for _ in range(100):
        if not own & held():
            return
        time.sleep(0.05)
    raise AssertionError(own & held())
