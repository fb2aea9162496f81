"""A graph of ONNX operators, written as formulas of its tensors."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from rareclass.errors import ErrorKind, InputError
from rareclass.tables.cells import EMPTY_MARKS, SPACES, TRUTH_SPELLINGS, TRUTH_VALUES
from rareclass.tables.reading import CellReading

# Opsets of the operators in use; runtimes of 2024 and later have them.
OPSET, ML_OPSET, IR_VERSION = 21, 5, 10
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
ML = "ai.onnx.ml"
# Operators of onnxruntime itself: ONNX has none that cuts a string.
RUNTIME = "com.microsoft"


class Graph:
    """Nodes and constants of a graph, in the order in which they were asked for.

    `prefix` begins all names, so that parts of several graphs can stand in one.
    """

    def __init__(self, prefix: str = "") -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.types: list[onnx.ValueInfoProto] = []  # of what ONNX cannot infer
        self._prefix, self._n_names = prefix, 0

    def op(self, kind: str, *inputs: Any, domain: str = "", **attributes: Any) -> "Tensor":
        """The output of an operator; inputs that are no tensors are constants."""
        names = [
            (each if isinstance(each, Tensor) else self.constant(each)).name for each in inputs
        ]
        output = self._name(kind)
        self.nodes.append(
            helper.make_node(kind, names, [output], name=output, domain=domain, **attributes)
        )
        return Tensor(self, output)

    def constant(self, value: Any) -> "Tensor":
        """Numbers, in double precision where they are floats."""
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = array.astype(np.float64, copy=False)
        name = self._name("constant")
        if array.dtype.kind in "US":
            held = numpy_helper.from_array(array.astype(object), name)
        else:
            held = numpy_helper.from_array(np.array(array, order="C"), name)
        self.constants.append(held)
        return Tensor(self, name)

    def named(self, tensor: "Tensor", name: str) -> None:
        """Give a tensor the name of an output."""
        self.nodes.append(helper.make_node("Identity", [tensor.name], [name], name=f"to_{name}"))

    def side_by_side(self, columns: list["Tensor"]) -> "Tensor":
        """Matrices of as many rows as one."""
        return columns[0] if len(columns) == 1 else self.op("Concat", *columns, axis=1)

    def _name(self, kind: str) -> str:
        self._n_names += 1
        return f"{self._prefix}{kind}_{self._n_names}"


def _binary(kind: str) -> Callable[["Tensor", Any], "Tensor"]:
    """Return the method that applies an operator to a tensor and another one, or numbers."""
    return lambda tensor, other: tensor.graph.op(kind, tensor, other)


class Tensor:
    """A tensor of a `Graph`, with the arithmetic of arrays: what is written becomes operators."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    __add__, __sub__ = _binary("Add"), _binary("Sub")
    __mul__, __truediv__, __matmul__ = _binary("Mul"), _binary("Div"), _binary("MatMul")
    __gt__, __lt__, equals = _binary("Greater"), _binary("Less"), _binary("Equal")

    def __rsub__(self, other: Any) -> "Tensor":
        return self.graph.op("Sub", other, self)

    def __neg__(self) -> "Tensor":
        return self.graph.op("Neg", self)

    def exp(self) -> "Tensor":
        """The exponential."""
        return self.graph.op("Exp", self)

    def log(self) -> "Tensor":
        """The natural logarithm."""
        return self.graph.op("Log", self)

    def clip(self, low: Any, high: Any) -> "Tensor":
        """Clip to `low` and `high`, which may be one a column; NaN stays."""
        above = self.graph.op("Where", self < low, low, self)
        return self.graph.op("Where", above > high, high, above)

    def at_least(self, low: float) -> "Tensor":
        """Raise entries below `low` to it."""
        return self.graph.op("Max", self, np.float64(low))

    def is_nan(self) -> "Tensor":
        """Mask of missing entries."""
        return self.graph.op("IsNaN", self)

    def where(self, condition: "Tensor", other: Any) -> "Tensor":
        """Take the entry where the condition holds, else the other."""
        return self.graph.op("Where", condition, self, other)

    def to(self, kind: Any) -> "Tensor":
        """Convert to another type of numpy's."""
        return self.graph.op("Cast", self, to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)))

    def take(self, places: "Tensor") -> "Tensor":
        """Return the entries, or rows, at the places."""
        return self.graph.op("Gather", self, places, axis=0)

    def columns(self, which: Any) -> "Tensor":
        """Return some columns of a matrix."""
        return self.graph.op("Gather", self, np.asarray(which, dtype=np.int64), axis=1)

    def column(self, which: int) -> "Tensor":
        """One column of a matrix, of shape (n_rows,)."""
        return self.graph.op("Gather", self, np.int64(which), axis=1)

    def upright(self) -> "Tensor":
        """A vector as a matrix of one column."""
        return self.graph.op("Unsqueeze", self, np.array([1]))


LEQ, _LT = 0, 1  # the modes of a split


def tree_sums(
    X: Tensor, roots: Any, splits: Sequence[Any], leaf: Any,
    mode: int = LEQ, target: Any = None, n_targets: int = 1, **attributes: Any,
) -> Tensor:  # fmt: skip
    """Sums of leaves over trees, of shape (n_rows, n_targets); children are ~k for leaf k.

    `splits` are the feature, the threshold and both children of each split.
    """
    feature, split, left, right = splits
    for side, child in (("true", np.asarray(left)), ("false", np.asarray(right))):
        attributes[f"nodes_{side}nodeids"] = np.where(child < 0, ~child, child).tolist()
        attributes[f"nodes_{side}leafs"] = (child < 0).astype(int).tolist()
    return X.graph.op(
        "TreeEnsemble",
        X,
        domain=ML,
        n_targets=n_targets,
        aggregate_function=1,
        post_transform=0,
        tree_roots=np.asarray(roots).tolist(),
        nodes_featureids=np.asarray(feature).tolist(),
        nodes_splits=numpy_helper.from_array(np.asarray(split, np.float64)),
        nodes_modes=numpy_helper.from_array(np.full(len(feature), mode, np.uint8)),
        leaf_targetids=[0] * len(leaf) if target is None else list(target),
        leaf_weights=numpy_helper.from_array(np.asarray(leaf, np.float64)),
        **attributes,
    )


def counts_below(X: Tensor, splits: Sequence[np.ndarray], or_equal: bool = False) -> Tensor:
    """Of each column's increasing splits, how many are below its numbers (or equal to them).

    X: (n_rows, n_columns), with as many arrays of splits; the answer is int64 of that shape. NaN is
    above all. O(log n_splits) a number.
    """
    nodes: list[tuple[int, float, int, int]] = []
    leaves: list[tuple[int, int]] = []
    roots = []

    def grow(column: int, low: int, high: int) -> int:
        """The tree of splits low to high; its number, ~k for leaf k."""
        if low == high:
            leaves.append((column, low))
            return ~(len(leaves) - 1)
        middle, place = (low + high) // 2, len(nodes)
        nodes.append((column, float(splits[column][middle]), 0, 0))
        children = grow(column, low, middle), grow(column, middle + 1, high)
        nodes[place] = (column, float(splits[column][middle]), *children)
        return place

    for column, each in enumerate(splits):
        if len(each):
            roots.append(grow(column, 0, len(each)))
    if not roots:
        return (X.where(X.equals(X), 0.0) * 0.0).to(np.int64)
    target, below = zip(*leaves, strict=True)
    mode = _LT if or_equal else LEQ
    found = tree_sums(X, roots, [*zip(*nodes, strict=True)], below, mode, target, len(splits))
    return found.to(np.int64)


def on_lines(X: Tensor, knots: Sequence[np.ndarray], heights: Sequence[np.ndarray]) -> Tensor:
    """`np.interp` of each column by its own increasing knots and their heights; NaN stays.

    X: (n_rows, n_columns); beyond the knots the height is that of the last one.
    """
    low, high = (np.array([each[end] for each in knots]) for end in (0, -1))
    # A single knot gets a second one of the same height.
    lines = [
        (each, height)
        if len(each) > 1
        else (np.append(each, each[0] + 1.0 + abs(each[0])), np.repeat(height, 2))
        for each, height in zip(knots, heights, strict=True)
    ]
    starts = np.cumsum([0] + [len(each) for each, _ in lines])[:-1]
    places = counts_below(X, [each[1:-1] for each, _ in lines], or_equal=True) + starts
    at = np.concatenate([each for each, _ in lines])
    height = np.concatenate([each for _, each in lines])
    slope = np.concatenate([np.append(np.diff(h) / np.diff(each), 0.0) for each, h in lines])
    begin, rise, level = (X.graph.constant(each).take(places) for each in (at, slope, height))
    return (X.clip(low, high) - begin) * rise + level


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

    def places_of_words(self, name: str, known: Sequence[str], reading: CellReading) -> Tensor:
        """Of a column of words the place of each among the `known`: int64 of shape (n_rows, 1).

        One place after them is that of a missing word, and one more that of all others. Words are
        spelt as `read_strings` spells them.
        """
        if self.matrix is not None:
            raise ErrorKind.UNSUPPORTED.error(
                f"Column {name!r} holds words, and these rows were learned from an array.",
                "Learn from a table with named columns: each becomes an input of its own.",
                column=name,
            )
        self.kinds[name] = "word"
        n_known = len(known)
        place = {word: k for k, word in enumerate(known) if word}
        spelt = dict(zip(TRUTH_VALUES, TRUTH_VALUES, strict=True))
        if reading.truth:
            yes, no = reading.truth.split("/")
            spelt = {word: yes if value else no for word, value in TRUTH_SPELLINGS.items()}
        places = place | {
            written: place.get(word, n_known + 1)
            for spelling, word in spelt.items()
            for written in in_any_case(spelling)
        }
        for mark in EMPTY_MARKS if reading.marks else ("",):
            places |= dict.fromkeys(in_any_case(mark), n_known)
        words = one_spelling(Tensor(self.graph, name))
        found = self.graph.op(
            "LabelEncoder",
            words,
            domain=ML,
            keys_strings=[*places],
            values_int64s=[*places.values()],
            default_int64=n_known + 1,
        )
        if not reading.truth:
            return found
        is_number = self.graph.op("RegexFullMatch", words, pattern=_NUMBER)
        numbers = words.where(is_number, np.array("nan")).to(np.float64)
        for value in ("1", "0"):  # however it is written
            is_value = numbers.equals(np.float64(value))
            found = self.graph.constant(np.int64(places[value])).where(is_value, found)
        return found


def in_any_case(word: str) -> Iterator[str]:
    """Yield the word with each of its letters in upper and lower case.

    >>> list(in_any_case("n/a"))
    ['n/a', 'n/A', 'N/a', 'N/A']
    """
    letters = ((letter, letter.upper()) if letter.isalpha() else letter for letter in word)
    return map("".join, product(*letters))


def one_spelling(words: Tensor) -> Tensor:
    """Strip words, and cut the zeros that end the fraction of a number, as `canonical_words`."""
    space = "".join(f"\\x{{{ord(letter):x}}}" for letter in SPACES)
    stripped = _token(words, tokenexp=f"[^{space}](?s:.*[^{space}])?")
    has_zeros = words.graph.op("RegexFullMatch", stripped, pattern=r"[+-]?[0-9]+\.[0-9]*0")
    return _token(stripped, separators=[r"\.?0+$"]).where(has_zeros, stripped)


def _token(words: Tensor, **how: Any) -> Tensor:
    """First token of each word of shape (n_rows, 1), "" where there is none."""
    graph = words.graph
    filled = graph.op("Concat", words, np.array([["x"]]), axis=0)  # a token at least
    tokens = graph.op(
        "Tokenizer", filled, domain=RUNTIME, mark=0, mincharnum=1, pad_value="", **how
    )
    kind = helper.make_tensor_value_info(tokens.name, onnx.TensorProto.STRING, [None, 1, None])
    graph.types.append(kind)  # without it onnx crashes
    first = graph.op("Gather", tokens, np.int64(0), axis=2)
    return graph.op("Slice", first, np.array([0]), np.array([-1]), np.array([0]))


def refuse_column(name: str, kind: str) -> InputError:
    """Make the error for a column that no operators read as the library does."""
    return ErrorKind.UNSUPPORTED.error(
        f"Column {name!r} is read as a {kind}, which has no form in ONNX.",
        "Learn without the column, or from columns with its content as numbers or words.",
        column=name,
    )


def looked_up(places: Tensor, table: np.ndarray) -> Tensor:
    """Rows of a table of numbers at places of shape (n_rows, 1): (n_rows, n_columns)."""
    return places.graph.constant(table).take(places.graph.op("Squeeze", places, np.array([1])))
