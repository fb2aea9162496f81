"""The columns of a table as inputs of a graph: numbers and words, one input a column."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rareclass.errors import ErrorKind, InputError
from rareclass.model.onnx.graph import ML, Graph, Tensor


@dataclass
class TableInputs:
    """Inputs of a graph by the names of a table's columns.

    Numbers are double, NaN where missing, and words strings, empty where missing; each is of shape
    (n_rows, 1). Where rows come as one matrix, `matrix` is that, and a number one of its columns.
    """

    graph: Graph
    matrix: Tensor | None = None
    names: Sequence[str] = ()  # of the columns of the matrix
    kinds: dict[str, str] = field(default_factory=dict)  # "number" or "word" of each input

    def number(self, name: str) -> Tensor:
        """A column of numbers, of shape (n_rows, 1)."""
        if self.matrix is not None:
            return self.matrix.columns([list(self.names).index(name)])
        self.kinds[name] = "number"
        return Tensor(self.graph, name)

    def places_of_words(self, name: str, known: Sequence[str]) -> Tensor:
        """Of a column of words the place of each among the `known`: int64 of shape (n_rows, 1).

        One place after them is that of a missing word, and one more that of all others.
        """
        if self.matrix is not None:
            raise InputError(
                f"Column {name!r} holds words, and these rows were learned from an array.",
                "Learn from a table with named columns: each becomes an input of its own.",
                ErrorKind.UNSUPPORTED,
            )
        self.kinds[name] = "word"
        words = [word for word in known if word]
        places = [k for k, word in enumerate(known) if word]
        return self.graph.op(
            "LabelEncoder",
            Tensor(self.graph, name),
            domain=ML,
            keys_strings=[*words, ""],
            values_int64s=[*places, len(known)],
            default_int64=len(known) + 1,
        )


def refuse_column(name: str, kind: str) -> InputError:
    """What is said of a column that no operators read as the library does."""
    return InputError(
        f"Column {name!r} is read as a {kind}, which has no form in ONNX.",
        "Learn without it, or from what it says as numbers or words, in columns of their own.",
        ErrorKind.UNSUPPORTED,
    )


def looked_up(places: Tensor, table: np.ndarray) -> Tensor:
    """Rows of a table of numbers at places of shape (n_rows, 1): (n_rows, n_columns)."""
    return places.graph.constant(table).take(places.graph.op("Squeeze", places, np.array([1])))
