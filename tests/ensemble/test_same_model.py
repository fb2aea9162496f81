"""The same rows, seed and effort give the same model, bit for bit, whatever runs beside."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rareclass import RareClassifier
from rareclass.ensemble.members.member import FoldByFold

N = 1000
RANDOM = np.random.default_rng(0)
Y = RANDOM.random(N) < 0.05
TABLE = pl.DataFrame(
    {
        "amount": np.exp(RANDOM.normal(3, 1, N) + 0.8 * Y),
        "b": np.where(RANDOM.random(N) < 0.1, np.nan, RANDOM.normal(size=N) * (1 + Y)),
        "shop": RANDOM.choice([f"s{k}" for k in range(200)], N),
        "flag": RANDOM.random(N) < 0.2 + 0.3 * Y,
    }
)


def scores(n_jobs, **more):
    model = RareClassifier(random_state=0, n_jobs=n_jobs, verbose=False, **more)
    return model.fit(TABLE, Y).score_samples(TABLE)


@pytest.fixture(scope="module")
def expected():
    return scores(1)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "more", [{}, {"effort": "quick"}, {"members": ["histogram boosting", "extra trees"]}]
)
def test_the_order_in_which_folds_end_makes_no_difference(more, monkeypatch):
    expected = scores(1, **more)
    learn_fold, waits = FoldByFold._learn_fold, np.random.default_rng(1).random(100) * 0.1
    lock, begun, ended = threading.Lock(), [], []

    def shuffled(member, rows, number, n_threads):
        with lock:
            begun.append(number)
            wait = waits[len(begun)]
        found = learn_fold(member, rows, number, n_threads)
        time.sleep(wait)
        ended.append(number)
        return found

    monkeypatch.setattr(FoldByFold, "_learn_fold", shuffled)
    np.testing.assert_array_equal(scores(4, **more), expected)
    assert begun != ended


FIT = """
import sys
sys.path.insert(0, sys.argv[1])
from ensemble.test_same_model import np, scores
np.save(sys.argv[2], scores(int(sys.argv[3])))
"""
BUSY = [sys.executable, "-c", "while True: pass"]


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("how", "n_jobs"), [("beside busy processes", 2), ("on one core", 2), ("first run", 1)]
)
def test_what_runs_beside_makes_no_difference(expected, how, n_jobs, tmp_path):
    environment, pinned = dict(os.environ), []
    if how == "first run":
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    if how == "on one core":
        pinned = ["taskset", "-c", "0"]
    busy = [subprocess.Popen(BUSY) for _ in range(4 if how.startswith("beside") else 0)]
    out, tests = tmp_path / "scores.npy", Path(__file__).parents[1]
    try:
        words = [*pinned, sys.executable, "-c", FIT, str(tests), str(out), str(n_jobs)]
        subprocess.run(words, check=True, env=environment, timeout=300)
    finally:
        for each in busy:
            each.kill()
            each.wait()
    np.testing.assert_array_equal(np.load(out), expected)
