"""From scores to probabilities of the rare class, or of levels."""

from typing import Any

import numpy as np

from rareclass.decide.calibration.calibration import Calibration, LevelCalibration, PooledMap
from rareclass.decide.calibration.isotonic import IsotonicMap
from rareclass.decide.calibration.parametric import BetaMap, LogisticMap, ScoreScale
from rareclass.errors import ErrorKind, InputError
from rareclass.model.onnx.graph import Tensor
from rareclass.model.onnx.knots import on_lines

_NEAREST = float(np.finfo(np.float64).eps)


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
        'Those that have: method="auto", "isotonic", "beta", "logistic".',
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
