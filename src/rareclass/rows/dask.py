"""Rows of Dask collections, and of lists of delayed blocks."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse

from rareclass.errors import ErrorKind, missing_column, needed_for
from rareclass.rows.decoding import ColumnRoles
from rareclass.rows.protocol import LabelledRows
from rareclass.rows.source import are_narrow, as_source, is_dask, is_dask_array, is_table

with needed_for("Learning from a Dask collection", "rareclass[dask]"):
    from rareclass.rows.dask_rows import DaskSource, HeldPart, PartFacts, gathered, naming_losses

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


def delayed_parts(collection: Any) -> list[Any]:
    """Split a collection into parts with all of its columns, from the first row to the last.

    The collection is an array or DataFrame of Dask, a delayed block or a list of them.

    Raises `TypeError` on anything else, `InputError` on an empty list.
    """
    from dask.delayed import Delayed, delayed

    if isinstance(collection, list | tuple):
        if not collection:
            raise ErrorKind.TOO_FEW_ROWS.error(
                "There are no blocks in the list.", "Give at least one."
            )
        return [each if isinstance(each, Delayed) else delayed(each) for each in collection]
    if isinstance(collection, Delayed):
        return [collection]
    if not is_dask(collection):
        raise TypeError(
            f"{type(collection).__name__} is no Dask array, DataFrame or list of delayed blocks."
        )
    if is_dask_array(collection) and collection.ndim == 2 and collection.numblocks[1] > 1:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(np.array(collection.to_delayed(), dtype=object)))


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
    labels = [each.labels for each in facts if each.labels is not None]
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


def read_part(number: int, data: Any, y: Any, weight: Any, roles: ColumnRoles) -> HeldPart:
    """Split a part, an array, CSR matrix or table, with labels beside it or in a column.

    Raises `InputError`, naming the part and the row in it, on cells that are no finite numbers,
    columns that are missing and lengths that differ.
    """
    names = None
    if is_table(data):
        table = nw.from_native(data, eager_only=True)
        for name in (roles.target, roles.weight, *(roles.features or ())):
            if name is not None and name not in table.columns:
                raise missing_column(f"part {number}", name, [str(k) for k in table.columns])
        y = y if roles.target is None else table[roles.target].to_numpy()
        weight = weight if roles.weight is None else table[roles.weight].to_numpy()
        beside = (roles.target, roles.weight)
        names = roles.features
        if names is None:
            names = tuple(k for k in table.columns if k not in beside)
        data = table.select(names).to_native()
    elif roles.target is not None or roles.weight is not None:
        raise ErrorKind.SHAPE.error(
            f"part {number} is a {type(data).__name__}, which has no columns with names.",
            "Pass labels and weights as collections of their own: target=y.",
        )
    X = _features(number, data, names, roles.dtype)
    n_rows = X.shape[0]
    for name, values in (("target", y), ("weight", weight)):
        if values is not None and len(values) != n_rows:
            raise ErrorKind.ROWS.error(
                f"part {number} has {n_rows:,} rows and {len(values):,} of its {name}.",
                "Collections that belong together need the same rows in every part.",
            )
    facts = PartFacts(
        n_rows=n_rows,
        n_features=X.shape[1],
        dtype=X.dtype.name,
        is_sparse=sparse.issparse(X),
        names=names,
        labels=None if y is None else np.asarray(y),
        weights=None if weight is None else np.asarray(weight, dtype=np.float64),
    )
    return HeldPart(X, facts)


def _features(number: int, data: Any, names: tuple[str, ...] | None, dtype: str | None) -> Any:
    """Return features as finite floats; arrays that can be used as they are are not copied."""
    n_rows = data.shape[0] if sparse.issparse(data) else len(data)
    if n_rows:
        try:
            X = as_source(data, names).take(slice(None))
        except ValueError as error:
            raise ErrorKind.CELL.error(
                f"part {number} (its rows are counted from 0): {error}"
            ) from error
        return X if dtype is None else X.astype(dtype, copy=False)
    if sparse.issparse(data):
        return sparse.csr_matrix(data.shape, dtype=dtype or data.dtype)
    # Without rows it is narrow by default, so that parts with rows decide.
    if is_table(data):
        types = nw.from_native(data, eager_only=True).schema.values()
        is_narrow = are_narrow(types)
        return np.empty((0, len(types)), dtype or (np.float32 if is_narrow else np.float64))
    return np.empty((0, np.shape(data)[1]), dtype or np.float32)
