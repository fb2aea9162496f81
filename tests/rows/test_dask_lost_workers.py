"""Workers that are lost while a fit runs: their rows are read again, and nothing changes."""

import os
import random
import signal
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from rareclass import RankRCCV
from rareclass.errors import InputError
from rareclass.rows import from_dask

pytestmark = pytest.mark.sampled(0)

dask = pytest.importorskip("dask", reason='pip install "rareclass[dask]"')
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N_PARTS, ROWS, N_WORKERS = 6, 1000, 3
MODEL = RankRCCV(lams=[1.0, 0.01], cv=3, tol=1e-10, landmarks=("rare", 40), random_state=0)


def part(number):
    rng = np.random.default_rng(number)
    X = rng.normal(size=(ROWS, 4))
    return X, (X[:, 0] ** 2 + X[:, 1] / 2 + rng.normal(size=ROWS) / 2 > 4).astype(int)


def features(number):
    return part(number)[0]


def collections():
    blocks = [dask.delayed(features)(k) for k in range(N_PARTS)]
    labels = [dask.delayed(part)(k)[1] for k in range(N_PARTS)]
    return blocks, labels


@pytest.fixture(scope="module")
def expected():
    X, y = (np.concatenate(each) for each in zip(*map(part, range(N_PARTS)), strict=True))
    return X, MODEL.fit(X, y).score_samples(X)


def cluster(**settings):
    return distributed.LocalCluster(threads_per_worker=1, dashboard_address=":0", **settings)


def agree(model, expected):
    X, scores = expected
    np.testing.assert_allclose(model.score_samples(X), scores, rtol=1e-8, atol=1e-8)


def test_a_worker_that_leaves_takes_nothing_along(expected, monkeypatch):
    with cluster(n_workers=3, processes=False) as workers, distributed.Client(workers) as client:
        rows = from_dask(*collections())
        left = min(client.nthreads())
        ask, n_asked = rows.source.ask, 0

        def leaves(*args):
            nonlocal n_asked
            n_asked += 1
            if n_asked == 10:
                client.retire_workers([left], close_workers=True)
            return ask(*args)

        monkeypatch.setattr(rows.source, "ask", leaves)
        agree(MODEL.fit_rows(rows), expected)
        assert n_asked > 10
        assert left not in client.nthreads()


def test_a_scheduler_that_is_gone_is_named():
    with cluster(n_workers=1, processes=False) as workers:
        client = distributed.Client(workers, timeout=1)
        try:
            rows = from_dask(*collections())
            workers.close()
            with pytest.raises(InputError, match="Dask scheduler was lost"):
                MODEL.fit_rows(rows)
        finally:
            client.close(timeout=1)


@contextmanager
def killing(workers, most):
    """Kill processes of workers at random moments, each time when all of them are at work.

    Dask gives up a worker that dies while it starts.
    """
    done, kills = threading.Event(), []

    def kill():
        rng = random.Random(0)
        while len(kills) < most and not done.wait(rng.uniform(0.8, 2.0)):
            alive = [each.pid for each in workers.workers.values() if each.pid]
            if len(workers.scheduler.workers) == len(alive) == N_WORKERS:
                kills.append(rng.choice(alive))
                os.kill(kills[-1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield kills
    finally:
        done.set()
        thread.join()


@pytest.mark.thorough
def test_killed_workers_change_nothing(expected):
    n_mended = 0
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 20}),
        cluster(n_workers=N_WORKERS, processes=True) as workers,
        distributed.Client(workers),
        killing(workers, 20) as kills,
    ):
        while len(kills) < 20:
            workers.scale(N_WORKERS)
            before = len(kills)
            rows = from_dask(*collections())
            agree(MODEL.fit_rows(rows), expected)
            n_mended += len(kills) > before
    # Most of them fell into a fit, some between two.
    assert n_mended >= 4
