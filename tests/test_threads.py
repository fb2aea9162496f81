"""Fitted estimators answer alike in one thread, in many, and in other processes."""

import multiprocessing
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from faults import refused
from rareclass import RareClassifier
from rareclass.errors import ErrorKind, InputError
from rareclass.estimators.estimator import FitsRows
from registered import ESTIMATORS, MORE_ESTIMATORS

METHODS = ("predict", "predict_proba", "decision_function", "score_samples", "transform")
_THREADS, _TIMES = 8, 3

rng = np.random.default_rng(5)
Y = np.repeat([1, 0], [12, 108])
X = rng.normal(size=(120, 5)) + Y[:, None]
NEW = rng.normal(size=(70, 5)) + np.linspace(0.0, 1.0, 70)[:, None]
TABLE = pd.DataFrame(NEW, columns=list("abcde")).assign(
    word=np.where(NEW[:, 0] > 0, "x", "y"), day=pd.Timestamp("2024-01-01")
)
ALL = [*ESTIMATORS, *MORE_ESTIMATORS]
LEARNERS = [each for each in ALL if hasattr(each, "partial_fit")]


@cache
def fitted(k):
    with warnings.catch_warnings(action="ignore"):
        return clone(ALL[k]).fit(X, Y)


@cache
def of_tables():
    table = pd.DataFrame(X, columns=list("abcde")).assign(
        word=np.where(X[:, 0] > 0, "x", "y"), day=pd.Timestamp("2024-01-01")
    )
    with warnings.catch_warnings(action="ignore"):
        return RareClassifier(members=["logistic regression", "extra trees"], cv=2).fit(table, Y)


def answers(model, rows):
    names = [name for name in METHODS if hasattr(model, name)]
    return {name: np.asarray(getattr(model, name)(rows)) for name in names}


def all_answers(models):
    return [answers(model, rows) for model, rows in models]


def check_same(found, known):
    assert found.keys() == known.keys()
    for name, answer in known.items():
        np.testing.assert_array_equal(found[name], answer, name)


def from_threads(call):
    together = threading.Barrier(_THREADS)

    def run(_):
        together.wait(20)
        return [call() for _ in range(_TIMES)]

    with ThreadPoolExecutor(_THREADS) as pool:
        for found in pool.map(run, range(_THREADS)):
            yield from found


@pytest.mark.sampled(5)
@pytest.mark.parametrize("k", [None, *range(len(ALL))], ids=["table", *map(repr, ALL)])
def test_threads_get_the_answers_of_one(k):
    model, rows = (of_tables(), TABLE) if k is None else (fitted(k), NEW)
    known = answers(model, rows)
    assert known
    for found in from_threads(lambda: answers(model, rows)):
        check_same(found, known)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("how", ["loky", "fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_processes_get_the_answers_of_this_one(how):
    models = [(fitted(k), NEW) for k in range(len(ALL))]
    models += [(of_tables(), TABLE)] * (how != "fork")
    known = all_answers(models)  # compiled, and pools of threads have run: fork copies this
    if how == "loky":
        found = joblib.Parallel(2, backend="loky")(
            joblib.delayed(all_answers)(models) for _ in range(2)
        )
    else:
        with multiprocessing.get_context(how).Pool(2) as pool:
            found = pool.map_async(all_answers, [models] * 2).get(300)
    for each in found:
        for answer, expected in zip(each, known, strict=True):
            check_same(answer, expected)


def _refused_of(model, rows):
    try:
        answers(model, rows)
    except InputError as error:
        return error.kind
    return None


@pytest.mark.skipif(sys.platform != "linux", reason="threads of polars are found on Linux")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_tables_in_a_forked_process_are_refused_once_this_one_has_read_tables():
    """The threads of polars do not come along, and it would wait for them forever."""
    answers(of_tables(), TABLE)
    pl.DataFrame({"a": [2, 1], "b": [1, 2]}).select(pl.all().sort())  # its threads are there
    with multiprocessing.get_context("fork").Pool(1) as pool:
        table, array = [(of_tables(), TABLE)], [(fitted(0), NEW)]
        found = pool.starmap_async(_refused_of, table + array).get(60)
    assert found == [ErrorKind.UNSUPPORTED, None]


class CallsBack:
    """Rows that are read while a method learns: meanwhile another thread calls it."""

    def __init__(self, rows, call):
        self._rows, self._call = rows, call
        self.shape, self.dtype = rows.shape, rows.dtype

    def __len__(self):
        return len(self._rows)

    def __array__(self, dtype=None, copy=None):
        thread = threading.Thread(target=self._call)
        thread.start()
        thread.join()
        return np.asarray(self._rows, dtype)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("learner", LEARNERS, ids=[type(each).__name__ for each in LEARNERS])
def test_a_second_thread_that_learns_is_refused(learner):
    model, called = clone(learner).partial_fit(X, Y, classes=[0, 1]), list[Any]()
    known = clone(learner).partial_fit(X, Y, classes=[0, 1]).partial_fit(X[:20], Y[:20])

    def learn():
        with refused(ErrorKind.LOCKED, says=type(model).__name__):
            model.partial_fit(X, Y)
        called.append(answers(clone(learner).partial_fit(X, Y, classes=[0, 1]), NEW))  # another may

    model.partial_fit(CallsBack(X[:20], learn), Y[:20])
    assert called
    check_same(answers(model, NEW), answers(known, NEW))
    model.partial_fit(X[:20], Y[:20])  # it is free again


@pytest.mark.sampled(5)
@pytest.mark.parametrize("k", [k for k, one in enumerate(ALL) if isinstance(one, FitsRows)])
def test_last_bits_do_not_depend_on_the_threads_of_blas(k):
    y = np.arange(700) < 70
    X = np.random.default_rng(0).normal(size=(700, 60)) + 0.4 * y[:, None]
    seed = {"random_state": 0} if hasattr(ALL[k], "random_state") else {}
    found = []
    for n_threads in (1, 2, 3):
        with warnings.catch_warnings(action="ignore"), threadpool_limits(n_threads, "blas"):
            found.append(answers(clone(ALL[k]).set_params(**seed).fit(X, y), X[::3]))
    check_same(found[1], found[0])
    check_same(found[2], found[0])
