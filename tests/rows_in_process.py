"""A client of Dask to try rows in parts on: in this process, with all that crosses as bytes."""

import pickle
from itertools import count

import cloudpickle

from rareclass.rows.dask import read_part, rows_in_parts
from rareclass.rows.decoding import ColumnRoles


class Done:
    def __init__(self, key, result):
        self.key, self.result = key, result


class InProcess:
    """Workers in this process that share nothing; `memory_limit` is the bytes of a worker."""

    status, scheduler = "running", None

    def __init__(self, n_workers=2, memory_limit=0):
        self._workers = {f"worker {k}": {"memory_limit": memory_limit} for k in range(n_workers)}
        self._keys, self.sent_bytes = count(), 0

    def scheduler_info(self, n_workers):
        return {"workers": self._workers}

    def submit(self, work, *args, pure):
        plain = [each for each in args if not holds_futures(each)]
        sent = cloudpickle.dumps((work, plain))
        self.sent_bytes += len(sent)
        work, plain = cloudpickle.loads(sent)
        rest = iter(plain)
        args = [self._needed(each) if holds_futures(each) else next(rest) for each in args]
        return Done(f"task-{next(self._keys)}", work(*args))

    def gather(self, futures):
        return [pickle.loads(cloudpickle.dumps(self._needed(each))) for each in futures]

    def cancel(self, futures):
        """Nothing runs."""

    def _needed(self, given):
        if isinstance(given, list):
            return [self._needed(each) for each in given]
        return given.result


def holds_futures(given):
    return isinstance(given, Done) or (
        isinstance(given, list) and given and holds_futures(given[0])
    )


def held(client, parts, y=None, weight=None):
    """Labelled rows of parts that the client's workers hold."""
    beside = [each or [None] * len(parts) for each in (y, weight)]
    read = zip(parts, *beside, strict=True)
    futures = [
        client.submit(read_part, k, *each, ColumnRoles(), pure=False) for k, each in enumerate(read)
    ]
    return rows_in_parts(client, futures)
