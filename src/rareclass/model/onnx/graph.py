"""A graph of ONNX operators, written as formulas of its tensors."""

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

# Opsets of the operators in use; runtimes of 2024 and later have them.
OPSET, ML_OPSET, IR_VERSION = 21, 5, 10
ML = "ai.onnx.ml"


class Graph:
    """Nodes and constants of a graph, in the order in which they were asked for.

    `prefix` begins all names, so that parts of several graphs can stand in one. `has_trees`: sums
    of trees in double precision are among its operators, which came with opset 5 of ai.onnx.ml.
    """

    def __init__(self, prefix: str = "", has_trees: bool = True) -> None:
        self.has_trees = has_trees
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
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


class Tensor:
    """A tensor of a `Graph`, with the arithmetic of arrays: what is written becomes operators."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: Any) -> "Tensor":
        return self.graph.op("Add", self, other)

    def __sub__(self, other: Any) -> "Tensor":
        return self.graph.op("Sub", self, other)

    def __rsub__(self, other: Any) -> "Tensor":
        return self.graph.op("Sub", other, self)

    def __mul__(self, other: Any) -> "Tensor":
        return self.graph.op("Mul", self, other)

    def __truediv__(self, other: Any) -> "Tensor":
        return self.graph.op("Div", self, other)

    def __matmul__(self, other: Any) -> "Tensor":
        return self.graph.op("MatMul", self, other)

    def __neg__(self) -> "Tensor":
        return self.graph.op("Neg", self)

    def __gt__(self, other: Any) -> "Tensor":
        return self.graph.op("Greater", self, other)

    def __lt__(self, other: Any) -> "Tensor":
        return self.graph.op("Less", self, other)

    def equals(self, other: Any) -> "Tensor":
        """Where it is the same."""
        return self.graph.op("Equal", self, other)

    def exp(self) -> "Tensor":
        """The exponential."""
        return self.graph.op("Exp", self)

    def log(self) -> "Tensor":
        """The natural logarithm."""
        return self.graph.op("Log", self)

    def clip(self, low: Any, high: Any) -> "Tensor":
        """Nothing below `low` and above `high`, which may be one a column; NaN stays."""
        above = self.graph.op("Where", self < low, low, self)
        return self.graph.op("Where", above > high, high, above)

    def at_least(self, low: float) -> "Tensor":
        """Nothing below `low`."""
        return self.graph.op("Max", self, np.float64(low))

    def is_nan(self) -> "Tensor":
        """Where it is missing."""
        return self.graph.op("IsNaN", self)

    def where(self, condition: "Tensor", other: Any) -> "Tensor":
        """It where the condition holds, else the other."""
        return self.graph.op("Where", condition, self, other)

    def to(self, kind: Any) -> "Tensor":
        """As another type of numpy's."""
        return self.graph.op("Cast", self, to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)))

    def take(self, places: "Tensor") -> "Tensor":
        """Its entries, or rows, at the places."""
        return self.graph.op("Gather", self, places, axis=0)

    def columns(self, which: Any) -> "Tensor":
        """These columns of a matrix."""
        return self.graph.op("Gather", self, np.asarray(which, dtype=np.int64), axis=1)

    def column(self, which: int) -> "Tensor":
        """One column of a matrix, of shape (n_rows,)."""
        return self.graph.op("Gather", self, np.int64(which), axis=1)

    def upright(self) -> "Tensor":
        """A vector as a matrix of one column."""
        return self.graph.op("Unsqueeze", self, np.array([1]))
