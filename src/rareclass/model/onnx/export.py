"""A learned estimator or pipeline as a model of ONNX."""

from typing import Any

import onnx
from onnx import helper
from sklearn.utils.validation import check_is_fitted

from rareclass.ensemble.rare_classifier import RareClassifier
from rareclass.errors import ErrorKind, InputError
from rareclass.model.onnx.answers import Answers, answers_of, inner_model
from rareclass.model.onnx.graph import IR_VERSION, ML, ML_OPSET, OPSET, Graph, Tensor
from rareclass.model.onnx.table_inputs import TableInputs

_ML_OPSET_OF_SKL2ONNX = 3
_DOUBLE, _STRING = onnx.TensorProto.DOUBLE, onnx.TensorProto.STRING


def export_estimator(model: Any) -> onnx.ModelProto:
    """An estimator of ours; see `rareclass.to_onnx`."""
    graph = Graph()
    inner = inner_model(model)
    if isinstance(inner, RareClassifier):
        inputs = _inputs_of_combination(inner, graph)
    else:
        inputs = TableInputs(graph, Tensor(graph, "X"))
    return finished(inputs, answers_of(model, inputs), getattr(model, "n_features_in_", 0))


def finished(inputs: TableInputs, answers: Answers, n_features: int = 0) -> onnx.ModelProto:
    """The model whose inputs are X, or the columns that were asked for, and outputs the answers."""
    graph = inputs.graph
    outputs = []
    for name, tensor in zip(answers._fields, answers, strict=True):
        if tensor is not None:
            graph.named(tensor, name)
            outputs.append(onnx.ValueInfoProto(name=name))
    if inputs.matrix is not None:
        given = [helper.make_tensor_value_info("X", _DOUBLE, ["n_rows", n_features])]
    else:
        given = [
            helper.make_tensor_value_info(
                name, _DOUBLE if kind == "number" else _STRING, ["n_rows", 1]
            )
            for name, kind in inputs.kinds.items()
        ]
    whole = helper.make_graph(graph.nodes, "rareclass", given, outputs, graph.constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)]
    model = helper.make_model(
        whole, opset_imports=opsets, ir_version=IR_VERSION, producer_name="rareclass",

    )  # fmt: skip
    model = onnx.shape_inference.infer_shapes(model)
    onnx.checker.check_model(model)
    return model


def export_pipeline(pipeline: Any) -> onnx.ModelProto:
    """A pipeline of scikit-learn whose last step is ours; see `rareclass.to_onnx`."""
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import DoubleTensorType
    from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator

    from rareclass.model.onnx.pipelines import CONVERTED, register_converters

    register_converters()
    check_is_fitted(pipeline)
    n_features = pipeline.n_features_in_
    last = pipeline.steps[-1][1]
    if not isinstance(last, CONVERTED):
        raise InputError(
            f"The last step of the pipeline, a {type(last).__name__}, has no form in ONNX there.",
            f"These have one: {', '.join(kind.__name__ for kind in CONVERTED)}.",
            ErrorKind.UNSUPPORTED,
        )
    given = [("X", DoubleTensorType([None, n_features]))]
    opsets = {"": OPSET, ML: _ML_OPSET_OF_SKL2ONNX}
    try:
        return convert_sklearn(pipeline, initial_types=given, target_opset=opsets)
    except (MissingConverter, MissingShapeCalculator, RuntimeError) as error:
        steps = ", ".join(type(step).__name__ for _, step in pipeline.steps)
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"skl2onnx cannot convert a step of {steps}: {reason}", "", ErrorKind.UNSUPPORTED
        ) from error


def _inputs_of_combination(model: RareClassifier, graph: Graph) -> TableInputs:
    """One matrix for what was learned from an array, else the columns."""
    names = [column.name for column in model.columns_]
    has_words = any(column.is_used and column.reads_as == "string" for column in model.columns_)
    if hasattr(model, "feature_names_in_") or has_words:
        return TableInputs(graph)
    return TableInputs(graph, Tensor(graph, "X"), names)
