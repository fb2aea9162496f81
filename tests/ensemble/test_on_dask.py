"""`RareClassifier` on Dask collections: the model of the same rows in memory."""

import os
import signal
import threading
import time
from typing import ClassVar

import joblib
import numpy as np
import pandas as pd
import pytest

from ensemble.quick_members import MeanDifference
from rareclass import RareClassifier
from rareclass.ensemble import training_rows
from rareclass.ensemble.members.machines import LaplaceOnQuantiles, LogisticOnQuantiles
from rareclass.ensemble.members.trees import ExtraTrees
from rareclass.findings import FindingKind, finding_of

dd = pytest.importorskip("dask.dataframe", reason='pip install "rareclass[dask]"')
da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

N = 600
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
KERNEL = LaplaceOnQuantiles(lams=(2.0**-4,))
KINDS = ExtraTrees(trees=5), LogisticOnQuantiles(strengths=(0.1,)), KERNEL


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def model():
    return RareClassifier(members=KINDS[1:2], cv=3, random_state=0)


def scores_from(n_parts):
    frame = dd.from_pandas(TABLE, npartitions=n_parts, sort=False)
    features = frame.drop(columns=["label", "weight"])
    return model().fit(features, frame["label"], frame["weight"]).decision_function(X)


def test_a_frame_in_parts_gives_the_model_of_the_same_rows_in_memory():
    expected = model().fit(X, Y, WEIGHT).decision_function(X)
    for n_parts in (1, 7):
        np.testing.assert_array_equal(scores_from(n_parts), expected)
    frame = dd.from_pandas(X, npartitions=2, sort=False)
    with pytest.raises(ValueError, match=f"{N}"):
        model().fit(frame, Y[:500])


def test_of_a_long_collection_all_rare_rows_and_the_same_others_are_read(monkeypatch):
    monkeypatch.setattr(training_rows, "_MOST_READ", 200)
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
    assert len(brought[0]) == 200
    np.testing.assert_array_equal(*brought)


def test_arrays_cut_by_columns_as_well():
    numbers = TABLE[["a", "weight"]].to_numpy()
    expected = model().fit(numbers, Y).decision_function(numbers)
    found = model().fit(da.from_array(numbers, chunks=(250, 1)), da.from_array(Y, chunks=250))
    np.testing.assert_array_equal(found.decision_function(numbers), expected)


class Placed(MeanDifference):
    """Remembers the workers that learn its folds; in these tests they are in this process."""

    seen: ClassVar[list[str]] = []

    def learn(self, *rows):
        self.seen.append(distributed.get_worker().address)
        return super().learn(*rows)


class Sleeping(MeanDifference):
    def learn(self, *rows):
        time.sleep(2.0)
        return super().learn(*rows)


class Failing(MeanDifference):
    def learn(self, *rows):
        raise ArithmeticError("no mean")


@pytest.fixture
def on_workers():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        yield client


@pytest.mark.sampled(1)
@pytest.mark.parametrize("names", [("histogram boosting", "mibc"), KINDS])
def test_folds_on_workers_give_the_model_of_folds_here(request, names):
    here = RareClassifier(members=[*names, MeanDifference()], n_jobs=1).fit(X, Y, WEIGHT)
    client = request.getfixturevalue("on_workers")
    there = RareClassifier(members=[*names, Placed()], n_jobs=1).fit(X, Y, WEIGHT)
    np.testing.assert_array_equal(there.decision_function(X), here.decision_function(X))
    for name in ("member", "weight"):
        assert there.leaderboard_[name].tolist() == here.leaderboard_[name].tolist()
    assert set(Placed.seen) == set(client.nthreads())


@pytest.mark.usefixtures("on_workers")
def test_a_member_that_fails_on_a_worker_is_left_out_and_named():
    with pytest.warns(UserWarning, match="bad") as said:
        RareClassifier(members=[MeanDifference(), Failing("bad")]).fit(X, Y)
    found = finding_of(said[0].message)
    assert found.kind is FindingKind.MEMBER_FAILED
    assert found.values == {"member": "bad", "error": "no mean"}


@pytest.mark.usefixtures("on_workers")
def test_a_member_that_has_no_time_on_a_worker_is_stopped(monkeypatch):
    # Clocks stand still while another thread compiles: on a slow machine longer than the member is.
    monkeypatch.setattr("rareclass.ensemble.cross_fitting.compiled_seconds", lambda: 0.0)
    slow = [MeanDifference(), Sleeping("slow")]
    with pytest.warns(UserWarning, match="time_budget"):
        model = RareClassifier(members=slow, time_budget=2.0).fit(X, Y)
    assert model.without_time_ == ["slow"]


@pytest.mark.sampled(0)
def test_folds_of_a_killed_worker_are_learned_again():
    members = [Sleeping()]
    expected = RareClassifier(members=members, cv=2).fit(X, Y)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        (pid,) = client.run(os.getpid).values()
        killed = threading.Timer(1.0, os.kill, (pid, signal.SIGKILL))
        killed.start()
        found = RareClassifier(members=members, cv=2).fit(X, Y)
        assert pid not in client.run(os.getpid).values()
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))
