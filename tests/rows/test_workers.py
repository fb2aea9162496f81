"""Threads over blocks: started once, kept for the passes that follow, gone with the rows."""

import threading

import numpy as np
import pytest

from rareclass.rows import ArrayRows, as_source
from rareclass.rows.memory import Workers

X = np.arange(120.0).reshape(60, 2)


def total(block):
    return (block.X.sum(),)


def threads_of_pools(beside=()):
    names = (each for each in threading.enumerate() if each.name.startswith("rareclass_"))
    return [each for each in names if each not in beside]


@pytest.fixture
def started(monkeypatch):
    names = []
    start = threading.Thread.start

    def watched(self):
        names.append(self.name)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", watched)
    return names


def test_passes_of_rows_and_their_parts_start_threads_once(started, monkeypatch):
    monkeypatch.setattr("rareclass.rows.protocol.RUN_ROWS", 1)
    rows = ArrayRows(as_source(X), block_rows=1, n_jobs=2)
    part = rows.every(2)
    for _ in range(10):
        assert rows.sum(total) == (X.sum(),)
        assert part.sum(total) == (X[::2].sum(),)
    assert len(started) == 2


def test_threads_end_with_the_rows():
    before = threads_of_pools()
    rows = ArrayRows(as_source(X), block_rows=1, n_jobs=2)
    rows.sum(total)
    mine = threads_of_pools(before)
    assert len(mine) == 2
    del rows
    for each in mine:
        each.join(10.0)
        assert not each.is_alive()


def test_after_an_error_no_thread_is_left_and_the_next_pass_is_as_any():
    done = []

    def work(piece):
        if piece == 3:
            raise ZeroDivisionError
        done.append(piece)
        return piece

    workers = Workers()
    before = threads_of_pools()
    with pytest.raises(ZeroDivisionError):
        list(workers.map(work, range(1000), 2))
    assert not threads_of_pools(before)
    assert len(done) < 1000  # those that waited were dropped
    assert list(workers.map(work, range(3), 2)) == [0, 1, 2]


def test_a_pass_that_is_left_early_leaves_no_thread():
    workers = Workers()
    before = threads_of_pools()
    results = workers.map(abs, range(100), 2)
    assert next(results) == 0
    results.close()
    assert not threads_of_pools(before)


def test_more_threads_are_another_pool_and_fewer_are_not(started):
    workers = Workers()
    for n_threads, n_started in ((1, 0), (2, 2), (3, 5), (2, 5)):  # one is the caller
        barrier = threading.Barrier(n_threads)
        list(workers.map(barrier.wait, [10.0] * n_threads, n_threads))
        assert len(started) == n_started


def test_a_child_process_has_a_pool_of_its_own(monkeypatch):
    workers = Workers()
    list(workers.map(abs, range(3), 2))
    pool = workers._pool
    # No thread of the parent is in a child: work that waits for one would wait for ever.
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert list(workers.map(abs, range(3), 2)) == [0, 1, 2]
    assert workers._pool is not pool
