"""One table, learned from wherever its rows live: the same scores, at default settings."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from rareclass import MIBC, MIBCCV, OrdinalRankRC, RankRC, RankRCCV, StochasticRankRC
from rareclass.rows import from_arrays, from_table
from rows_in_process import InProcess, held

# Enough rows for solvers to begin with a part of them.
N = 40_000
RNG = np.random.default_rng(0)
Y = (RNG.random(N) < 100 / N).astype(int)
X = RNG.normal(size=(N, 5)) + 0.8 * Y[:, None] * RNG.normal(size=5)
LEVELS = Y + Y * (X[:, 0] > 0.3)
WEIGHT = RNG.choice([0.0, 1.0, 1.0, 1.0, 1.0, 2.0, 3.0], N)
UNEVEN = [0, 100, N // 5, N // 5, N // 2, N // 2 + 13, N - N // 7, N]

ESTIMATORS = [
    RankRC(lam=1e-3),
    RankRC(lam=1e-4, landmarks=("rare", 40), random_state=0),
    RankRC(lam=1e-3, landmarks=("rare+majority", 50), random_state=0),
    RankRC(lam=1e-3, loss="pnorm_push"),
    RankRC(lam=1e-3, penalty="l1"),
    pytest.param(
        RankRC(lam=1e-3, feature_scaling="learned", random_state=0), marks=pytest.mark.thorough
    ),
    RankRCCV(lams=[1.0, 1e-2], cv=2, random_state=0),
    OrdinalRankRC(lam=1e-3),
    StochasticRankRC(lam=1e-2, landmarks=("rare", 30), random_state=0),
    MIBC(),
    MIBCCV(cv=2, random_state=0),
]


def in_memory(y, weight, folder):
    return from_arrays(X, y, weight)


def on_disk(y, weight, folder):
    columns = {f"c{k}": column for k, column in enumerate(X.T)} | {"y": y, "w": weight}
    pq.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=3333)
    features = [f"c{k}" for k in range(X.shape[1])]
    rows = from_table(folder / "rows.parquet", "y", weight="w", columns=features)
    return replace(rows, feature_names=None)


def in_parts(edges):
    def make(y, weight, folder):
        cut = [[each[start:stop] for start, stop in pairwise(edges)] for each in (X, y, weight)]
        return held(InProcess(), *cut)

    return make


PLACES = {
    "memory": in_memory,
    "disk": on_disk,
    "one part": in_parts([0, N]),
    "two parts": in_parts([0, N // 2, N]),
    "seven uneven parts": in_parts(UNEVEN),
}


def scores(estimator, rows, n_jobs=None):
    model = clone(estimator)
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=n_jobs)
    return model.fit_rows(rows).score_samples(X[:2000])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", list(PLACES))
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_scores_are_the_same_wherever_rows_live(estimator, place, tmp_path):
    y = LEVELS if isinstance(estimator, OrdinalRankRC) else Y
    expected = scores(estimator, from_arrays(X, y, WEIGHT), n_jobs=1)
    with PLACES[place](y, WEIGHT, tmp_path) as rows:
        found = scores(estimator, rows, n_jobs=2)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n_bytes", [2**17, 2**20])
@pytest.mark.parametrize("estimator", ESTIMATORS[:6], ids=str)
def test_scores_do_not_depend_on_the_size_of_blocks(monkeypatch, estimator, n_bytes):
    rows = from_arrays(X, Y, WEIGHT)
    expected = scores(estimator, rows)
    monkeypatch.setattr("rareclass.kernels.expansion._BLOCK_BYTES", n_bytes)
    found = scores(estimator, rows)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
