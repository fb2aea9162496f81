"""Dask collections told from others, and taken as a list of their parts."""

from typing import Any

import numpy as np

from rareclass.errors import InputError


def is_dask(X: Any) -> bool:
    """Whether `X` is a Dask array or DataFrame; without a look at Dask itself."""
    return _is_of_dask(X) and not is_delayed(X)


def is_delayed(X: Any) -> bool:
    """Whether `X` is a delayed block of Dask, or a list of them."""
    first = X[0] if isinstance(X, list | tuple) and X else X
    return _is_of_dask(first) and type(first).__name__.startswith("Delayed")


def _is_of_dask(X: Any) -> bool:
    return type(X).__module__.startswith("dask.") and hasattr(X, "dask")


def delayed_parts(collection: Any) -> list[Any]:
    """The parts of a collection that have all of its columns, from the first row to the last.

    An array or DataFrame of Dask, or a list of delayed blocks, of one also alone.

    Raises `TypeError` on anything else, `InputError` on an empty list.
    """
    from dask.delayed import Delayed, delayed

    if isinstance(collection, list | tuple):
        if not collection:
            raise InputError("There are no blocks in the list.", "Give at least one.")
        return [each if isinstance(each, Delayed) else delayed(each) for each in collection]
    if isinstance(collection, Delayed):
        return [collection]
    if not is_dask(collection):
        raise TypeError(
            f"{type(collection).__name__} is no Dask array, DataFrame or list of delayed blocks."
        )
    if hasattr(collection, "chunks") and collection.ndim == 2 and collection.numblocks[1] > 1:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(np.array(collection.to_delayed(), dtype=object)))
