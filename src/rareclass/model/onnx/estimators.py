"""Learned estimators and pipelines as models of ONNX: score, label and probabilities of rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import polars as pl
from onnx import helper
from onnxruntime import InferenceSession
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import DoubleTensorType
from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rareclass.decide.calibration import Calibration, LevelCalibration, PooledMap
from rareclass.decide.calibration_map import BetaMap, IsotonicMap, LogisticMap, ScoreScale
from rareclass.encoding.encoders import TableEncoder, TypedColumns
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.ensemble.combined_ranking import CombinedRanking
from rareclass.errors import ErrorKind, setting
from rareclass.estimators.rankings import KernelRanking, LinearRanking
from rareclass.estimators.search import SearchCV
from rareclass.model.model import Model
from rareclass.model.onnx.graph import (
    IR_VERSION,
    ML,
    ML_OPSET,
    OPSET,
    RUNTIME,
    Graph,
    TableInputs,
    Tensor,
    on_lines,
    refuse_column,
)
from rareclass.model.onnx.rare_classifier import (
    EncodedRow,
    combined,
    dense_rows,
    expanded,
    is_32_bit,
    level_odds,
)
from rareclass.moments import MIBC
from rareclass.online.ranker import OnlineRanker
from rareclass.ranking.ordinal_rankrc import RanksLevels
from rareclass.tables.cells import EMPTY_MARKS, TRUTH_SPELLINGS
from rareclass.tables.columns import Column

CAN = "RankRC, RankSVM, OrdinalRankRC, StochasticRankRC, MIBC, the online learners, RareClassifier"
_ML_OPSET_OF_SKL2ONNX = 3
_DOUBLE, _STRING = onnx.TensorProto.DOUBLE, onnx.TensorProto.STRING
_NEAREST = float(np.finfo(np.float64).eps)


class ModelOutputs(NamedTuple):
    """Tensors of as many rows: double, of a label's type, and double of (n_rows, n_classes)."""

    score: Tensor
    label: Tensor | None
    probability: Tensor | None


def export(model: Any) -> onnx.ModelProto:
    """An estimator, a pipeline or a loaded model; see `rareclass.to_onnx`."""
    if isinstance(model, Model):
        return _export_with_encoder(model)
    check_is_fitted(model)
    return _export_pipeline(model) if isinstance(model, Pipeline) else _export_estimator(model)


def _export_estimator(model: Any) -> onnx.ModelProto:
    graph, inner = Graph(), inner_model(model)
    inputs = _matrix_of(inner, Tensor(graph, "X"))
    has_columns = isinstance(inner, CombinedRanking) and (
        "feature_names_in_" in vars(inner)
        or any(column.is_used and column.reads_as == "string" for column in inner.columns_)
    )
    if has_columns:
        inputs = TableInputs(graph)
    exported = finished(inputs, outputs_of(model, inputs), getattr(model, "n_features_in_", 0))
    if has_columns:
        check_scores(exported, model, inner.columns_, inner.statistics_, is_32_bit(inner))
    return exported


def _matrix_of(inner: Any, X: Tensor) -> TableInputs:
    """Rows that come as one matrix, with the names of its columns where they were learned."""
    columns = inner.columns_ if isinstance(inner, CombinedRanking) else ()
    return TableInputs(X.graph, X, [column.name for column in columns])


def finished(
    inputs: TableInputs,
    outputs: ModelOutputs,
    n_features: int = 0,
    before: onnx.GraphProto | None = None,
) -> onnx.ModelProto:
    """Make the model whose inputs are X, or the columns in use, and whose outputs are given.

    `before` is the graph that makes the matrix of `inputs` from X.
    """
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
    whole = helper.make_graph(
        [*(before.node if before else ()), *graph.nodes],
        "rareclass",
        given,
        values,
        [*(before.initializer if before else ()), *graph.constants],
        value_info=graph.types,
    )
    versions = {"": OPSET, ML: ML_OPSET, RUNTIME: 1}
    used = {"", *(node.domain for node in whole.node)}
    opsets = [helper.make_opsetid(name, versions[name]) for name in sorted(used)]
    model = helper.make_model(
        whole, opset_imports=opsets, ir_version=IR_VERSION, producer_name="rareclass",

    )  # fmt: skip
    model = onnx.shape_inference.infer_shapes(model)
    onnx.checker.check_model(model)
    return model


def outputs_of(model: Any, inputs: TableInputs) -> ModelOutputs:
    """Return the outputs of a learned estimator."""
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


# Differences of scores that are rounding, where the library computes in 64 bits, and in 32.
_ROUNDING, _ROUNDING_32 = 1e-6, 1e-3
_MOST_SAMPLES = 60  # of the words, and of the numbers, of a column


def check_scores(
    exported: onnx.ModelProto,
    model: Any,
    columns: Sequence[Column],
    statistics: TableStatistics,
    in_32_bits: bool,
) -> None:
    """Raise `InputError` where sample rows have other scores by the graph than by `model`.

    They hold the words of each column in several spellings, empty cells, and numbers in and beyond
    the range of training.
    """
    numbers, words = _sample_numbers(statistics), _sample_words(statistics)
    cells = {each.name: (numbers | words)[each.name] for each in columns if each.is_used}
    n_rows = max(map(len, cells.values()))
    rows = {name: np.resize(each, n_rows) for name, each in cells.items()}
    session = InferenceSession(exported.SerializeToString(), providers=["CPUExecutionProvider"])
    given = {each.name: rows[each.name][:, None] for each in session.get_inputs()}
    [found] = session.run(["score"], given)
    score = model.score_samples(pl.DataFrame(rows, strict=False))
    wrong = np.abs(found[:, 0] - score) > (_ROUNDING_32 if in_32_bits else _ROUNDING)
    if wrong.any():
        row = {name: each[wrong.argmax()] for name, each in rows.items()}
        raise ErrorKind.UNSUPPORTED.error(
            f"The ONNX form of this model scores {row} otherwise than the model does.",
            "Load the model with rareclass.load, and report this.",
        )


def _sample_numbers(statistics: TableStatistics) -> dict[str, np.ndarray]:
    known, found = statistics.summaries, {}
    for k, name in enumerate(statistics.number_names_):
        knots = known.knots[known.starts[k] : known.starts[k + 1]]
        some = knots[:: len(knots) // _MOST_SAMPLES + 1]
        found[name] = np.concatenate([some, some + 0.25, [np.nan, -1e9, 1e9]])
    return found


def _sample_words(statistics: TableStatistics) -> dict[str, np.ndarray]:
    found = {}
    for k in range(statistics.n_words_):
        known = statistics.known_[k]
        words = [known.name(level) for level in range(min(known.n_known, _MOST_SAMPLES))]
        words += [*EMPTY_MARKS, *TRUTH_SPELLINGS, "3"]
        spelt = [(each, each.upper(), f" {each}\t", f"{each}.0") for each in words]
        found[statistics.category_names_[k]] = np.array(sum(spelt, ()), object)
    return found


def inner_model(model: Any) -> Any:
    """Return the model that predicts: of a search, the best one."""
    return model._best if isinstance(model, SearchCV) else model


def score_of(model: Any, inputs: TableInputs) -> Tensor:
    """Scores of shape (n_rows, 1)."""
    inner = inner_model(model)
    if isinstance(inner, CombinedRanking):
        if inner.has_several:  # which is called by the probabilities of the classes
            raise ErrorKind.UNSUPPORTED.error(
                f"A RareClassifier of {len(inner.pos_label_)} rare classes has no form in ONNX.",
                f"Fit one rare class against all other rows: {setting('pos_label', 'LABEL')}.",
            )
        return combined(inputs, inner)
    if not isinstance(inner, KernelRanking | LinearRanking | MIBC | OnlineRanker):
        raise ErrorKind.UNSUPPORTED.error(
            f"A {type(model).__name__} has no form in ONNX.", f"These have one: {CAN}."
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
    wide = {"i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_}
    return labels.astype(wide.get(labels.dtype.kind, np.str_))


def known_probability(score: Tensor, calibration: Any) -> Tensor | None:
    """The probability of each class, the rare one or the highest level last; None without a map."""
    if isinstance(calibration, LevelCalibration):
        return level_probabilities(score, calibration)
    if not isinstance(calibration, Calibration):
        return None
    rare = probability(score, calibration)
    return score.graph.side_by_side([1.0 - rare, rare])


def probability(scores: Tensor, calibration: Calibration) -> Tensor:
    """Probability of the rare class of scores of shape (n_rows, 1), of that shape."""
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
        return on_lines(scores, [found.knots], [found.values])
    if isinstance(found, PooledMap):
        return _pooled(scores, found)
    raise ErrorKind.UNSUPPORTED.error(
        f"A map from scores to probabilities of kind {type(found).__name__} has no form in ONNX.",
        'These have one: method="auto", "isotonic", "beta", "logistic".',
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
    rare = on_lines(scores, [found.parts.scores], [found.parts.probabilities])
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


def _export_with_encoder(model: Model) -> onnx.ModelProto:
    inputs, encoder = TableInputs(Graph()), model.encoder
    if isinstance(encoder, TypedColumns):
        for column in encoder.columns:
            if column.reads_as == "date":
                raise refuse_column(column.name, "date")
        score, in_32_bits = score_of(model.estimator, inputs), is_32_bit(model.estimator)
    elif isinstance(encoder, TableEncoder):
        row = EncodedRow(inputs, encoder.statistics_, encoder.columns)
        rows = dense_rows(row, encoder.view_)
        if encoder.level_odds_.places_:
            rows = inputs.graph.side_by_side([rows, *level_odds(row, encoder.level_odds_)])
        in_32_bits = encoder.dtype_ == "float32"
        if in_32_bits:
            rows = rows.to(np.float32).to(np.float64)
        score = score_of(model.estimator, TableInputs(inputs.graph, rows))
    else:
        raise ErrorKind.UNSUPPORTED.error(
            f"{model!r} encodes rows by a {type(encoder).__name__}, which has no form in "
            "ONNX: sparse rows, streams and hunts have none.",
            "rareclass fit of a table with named columns makes models that have one.",
        )
    label = label_of(score, np.asarray(model.thresholds), list(model.classes))
    outputs = ModelOutputs(score, label, known_probability(score, model.calibration))
    exported = finished(inputs, outputs)
    assert encoder.statistics_ is not None
    check_scores(exported, model, encoder.columns, encoder.statistics_, in_32_bits)
    return exported


def _export_pipeline(pipeline: Any) -> onnx.ModelProto:
    """A pipeline of scikit-learn whose last step is ours."""
    last = pipeline[-1]
    if len(pipeline) == 1:
        return _export_estimator(last)
    n_features = pipeline.n_features_in_
    given = [("X", DoubleTensorType([None, n_features]))]
    opsets = {"": OPSET, ML: _ML_OPSET_OF_SKL2ONNX}
    try:
        before = convert_sklearn(pipeline[:-1], initial_types=given, target_opset=opsets).graph
    except (MissingConverter, MissingShapeCalculator, RuntimeError) as error:
        steps = ", ".join(type(step).__name__ for _, step in pipeline.steps[:-1])
        reason = str(error).strip().split("\n")[0]
        raise ErrorKind.UNSUPPORTED.error(
            f"skl2onnx cannot convert a step of {steps}: {reason}", "Use steps that it converts."
        ) from error
    graph = Graph("last_")
    X = Tensor(graph, before.output[0].name).to(np.float64)
    inputs = _matrix_of(inner_model(last), X)
    return finished(inputs, outputs_of(last, inputs), n_features, before)
