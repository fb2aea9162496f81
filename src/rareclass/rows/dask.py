"""Dask collections as rows: the parts stay on the workers of a cluster."""

import threading
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rareclass.errors import ErrorKind, InputError, needed_for
from rareclass.rows.decoding import ColumnRoles
from rareclass.rows.partitioned import Engine, labelled
from rareclass.rows.places import PartFacts, PartHolder, Reply, Request, read_part
from rareclass.rows.protocol import LabelledRows
from rareclass.rows.source import delayed_parts, is_dask_array

# Shares of a worker's memory for features and for values that blocks remember. Dask and the work
# itself need the other half: a worker must neither spill nor pause.
_OF_FEATURES, _OF_MEMOS = 0.25, 0.25
# With more places than this, replies are joined on the workers, this many at a time.
_FAN_IN = 8
# Larger requests go from worker to worker, not through the scheduler (bytes).
_LARGE = 1 << 18
# Seconds to wait for a first worker.
_PATIENCE = 30


def from_dask(
    collection: Any,
    target: Any = None,
    *,
    weight: Any = None,
    columns: Iterable[str] | None = None,
    dtype: Any = None,
    client: Any = None,
    checkpoint: str | Path | None = None,
) -> LabelledRows:
    """Rows of a Dask collection, for ``fit_rows``: they stay on the workers.

    Every part is read once, where it is or where Dask puts it, and kept there as floats: in up to
    a quarter of the worker's memory, the others in a nameless file of the worker. A pass of a fit
    is one task a worker. When a worker is lost, other workers read its parts again from the source
    of the collection; the result is the same.

    Parameters
    ----------
    collection : dask array, dask DataFrame, or list of delayed blocks
        Of shape (n_rows, n_features); chunks of rows may be of unknown length. Blocks are arrays,
        CSR matrices or tables.
    target : str, Dask collection or None
        The labels: a column of a DataFrame, or a collection with the same parts. None for rows to
        be scored.
    weight : str, Dask collection or None
        Weights at or above 0, likewise.
    columns : iterable of str or None
        The features of a DataFrame, in this order; None means all other columns.
    dtype : "float32", "float64" or None
        Type of the stored features; None means float32 when all of a part are float32 or
        narrower, else float64.
    client : dask.distributed.Client or None
        None means the last one of this process.
    checkpoint : path or None
        A file for the sums of every pass. When a fit was cut off, by a lost scheduler or a crash,
        the same fit on the same rows continues from there.

    Returns
    -------
    LabelledRows
        Labels and weights are in this process' memory, 8 to 16 bytes a row.
        ``source.engine.passes`` has the cost of each pass.

    Raises
    ------
    InputError
        A ValueError: without a cluster, on parts that differ, columns that are no numbers, cells
        that are empty or infinite (naming the part and the row in it).

    Notes
    -----
    A pass sends and receives numbers in proportion to landmarks and rare rows for each worker.
    Values that do not change are sent once: landmarks, weights, folds.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> from dask.distributed import Client  # doctest: +SKIP
    >>> with Client() as client:  # doctest: +SKIP
    ...     rows = from_dask(da.from_array(X), target=da.from_array(y))
    ...     model = RankRC().fit_rows(rows)
    """
    with needed_for("Learning from a Dask collection", "rareclass[dask]"):
        from distributed import default_client
    if client is None:
        try:
            client = default_client()
        except ValueError:
            raise InputError(
                "There is no Dask cluster to learn on.",
                "Start one on this machine with dask.distributed.Client(), or pass client=.",
                ErrorKind.CONNECTION,
            ) from None
    roles = ColumnRoles.of(
        target if isinstance(target, str) else None,
        weight if isinstance(weight, str) else None,
        columns,
        dtype,
    )
    parts = delayed_parts(collection)
    beside = [
        None if each is None or isinstance(each, str) else delayed_parts(each)
        for each in (target, weight)
    ]
    for name, more in zip(("target", "weight"), beside, strict=True):
        if more is not None and len(more) != len(parts):
            raise InputError(
                f"{name}= has {len(more):,} parts, the features {len(parts):,}.",
                "Collections that belong together need the same parts: rechunk or repartition one.",
                ErrorKind.ROWS,
            )
    engine = DaskEngine(client, parts, beside[0], beside[1], roles)
    return labelled(engine, engine.load(range(len(parts))), checkpoint)


def rows_here(collection: Any, chosen: np.ndarray | None = None) -> Any:
    """Bring rows of a collection to this process, as a table or an array, with a task a part.

    `chosen` are increasing row numbers, None for all. Parts are read twice, first for their
    lengths, unless the collection is persisted.
    """
    import dask

    parts = delayed_parts(collection)
    pieces = parts
    if chosen is not None:
        lengths = dask.compute(*[dask.delayed(len)(part) for part in parts])
        edges = np.concatenate([[0], np.cumsum(lengths)])
        ends = np.searchsorted(chosen, edges)
        take = dask.delayed(_some_rows)
        pieces = [
            take(part, chosen[start:stop] - edge)
            for part, (start, stop), edge in zip(parts, pairwise(ends), edges[:-1], strict=True)
            if stop > start
        ]
    found = dask.compute(*pieces)
    if is_dask_array(collection):
        return np.concatenate(found)
    import pandas as pd

    return pd.concat(found, ignore_index=True)


def _some_rows(part: Any, places: np.ndarray) -> Any:
    return part[places] if isinstance(part, np.ndarray) else part.iloc[places]


class DaskEngine(Engine):
    """Parts on the workers of a Dask cluster; see `from_dask`."""

    def __init__(
        self,
        client: Any,
        parts: Sequence[Any],
        targets: Sequence[Any] | None,
        weights: Sequence[Any] | None,
        roles: ColumnRoles,
    ) -> None:
        self._client, self._parts, self._roles = client, parts, roles
        self._targets, self._weights = targets, weights
        self._address = client.scheduler.address if client.scheduler else "?"
        self._name = f"{uuid.uuid4().hex[:12]}"
        self._next = 0
        workers = self._workers()
        super().__init__([workers[k * len(workers) // len(parts)] for k in range(len(parts))])
        self._prefer_where_they_are()
        weakref.finalize(self, _forget_later, client, self._name)

    def load(self, parts: Sequence[int]) -> list[PartFacts]:
        """Read parts on their workers."""
        import dask

        load, tasks = dask.delayed(_load, pure=False), []
        for k in parts:
            beside = [None if of is None else of[k] for of in (self._targets, self._weights)]
            with dask.annotate(workers=[self.place_of[k]], allow_other_workers=True):
                tasks.append(load(self._name, k, self._parts[k], *beside, self._roles))
        with self._naming_losses():
            futures = self._client.compute(tasks, optimize_graph=False)
        found = self._gathered(futures)
        for k, (place, _) in zip(parts, found, strict=True):
            self.place_of[k] = place
        return [facts for _, facts in found]

    def exchange(self, requests: Mapping[str, Request]) -> list[Reply]:
        """One task a worker; many replies are joined on the workers."""
        payload = self._scattered(next(iter(requests.values())).payload)
        sent, supplies = dict(requests), {}
        for place, each in requests.items():
            supplies[place] = self._scattered(each.supplies, place)
            if payload is not None:
                each = each._replace(payload=b"")
            if supplies[place] is not None:
                each = each._replace(supplies={})
            sent[place] = each
        with self._naming_losses():
            futures = self._joined(
                [
                    # Another worker takes the task where the wanted one is gone.
                    self._submit(
                        "pass",
                        _answer,
                        self._name,
                        each,
                        payload,
                        supplies[place],
                        workers=[place],
                        allow_other_workers=True,
                    )
                    for place, each in sent.items()
                ]
            )
        from distributed.client import FutureCancelledError

        try:
            return self._gathered(futures)
        except FutureCancelledError:  # the worker that held the payload is gone
            left = tuple(k for request in requests.values() for k in request.parts)
            return [Reply([], {}, left, (), Counter(), 0, 0.0)]

    def _submit(self, kind: str, work: Callable, *args: Any, **where: Any) -> Any:
        """Submit a task with a name of its own."""
        self._next += 1
        key = f"rareclass-{kind}-{self._name}-{self._next}"
        return self._client.submit(work, *args, key=key, **where)

    def _joined(self, futures: list[Any]) -> list[Any]:
        """Join replies on the workers until few are left."""
        while len(futures) > _FAN_IN:
            groups = [futures[k : k + _FAN_IN] for k in range(0, len(futures), _FAN_IN)]
            futures = [self._submit("join", Reply.joined, group) for group in groups]
        return futures

    def _scattered(self, content: bytes | dict[str, bytes], place: str | None = None) -> Any:
        """Put large content on a worker, from which others may fetch it; None where it is small.

        The graph of the tasks, which the scheduler holds, stays small.
        """
        parts = [content] if isinstance(content, bytes) else content.values()
        if sum(map(len, parts)) < _LARGE:
            return None
        where = None if place is None else [place]
        try:
            # In a list, so that a dict is one value and not a value a name.
            return self._client.scatter([content], where, hash=False, timeout=_PATIENCE / 6)[0]
        except (OSError, TimeoutError, ValueError):
            return None  # worker or scheduler is gone: the tasks will fail

    def new_place(self, part: int) -> str:
        """Name another worker, each in its turn."""
        workers = self._workers()
        self._next += 1
        return workers[self._next % len(workers)]

    def close(self) -> None:
        """Make the workers forget the parts."""
        if self._client.status == "running":
            self._client.run(_forget, self._name, on_error="ignore")

    def _workers(self) -> list[str]:
        with self._naming_losses():
            try:
                self._client.wait_for_workers(1, timeout=_PATIENCE)
            except TimeoutError as error:
                raise InputError(
                    f"The Dask scheduler at {self._address} has no workers.",
                    "Start some: dask worker ADDRESS.",
                    ErrorKind.CONNECTION,
                ) from error
            return sorted(self._client.nthreads())

    @contextmanager
    def _naming_losses(self) -> Iterator[None]:
        """Raise `InputError` with a remedy when scheduler or workers are gone for good."""
        from distributed.client import CancelledError, ClosedClientError, CommClosedError
        from distributed.scheduler import KilledWorker

        try:
            yield
        except KilledWorker as error:
            raise InputError(
                f"Dask's workers were killed again and again: {error}",
                "They may have too little memory for one part: make the parts smaller, or give "
                "each worker more. Where workers come and go all the time, raise Dask's "
                "distributed.scheduler.allowed-failures.",
                ErrorKind.CONNECTION,
            ) from error
        except (CancelledError, ClosedClientError, CommClosedError, TimeoutError, OSError) as error:
            if self._client.status == "running" and not isinstance(error, CommClosedError):
                raise  # of a task, such as a file that a worker cannot read
            raise InputError(
                f"The Dask scheduler at {self._address} was lost: {type(error).__name__}.",
                "Start it again and make the collection again; a fit whose rows were made with "
                "checkpoint= continues from its last pass.",
                ErrorKind.CONNECTION,
            ) from error

    def _prefer_where_they_are(self) -> None:
        """Keep parts on the workers that hold them already."""
        from distributed import futures_of

        held = {k: futures_of(part) for k, part in enumerate(self._parts)}
        futures = [future for some in held.values() for future in some]
        if not futures:
            return
        where = self._client.who_has(futures)
        for k, some in held.items():
            places = [place for future in some for place in where.get(future.key, ())]
            if places:
                self.place_of[k] = Counter(places).most_common(1)[0][0]

    def _gathered(self, futures: Sequence[Any]) -> list[Any]:
        """Wait for results of tasks; an exception meanwhile cancels those that run."""
        try:
            with self._naming_losses():
                return list(self._client.gather(list(futures)))
        except BaseException:
            if self._client.status == "running":
                self._client.cancel(list(futures))
            raise


def _forget_later(client: Any, name: str) -> None:
    """Ask the workers without waiting: the garbage collector may call this in any thread."""
    if client.status == "running":
        ask = partial(client.run, _forget, name, on_error="ignore")
        client.loop.add_callback(ask)


# The functions below run on workers, several of which may share a process.

_places: dict[tuple[str, str], PartHolder] = {}
_lock = threading.Lock()


def _load(name: str, number: int, data: Any, y: Any, weight: Any, roles: ColumnRoles) -> Any:
    part = read_part(number, data, y, weight, roles)
    place, address = _place(name)
    place.hold(number, part)
    return address, part.facts


def _answer(
    name: str, request: Request, payload: bytes | None, supplies: dict[str, bytes] | None
) -> Reply:
    if payload is not None:
        request = request._replace(payload=payload)
    if supplies is not None:
        request = request._replace(supplies=supplies)
    return _place(name)[0].answer(request)


def _place(name: str) -> tuple[PartHolder, str]:
    """Parts of a table that this worker holds, and its address."""
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    with _lock:
        place = _places.get((worker.address, name))
        if place is None:
            shares = [int(share * limit) if limit else None for share in (_OF_FEATURES, _OF_MEMOS)]
            place = PartHolder(shares[0], shares[1], worker.state.nthreads, worker.local_directory)
            _places[worker.address, name] = place
    return place, worker.address


def _forget(name: str) -> None:
    with _lock:
        for key in [key for key in _places if key[1] == name]:
            _places.pop(key).close()
