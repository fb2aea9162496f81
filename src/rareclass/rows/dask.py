"""Rows of Dask collections, and of lists of delayed blocks."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rareclass.errors import ErrorKind, needed_for
from rareclass.rows.dask_rows import DaskSource, gathered, naming_losses
from rareclass.rows.decoding import ColumnRoles
from rareclass.rows.parts import PartFacts, read_part
from rareclass.rows.protocol import LabelledRows
from rareclass.rows.source import delayed_parts, is_dask_array

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
) -> LabelledRows:
    """Rows of a Dask collection, for ``fit_rows``: they stay on the workers.

    Every part is read once, where it is or where Dask puts it, and kept there as floats. Dask moves
    parts that its workers' memory does not hold to their disks. A pass of a fit is a task a part:
    make at least as many parts as the workers have threads. When a worker is lost, Dask reads its
    parts again from the source of the collection; the result is the same.

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

    Returns
    -------
    LabelledRows
        Labels and weights are in this process' memory, 8 to 16 bytes a row. ``close()`` makes the
        workers forget the rows.

    Raises
    ------
    InputError
        A ValueError: without a cluster, on parts that differ, columns that are no numbers, cells
        that are empty or infinite (naming the part and the row in it).

    Notes
    -----
    A pass sends and receives numbers in proportion to landmarks and rare rows for each part.
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
        import dask
        from distributed import default_client
    if client is None:
        try:
            client = default_client()
        except ValueError:
            raise ErrorKind.CONNECTION.error(
                "There is no Dask cluster to learn on.",
                "Start one on this machine with dask.distributed.Client(), or pass client=.",
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
            raise ErrorKind.ROWS.error(
                f"{name}= has {len(more):,} parts, the features {len(parts):,}.",
                "Collections that belong together need the same parts: rechunk or repartition one.",
            )
    load, tasks = dask.delayed(read_part, pure=False), []
    for k, part in enumerate(parts):
        tasks.append(load(k, part, *(None if each is None else each[k] for each in beside), roles))
    with naming_losses(client):
        _check_workers(client)
        futures = client.compute(tasks, optimize_graph=False)
    return rows_in_parts(client, futures)


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


def rows_in_parts(client: Any, parts: Sequence[Any]) -> LabelledRows:
    """Make labelled rows of futures of a client, one for each `HeldPart`."""
    facts = gathered(client, [client.submit(getattr, part, "facts", pure=False) for part in parts])
    if not sum(each.n_rows for each in facts):
        raise ErrorKind.TOO_FEW_ROWS.error(
            "The parts have columns but no rows.", "Give some with rows."
        )
    with_rows = [each for each in facts if each.n_rows]
    _check_alike(facts, with_rows)
    source = DaskSource(client, parts, facts)
    labels = [each.label_values[each.codes] for each in facts if each.label_values is not None]
    # A part without rows may have another type of label.
    labels = [part for part in labels if len(part)] if len(labels) == len(facts) else []
    weights = [each.weights for each in facts if each.weights is not None]
    return LabelledRows(
        source,
        np.concatenate(labels) if labels else None,
        np.concatenate(weights) if len(weights) == len(facts) else None,
        facts[0].names,
    )


def _check_workers(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError as error:
        raise ErrorKind.CONNECTION.error(
            f"The Dask scheduler at {client.scheduler.address} has no workers.",
            "Start some: dask worker ADDRESS.",
        ) from error


def _check_alike(facts: Iterable[PartFacts], with_rows: Sequence[PartFacts]) -> None:
    """Raise `InputError`, naming the part, where parts are not of one table."""
    first = with_rows[0]
    for k, each in enumerate(facts):
        if each.n_features != first.n_features or each.names != first.names:
            its, others = each.names or each.n_features, first.names or first.n_features
            raise ErrorKind.SHAPE.error(
                f"part {k} has the columns {its}, others {others}.",
                "All parts of a table need the same columns in the same order.",
            )
        if each.n_rows and each.is_sparse != first.is_sparse:
            raise ErrorKind.SHAPE.error(
                f"part {k} is {'sparse' if each.is_sparse else 'dense'}, others are not.",
                "Make all parts CSR matrices, or none.",
            )
