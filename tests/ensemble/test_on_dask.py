"""`RareClassifier` on Dask collections: the model of the same rows in memory."""

import numpy as np
import pandas as pd
import pytest

from rareclass import RareClassifier
from rareclass.ensemble import training_rows

dd = pytest.importorskip("dask.dataframe", reason='pip install "rareclass[dask]"')
da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

N = 1200
RNG = np.random.default_rng(0)
Y = np.where(RNG.random(N) < 0.08, "fraud", "ok")
WEIGHT = RNG.integers(1, 3, N)
TABLE = pd.DataFrame(
    {
        "a": RNG.normal(size=N) + (Y == "fraud"),
        "shop": RNG.choice(["x", "y", "z"], N),
        "when": pd.Timestamp("2026-01-01") + pd.to_timedelta(RNG.integers(0, 9999, N), "h"),
        "kind": pd.Categorical(RNG.choice(["u", "v"], N)),
        "label": Y,
        "weight": WEIGHT,
    }
)
X = TABLE.drop(columns=["label", "weight"])


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def model():
    return RareClassifier(members=("logistic regression",), random_state=0)


def scores_from(n_parts):
    frame = dd.from_pandas(TABLE, npartitions=n_parts, sort=False)
    features = frame.drop(columns=["label", "weight"])
    return model().fit(features, frame["label"], frame["weight"]).decision_function(X)


@pytest.mark.parametrize("n_parts", [1, 7])
def test_a_frame_in_parts_gives_the_model_of_the_same_rows_in_memory(n_parts):
    expected = model().fit(X, Y, WEIGHT).decision_function(X)
    np.testing.assert_array_equal(scores_from(n_parts), expected)


def test_of_a_long_collection_all_rare_rows_and_the_same_others_are_read(monkeypatch):
    monkeypatch.setattr(training_rows, "_MOST_READ", 400)
    brought = []
    take = training_rows.draw_majority

    def watched(is_rare, *args):
        drawn = take(is_rare, *args)
        brought.append(drawn.rows)
        return drawn

    monkeypatch.setattr(training_rows, "draw_majority", watched)
    one, several = scores_from(1), scores_from(5)
    np.testing.assert_array_equal(one, several)
    rare = np.flatnonzero(Y == "fraud")
    assert np.isin(rare, brought[0]).all()
    assert len(brought[0]) == 400
    np.testing.assert_array_equal(*brought)


def test_arrays_cut_by_columns_as_well():
    numbers = TABLE[["a", "weight"]].to_numpy()
    expected = model().fit(numbers, Y).decision_function(numbers)
    found = model().fit(da.from_array(numbers, chunks=(500, 1)), da.from_array(Y, chunks=500))
    np.testing.assert_array_equal(found.decision_function(numbers), expected)


def test_labels_of_another_length_are_refused():
    frame = dd.from_pandas(X, npartitions=2, sort=False)
    with pytest.raises(ValueError, match=r"1,?200"):
        model().fit(frame, Y[:1000])
