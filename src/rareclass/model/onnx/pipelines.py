"""Pipelines in ONNX: converters by which skl2onnx knows our estimators."""

from functools import cache
from typing import Any

import numpy as np
import onnx
from skl2onnx import convert_sklearn, update_registered_converter
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    Int64TensorType,
    StringTensorType,
)
from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator
from sklearn.utils.validation import check_is_fitted

from rareclass.errors import ErrorKind, InputError
from rareclass.model.onnx.estimators import ModelOutputs, outputs_of
from rareclass.model.onnx.graph import ML, OPSET, Graph, TableInputs, Tensor
from rareclass.moments import MIBC, MIBCCV
from rareclass.online import CBR, OAM, OPAUC, AdaOAM, OnlineLogistic, UniExp
from rareclass.ranking import (
    OrdinalRankRC,
    OrdinalRankRCCV,
    RankRC,
    RankRCCV,
    RankSVM,
    StochasticRankRC,
)

CONVERTED = (
    RankRC, RankRCCV, RankSVM, OrdinalRankRC, OrdinalRankRCCV, StochasticRankRC, MIBC, MIBCCV,
    CBR, OAM, OPAUC, AdaOAM, OnlineLogistic, UniExp,
)  # fmt: skip


_ML_OPSET_OF_SKL2ONNX = 3


def export_pipeline(pipeline: Any) -> onnx.ModelProto:
    """A pipeline of scikit-learn whose last step is ours; see `rareclass.to_onnx`."""
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
            f"skl2onnx cannot convert a step of {steps}: {reason}",
            "Use steps that it converts.",
            ErrorKind.UNSUPPORTED,
        ) from error


@cache
def register_converters() -> None:
    """Make our estimators of numbers known to skl2onnx, once a process.

    Outputs are those of `to_onnx`: score, label and, where the model has one, probability.
    """
    for kind in CONVERTED:
        update_registered_converter(
            kind, f"Rareclass{kind.__name__}", _shapes, _convert, parser=_parse
        )


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> list[Any]:
    """The outputs that a model has."""
    from skl2onnx._supported_operators import _get_sklearn_operator_name

    operator = scope.declare_local_operator(_get_sklearn_operator_name(type(model)), model)
    operator.inputs = inputs
    labels = np.asarray(model.classes_)
    of_kind = {"i": Int64TensorType, "u": Int64TensorType, "f": DoubleTensorType}
    kinds = of_kind | {"b": BooleanTensorType}
    outputs = {"score": DoubleTensorType, "label": kinds.get(labels.dtype.kind, StringTensorType)}
    if vars(model).get("calibration_") is not None:
        outputs["probability"] = DoubleTensorType
    for name, kind in outputs.items():
        operator.outputs.append(scope.declare_local_variable(name, kind()))
    return operator.outputs


def _shapes(operator: Any) -> None:
    n_rows = operator.inputs[0].type.shape[0]
    score, label, *probability = operator.outputs
    score.type.shape, label.type.shape = [n_rows, 1], [n_rows]
    for each in probability:
        each.type.shape = [n_rows, len(operator.raw_operator.classes_)]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Hand the nodes of our graph to skl2onnx."""
    graph = Graph(scope.get_unique_operator_name("rareclass") + "_", has_trees=False)
    X = graph.side_by_side([Tensor(graph, each.full_name) for each in operator.inputs])
    found: ModelOutputs = outputs_of(operator.raw_operator, TableInputs(graph, X.to(np.float64)))
    for held in graph.constants:
        container.initializers.append(held)
    for node in graph.nodes:
        container.nodes.append(node)
        container.node_domain_version_pair_sets.add(("", OPSET))
    answers = [each for each in found if each is not None]
    for answer, output in zip(answers, operator.outputs, strict=True):
        container.add_node("Identity", [answer.name], [output.full_name], op_version=16)
