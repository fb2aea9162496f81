"""Learned estimators and pipelines as models of ONNX: score, label and probabilities of rows."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper
from skl2onnx import convert_sklearn, update_registered_converter
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    Int64TensorType,
    StringTensorType,
)
from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator
from sklearn.utils.validation import check_is_fitted

from rareclass.decide.calibration.calibration import Calibration, LevelCalibration, PooledMap
from rareclass.decide.calibration.calibration_map import (
    BetaMap,
    IsotonicMap,
    LogisticMap,
    ScoreScale,
)
from rareclass.ensemble.combined_ranking import CombinedRanking
from rareclass.errors import ErrorKind, InputError
from rareclass.estimators.rankings import KernelRanking, LinearRanking
from rareclass.estimators.search import SearchCV
from rareclass.model.onnx.graph import (
    IR_VERSION,
    ML,
    ML_OPSET,
    OPSET,
    Graph,
    TableInputs,
    Tensor,
    on_lines,
)
from rareclass.model.onnx.rare_classifier import combined, expanded
from rareclass.moments import MIBC, MIBCCV
from rareclass.online import CBR, OAM, OPAUC, AdaOAM, OnlineLogistic, UniExp
from rareclass.online.ranker import OnlineRanker
from rareclass.ranking import (
    OrdinalRankRC,
    OrdinalRankRCCV,
    RankRC,
    RankRCCV,
    RankSVM,
    StochasticRankRC,
)
from rareclass.ranking.ordinal_rankrc import RanksLevels

CAN = "RankRC, RankSVM, OrdinalRankRC, StochasticRankRC, MIBC, the online learners, RareClassifier"
# Estimators that may end a pipeline.
CONVERTED = (
    RankRC, RankRCCV, RankSVM, OrdinalRankRC, OrdinalRankRCCV, StochasticRankRC, MIBC, MIBCCV,
    CBR, OAM, OPAUC, AdaOAM, OnlineLogistic, UniExp,
)  # fmt: skip
_ML_OPSET_OF_SKL2ONNX = 3
_DOUBLE, _STRING = onnx.TensorProto.DOUBLE, onnx.TensorProto.STRING
_NEAREST = float(np.finfo(np.float64).eps)


class ModelOutputs(NamedTuple):
    """Tensors of as many rows: double, of a label's type, and double of (n_rows, n_classes)."""

    score: Tensor
    label: Tensor | None
    probability: Tensor | None


def export_estimator(model: Any) -> onnx.ModelProto:
    """An estimator of ours; see `rareclass.to_onnx`."""
    graph = Graph()
    inner = inner_model(model)
    if isinstance(inner, CombinedRanking):
        inputs = _inputs_of_combination(inner, graph)
    else:
        inputs = TableInputs(graph, Tensor(graph, "X"))
    return finished(inputs, outputs_of(model, inputs), getattr(model, "n_features_in_", 0))


def _inputs_of_combination(model: CombinedRanking, graph: Graph) -> TableInputs:
    """One matrix for what was learned from an array, else the columns."""
    names = [column.name for column in model.columns_]
    has_words = any(column.is_used and column.reads_as == "string" for column in model.columns_)
    if "feature_names_in_" in vars(model) or has_words:
        return TableInputs(graph)
    return TableInputs(graph, Tensor(graph, "X"), names)


def finished(inputs: TableInputs, outputs: ModelOutputs, n_features: int = 0) -> onnx.ModelProto:
    """Make the model whose inputs are X, or the columns in use, and whose outputs are given."""
    graph = inputs.graph
    values = []
    for name, tensor in zip(outputs._fields, outputs, strict=True):
        if tensor is not None:
            graph.named(tensor, name)
            values.append(onnx.ValueInfoProto(name=name))
    if inputs.matrix is not None:
        given = [helper.make_tensor_value_info("X", _DOUBLE, ["n_rows", n_features])]
    else:
        given = [
            helper.make_tensor_value_info(
                name, _DOUBLE if kind == "number" else _STRING, ["n_rows", 1]
            )
            for name, kind in inputs.kinds.items()
        ]
    whole = helper.make_graph(graph.nodes, "rareclass", given, values, graph.constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)]
    model = helper.make_model(
        whole, opset_imports=opsets, ir_version=IR_VERSION, producer_name="rareclass",

    )  # fmt: skip
    model = onnx.shape_inference.infer_shapes(model)
    onnx.checker.check_model(model)
    return model


def outputs_of(model: Any, inputs: TableInputs) -> ModelOutputs:
    """Return the outputs of a learned estimator.

    Raises `InputError` where it, or a part of it, has no form in ONNX.
    """
    score = score_of(model, inputs)
    if isinstance(model, RanksLevels):
        ends, names = model.thresholds_, model.classes_
    else:
        ends, names = np.array([model.offset_]), model.classes_
        if model.pos_label_ != names[1]:
            names = names[::-1]
    found = known_probability(score, vars(model).get("calibration_"))
    if found is not None and names[0] != model.classes_[0]:
        found = found.columns([1, 0])
    return ModelOutputs(score, label_of(score, ends, names), found)


def inner_model(model: Any) -> Any:
    """Return the model that predicts: of a search, the best one."""
    return model._best if isinstance(model, SearchCV) else model


def score_of(model: Any, inputs: TableInputs) -> Tensor:
    """Scores of shape (n_rows, 1).

    Raises `InputError` where the model, or a part of it, has no form in ONNX.
    """
    inner = inner_model(model)
    if isinstance(inner, CombinedRanking):
        if inner.has_several:  # which is called by the probabilities of the classes
            raise InputError(
                f"A RareClassifier of {len(inner.pos_label_)} rare classes has no form in ONNX.",
                "Fit one rare class: y == label in Python, rareclass fit --positive on a file.",
                ErrorKind.UNSUPPORTED,
            )
        return combined(inputs, inner)
    if not isinstance(inner, KernelRanking | LinearRanking | MIBC | OnlineRanker):
        raise InputError(
            f"A {type(model).__name__} has no form in ONNX.",
            f"These have one: {CAN}.",
            ErrorKind.UNSUPPORTED,
        )
    assert inputs.matrix is not None
    if isinstance(inner, KernelRanking):
        return expanded(inputs.matrix, inner._expansion(), inner.dual_coef_).upright()
    return (inputs.matrix @ np.asarray(inner.coef_, np.float64)).upright()


def label_of(score: Tensor, ends: np.ndarray, names: Sequence[Any] | np.ndarray) -> Tensor:
    """The class k of each score of shape (n_rows, 1): ``ends[k - 1] < score <= ends[k]``."""
    above = (score > np.asarray(ends, np.float64)).to(np.int64)
    code = score.graph.op("ReduceSum", above, np.array([1]), keepdims=0)
    return score.graph.constant(_label_array(names)).take(code)


def _label_array(names: Any) -> np.ndarray:
    """Names of classes in a type that ONNX has."""
    labels = np.asarray(names)
    kinds: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "i": lambda each: each.astype(np.int64),
        "u": lambda each: each.astype(np.int64),
        "f": lambda each: each.astype(np.float64),
        "b": lambda each: each,
        "U": lambda each: each,
    }
    if labels.dtype.kind in kinds:
        return kinds[labels.dtype.kind](labels)
    return np.array([str(each) for each in labels])


def known_probability(score: Tensor, calibration: Any) -> Tensor | None:
    """The probability of each class, the rare one or the highest level last; None without a map."""
    if isinstance(calibration, LevelCalibration):
        return level_probabilities(score, calibration)
    if not isinstance(calibration, Calibration):
        return None
    rare = probability(score, calibration)
    return score.graph.side_by_side([1.0 - rare, rare])


def probability(scores: Tensor, calibration: Calibration) -> Tensor:
    """Probability of the rare class of scores of shape (n_rows, 1), of that shape.

    Raises `InputError` for a map that has no form here.
    """
    log_odds = _log_odds(scores, calibration.map) + (calibration.centring + calibration.shift)
    return scores.graph.op("Sigmoid", log_odds).clip(_NEAREST, 1.0 - _NEAREST)


def level_probabilities(scores: Tensor, calibration: LevelCalibration) -> Tensor:
    """Probability of each level of scores of shape (n_rows, 1): as `LevelCalibration`."""
    graph = scores.graph
    one = scores * 0.0 + 1.0
    above = [
        probability(scores, each) if isinstance(each, Calibration) else one * float(each)
        for each in calibration.above
    ]
    lowered, raised = list(above), list(above)
    for k in range(1, len(above)):
        lowered[k] = graph.op("Min", lowered[k - 1], above[k])
        raised[-1 - k] = graph.op("Max", raised[-k], above[-1 - k])
    halves = [(low + high) * 0.5 for low, high in zip(lowered, raised, strict=True)]
    exceeded = [one, *halves, one * 0.0]
    return graph.side_by_side([exceeded[k] - exceeded[k + 1] for k in range(len(exceeded) - 1)])


def _log_odds(scores: Tensor, found: Any) -> Tensor:
    if isinstance(found, BetaMap):
        z = _scaled(scores, found.scale)
        low, high = -_softplus(-z), _softplus(z)
        return low * found.low_slope + high * found.high_slope + found.intercept
    if isinstance(found, LogisticMap):
        return _scaled(scores, found.scale) * found.slope + found.intercept
    if isinstance(found, IsotonicMap):
        return on_lines(scores.graph, scores, [found.knots], [found.values])
    if isinstance(found, PooledMap):
        return _pooled(scores, found)
    raise InputError(
        f"A map from scores to probabilities of kind {type(found).__name__} has no form in ONNX.",
        'These have one: method="auto", "isotonic", "beta", "logistic".',
        ErrorKind.UNSUPPORTED,
    )


def _pooled(scores: Tensor, found: PooledMap) -> Tensor:
    share = found.isotonic_share
    beta, isotonic = _log_odds(scores, found.beta), _log_odds(scores, found.isotonic)
    if share in (0.0, 1.0):
        chosen = isotonic if share else beta
    else:
        logs = float(np.log1p(-share)), float(np.log(share))
        chosen = _log_sum(-_softplus(-beta) + logs[0], -_softplus(-isotonic) + logs[1]) - _log_sum(
            -_softplus(beta) + logs[0], -_softplus(isotonic) + logs[1]
        )
    if found.parts is None:
        return chosen
    rare = on_lines(scores.graph, scores, [found.parts.scores], [found.parts.probabilities])
    return _log_sum(-_softplus(-chosen), rare.log()) - _log_sum(
        -_softplus(chosen), (1.0 - rare).log()
    )


def _scaled(scores: Tensor, scale: ScoreScale) -> Tensor:
    if scale.is_probability:
        inside = scores.clip(scale.lowest, scale.highest)
        return inside.log() - (1.0 - inside).log()
    return (scores - scale.centre) / scale.spread


def _softplus(z: Tensor) -> Tensor:
    """ln(1 + e^z)."""
    small = (-z.graph.op("Abs", z)).exp() + 1.0
    return z.at_least(0.0) + small.log()


def _log_sum(first: Tensor, second: Tensor) -> Tensor:
    """ln(e^first + e^second); one of the two may be minus infinity."""
    graph = first.graph
    apart = -graph.op("Abs", first - second)
    return graph.op("Max", first, second) + (apart.exp() + 1.0).log()


def export_pipeline(pipeline: Any) -> onnx.ModelProto:
    """A pipeline of scikit-learn whose last step is ours; see `rareclass.to_onnx`."""
    _register_converters()
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
def _register_converters() -> None:
    """Make our estimators of numbers known to skl2onnx, once a process."""
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
