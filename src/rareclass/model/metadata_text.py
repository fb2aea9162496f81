"""Metadata of a model file as one text: in skops each of thousands of numbers is a node.

Building the nodes took two thirds of the time of opening a small model.
"""

import json
from typing import Any

import numpy as np


def as_text(metadata: dict[str, Any]) -> str:
    """Plain data as JSON; what is of numpy becomes a number or a list.

    >>> as_text({"rows": np.int64(3), "shares": (0.1, float("inf"))})
    '{"rows": 3, "shares": [0.1, Infinity]}'
    """
    return json.dumps(metadata, default=_plain)


def from_text(found: Any) -> Any:
    """The metadata of a file; models of before have them as skops writes a dict.

    Raises `ValueError` for a text that is no JSON.

    >>> from_text('{"rows": 3}') == from_text({"rows": 3})
    True
    """
    if not isinstance(found, str):
        return found
    try:
        return json.loads(found)
    except RecursionError as error:
        raise ValueError("its metadata are nested too deep") from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"metadata hold a {type(value).__name__}, which is no plain data")
