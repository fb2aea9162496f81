"""What a model answers: score, label and probability of each row."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rareclass.decide.calibration.calibration import Calibration, LevelCalibration
from rareclass.ensemble.rare_classifier import RareClassifier
from rareclass.errors import ErrorKind, InputError
from rareclass.estimators.search import SearchCV
from rareclass.model.onnx.calibration import level_probabilities, probability
from rareclass.model.onnx.combination import combined
from rareclass.model.onnx.graph import Tensor
from rareclass.model.onnx.kernel_machine import expanded
from rareclass.model.onnx.table_inputs import TableInputs
from rareclass.moments.mibc import MIBC
from rareclass.online.ranker import OnlineRanker
from rareclass.ranking.machine import KernelModel, RanksLevels

CAN = "RankRC, RankSVM, OrdinalRankRC, StochasticRankRC, MIBC, the online learners, RareClassifier"


class Answers(NamedTuple):
    """Tensors of as many rows: double, of a label's type, and double of (n_rows, n_classes)."""

    score: Tensor
    label: Tensor | None
    probability: Tensor | None


def answers_of(model: Any, inputs: TableInputs) -> Answers:
    """The answers of a learned estimator.

    Raises `InputError` where it, or a part of it, has no form in ONNX.
    """
    score = score_of(model, inputs)
    if isinstance(model, RanksLevels):
        ends, names = model.thresholds_, model.classes_
    else:
        ends, names = np.array([model.offset_]), model.classes_
        if model.pos_label_ != names[1]:
            names = names[::-1]
    found = known_probability(score, getattr(model, "calibration_", None))
    if found is not None and names[0] != model.classes_[0]:
        found = found.columns([1, 0])
    return Answers(score, label_of(score, ends, names), found)


def label_of(score: Tensor, ends: np.ndarray, names: Sequence[Any] | np.ndarray) -> Tensor:
    """The class k of each score of shape (n_rows, 1): ``ends[k - 1] < score <= ends[k]``."""
    above = (score > np.asarray(ends, np.float64)).to(np.int64)
    code = score.graph.op("ReduceSum", above, np.array([1]), keepdims=0)
    return score.graph.constant(_label_array(names)).take(code)


def inner_model(model: Any) -> Any:
    """The model that predicts: of a search, the best one."""
    return model._best() if isinstance(model, SearchCV) else model


def score_of(model: Any, inputs: TableInputs) -> Tensor:
    """Scores of shape (n_rows, 1).

    Raises `InputError` where the model, or a part of it, has no form in ONNX.
    """
    inner = inner_model(model)
    if isinstance(inner, RareClassifier):
        return combined(inputs, inner)
    if not isinstance(inner, KernelModel | MIBC | OnlineRanker):
        raise InputError(
            f"A {type(model).__name__} has no form in ONNX.",
            f"These have one: {CAN}.",
            ErrorKind.UNSUPPORTED,
        )
    assert inputs.matrix is not None
    if isinstance(inner, KernelModel):
        return expanded(inputs.matrix, inner._expansion(), inner.coef_).upright()
    return (inputs.matrix @ np.asarray(inner.coef_, np.float64)).upright()


def known_probability(score: Tensor, calibration: Any) -> Tensor | None:
    """The probability of each class, the rare one or the highest level last; None without a map."""
    if isinstance(calibration, LevelCalibration):
        return level_probabilities(score, calibration)
    if not isinstance(calibration, Calibration):
        return None
    rare = probability(score, calibration)
    return score.graph.side_by_side([1.0 - rare, rare])


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
