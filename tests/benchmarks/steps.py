"""Functions that test cells run in their own process."""

import os
import signal
import time


def add(a, b, threads, limit):
    return {"sum": a + b, "threads": threads, "omp": os.environ["OMP_NUM_THREADS"]}


def sleep(seconds, threads, limit):
    from benchmarks.cells import time_limit

    with time_limit(limit):
        time.sleep(seconds)
    return {}


def fail(threads, limit):
    raise ValueError("no such column")


def die(threads, limit):
    os.kill(os.getpid(), signal.SIGKILL)
