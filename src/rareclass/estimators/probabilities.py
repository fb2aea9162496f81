"""Probabilities of estimators that kept scores of rows they were not learned from."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rareclass.decide.calibration.calibration import Calibration
from rareclass.decide.calibration.level_calibration import LevelCalibration

# Weights whose ratios to the least are as near as this to whole numbers were copies.
_ROUNDING = 1e-9


def learn_calibration(
    y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None
) -> Calibration | None:
    """The map from held-out scores to probabilities; None where they hold one class only.

    Weights that were divided by the largest are made the copies again that they stood for.
    """
    y = np.asarray(y, dtype=bool)
    if weight is not None:
        counts = weight > 0.0
        y, scores, weight = y[counts], scores[counts], weight[counts]
        if len(weight):
            copies = weight / weight.min()
            whole = np.round(copies)
            weight = whole if (np.abs(copies - whole) <= _ROUNDING * whole).all() else copies
    if not len(y) or y.all() or not y.any():
        return None
    return Calibration.fit(y, scores, weight)


def learn_level_calibration(
    codes: np.ndarray, scores: np.ndarray, weight: np.ndarray | None, n_levels: int
) -> LevelCalibration:
    """The maps from held-out scores to probabilities of levels 0 to n_levels - 1."""
    above: list[Calibration | float] = []
    for k in range(n_levels - 1):
        found = learn_calibration(codes > k, scores, weight)
        above.append(float(np.max(codes) > k) if found is None else found)
    return LevelCalibration(above)


def _check_calibrated(estimator: Any) -> None:
    """Refuse where there are no probabilities, or where fitting would not make them.

    Estimators that always keep a map say so by ``_calibrates``.
    """
    if getattr(estimator, "calibration_", None) is not None:
        return
    if estimator._calibrates and not hasattr(estimator, "classes_"):
        return
    raise AttributeError(
        f"this {type(estimator).__name__} has no probabilities: no scores of held-out rows were "
        "kept. Wrap it: rareclass.decide.CalibratedRanker(estimator).fit(X, y)."
    )


class HasProbabilities:
    """Probabilities from scores and a map that was learned on held-out ones.

    Whoever inherits has ``score_samples``, ``classes_`` and ``pos_label_``, and where it kept
    a map ``calibration_``.
    """

    _calibrates = False
    classes_: np.ndarray
    pos_label_: Any
    calibration_: Calibration | None

    @property
    def predict_proba(self) -> Callable[[Any], np.ndarray]:
        """Probability of each of ``classes_``, from the score and a map of held-out scores.

        ``predict_proba(X)`` takes what `score_samples` takes, and gives an ndarray of shape
        (n_rows, 2), strictly between 0 and 1, at the base rate of the training rows, by weight, or
        the one of `set_prevalence`. There only where rows were held out while fitting:
        `rareclass.decide.CalibratedRanker` gives probabilities to any other estimator. `predict`
        goes by its own threshold, not by one half.
        """
        # A property, as an estimator without probabilities is told by having no such attribute.
        _check_calibrated(self)
        return self._predict_proba

    def set_prevalence(
        self, prevalence: float | None = None, majority_sampling_rate: float | None = None
    ) -> Self:
        """State the base rate that `predict_proba` is to be of: nothing is learned again.

        Parameters
        ----------
        prevalence : float, optional
            Share of rare rows where the model is used, between 0 and 1.
        majority_sampling_rate : float, optional
            In its place: the share of the majority that was kept for training, in (0, 1]. Neither:
            the base rate of the training rows, by weight.

        Returns
        -------
        estimator
            This one.

        Raises
        ------
        InputError
            On a share out of range, or both.
        AttributeError
            Where there are no probabilities.
        """
        _check_calibrated(self)
        check_is_fitted(self)
        assert self.calibration_ is not None
        keeps = getattr(self, "best_estimator_", self)  # of a search
        keeps.calibration_ = self.calibration_.at(prevalence, majority_sampling_rate)
        return self

    def _predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        assert self.calibration_ is not None
        rare = self.calibration_(self.score_samples(X))  # type: ignore[attr-defined]
        columns = (1.0 - rare, rare)
        is_last = self.pos_label_ == self.classes_[1]
        return np.column_stack(columns if is_last else columns[::-1])
