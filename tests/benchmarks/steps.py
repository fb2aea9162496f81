"""Functions that test cells run in their own process."""

import json
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


def _say(split, **outcome):
    print(json.dumps({"split": split, **outcome}), flush=True)


_DONE = {"status": "ok", "seconds": 1.0, "auc": 0.9, "average_precision": 0.5}


def splits_that_end(numbers, threads, limit):
    print("a word of a library")
    for split in numbers:
        _say(split, **(_DONE if split != 1 else {"status": "failed", "message": "no such column"}))
    return {}


def splits_that_stop(numbers, threads, limit):
    _say(numbers[0], **_DONE)
    return sleep(30, threads, limit)


def splits_that_die(numbers, threads, limit):
    _say(numbers[0], **_DONE)
    die(threads, limit)
