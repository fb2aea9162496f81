"""Members learned on the workers of a Dask cluster, one on each worker at a time.

The rows that a member learns from are sent to its worker, and its score functions come back. What a
lost worker was learning is learned in this process.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

from threadpoolctl import threadpool_limits

from rareclass.ensemble.members.member import CrossFitted
from rareclass.ensemble.race import Begun, Here, Places, Task, learning_clock
from rareclass.rows.source import is_dask


def places_for(X: Any, client: Any = None) -> Places:
    """Return where members are learned: on a client's workers, else in this process.

    Without a client, members of a Dask collection are learned on the workers of the process's
    own client, if there is one.
    """
    if client is None and is_dask(X):
        try:
            from distributed import default_client

            client = default_client()
        except (ImportError, ValueError):  # a collection may be computed without a cluster
            return Here()
    return Here() if client is None else DaskWorkers(client)


class DaskWorkers:
    """The workers of a cluster.

    Parameters
    ----------
    client : dask.distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._sent: list[_Sent] = []

    @property
    def number(self) -> int:
        """Members that can be learned at the same time: a worker each."""
        return max(1, len(self._client.nthreads()))

    def begin(self, task: Task) -> Callable[[], tuple[list[CrossFitted], float]]:
        """Send the rows of a member to a free worker; what is returned waits for the member."""
        threads = self._client.nthreads()
        self._sent = [each for each in self._sent if not each.future.done()]
        free = sorted(set(threads) - {each.worker for each in self._sent})
        if not free:
            return task.done
        used = 0.0 if task.budget is None else task.budget.seconds - task.budget.left
        task = task._replace(rows=replace(task.rows, n_jobs=threads[free[0]]))
        sent = _Sent(self._client, task, used, free[0])
        self._sent.append(sent)
        return sent

    def first_ended(self, begun: Sequence[Begun]) -> Begun:
        """Wait for one of the members."""
        from distributed import wait
        from distributed.client import CancelledError

        waiting = [each.result.future for each in begun if isinstance(each.result, _Sent)]
        if len(waiting) == len(begun):
            with self._client.as_current(), suppress(CancelledError):  # its result says so
                wait(waiting, return_when="FIRST_COMPLETED")
        ended = (
            each
            for each in begun
            if not isinstance(each.result, _Sent) or each.result.future.done()
        )
        return next(ended, begun[0])

    def end(self, begun: Sequence[Begun]) -> None:
        """Drop members that are being learned."""
        sent = [each.result for each in begun if isinstance(each.result, _Sent)]
        self._client.cancel([each.future for each in sent])


class _Sent:
    """A member that a worker learns; called, it waits for the result."""

    def __init__(self, client: Any, task: Task, used: float, worker: str) -> None:
        self.task, self.worker = task, worker
        rows = client.scatter([task], [worker], hash=False)[0]
        key = f"rareclass-member-{uuid4().hex}"
        self.future = client.submit(_done, rows, used, key=key, workers=[worker])

    def __call__(self) -> tuple[list[CrossFitted], float]:
        from distributed.client import CancelledError, CommClosedError
        from distributed.scheduler import KilledWorker

        try:
            found = self.future.result()
        except (CancelledError, CommClosedError, KilledWorker):
            return self.task.done()  # the worker is gone, and the rows with it
        if isinstance(found, Exception):
            raise found
        return found


def _done(task: Task, used: float) -> tuple[list[CrossFitted], float] | Exception:
    """Learn a member on a worker, whose clock is another one; `used` are seconds of the budget.

    What the member raises is returned: raised, it would be an error in the worker's log.
    """
    if task.budget is not None:
        budget = replace(task.budget, started=learning_clock() - used)
        task = task._replace(budget=budget)
    with threadpool_limits(1, user_api="blas"):
        try:
            return task.done()
        except Exception as error:
            return error
