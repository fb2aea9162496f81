"""What kernel ranking machines share, alone or in a search, for two classes or for levels.

`fit` of a machine:

1. columns are looked at, rows made readable, labels read as a `RankingTarget`
2. scales of the features are learned, where they are asked for
3. rows are prepared: width, landmarks, kernel blocks
4. the problem is solved for the penalty, and a threshold learned
5. what was learned is kept
"""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from rareclass.decide.calibration.level_calibration import LevelCalibration
from rareclass.estimators.estimator import (
    FitsRows,
    RankScorer,
    finite_scores,
    read_features,
    settings_of,
)
from rareclass.kernels.expansion import KernelExpansion, block_scores
from rareclass.kernels.kernels import FeatureScaled, make_kernel, needs_width
from rareclass.labels.levels import encode, read_levels
from rareclass.labels.two_classes import read_labels
from rareclass.metrics import mauc
from rareclass.parameters import check_number, check_whole
from rareclass.ranking.feature_scales.learning import ScaleSettings, learn_feature_scales
from rareclass.ranking.fitting import PENALTIES, LearnedMachine, SolverSettings, fit_path
from rareclass.ranking.losses import make_loss
from rareclass.ranking.preparation import (
    KernelSettings,
    Prepared,
    block_rows,
    width_of_rows,
)
from rareclass.ranking.targets import OrderedLevels, RankingTarget, TwoClasses, pair_costs
from rareclass.ranking.training_rows import TrainingRows
from rareclass.rows import rows_of
from rareclass.rows.source import narrowed

# Rows beyond which kernel_dtype="auto" is float32: there the kernel is nearly all of the time.
_MANY_ROWS = 100_000


class KernelModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """What every kernel ranking machine shares: landmarks, and functions carried by them.

    Whoever inherits has ``kernel``, ``n_jobs``, ``width_``, ``landmarks_`` and ``whitener_``.
    """

    def transform(self, X: Any) -> np.ndarray:
        """Nyström features of every row: the paper's linearisation, section 5.1.

        Coordinates of the rows in the span of the landmarks, such that a linear model on them
        with a ridge penalty is the kernel model: inner products of features are the kernel
        projected on the landmarks, and the score is ``transform(X) @ w`` for some w.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, rank)
            rank is at most the number of landmarks: duplicates add no direction.

        Notes
        -----
        Cost: O(n_landmarks (n_features + rank)) a row.
        """
        check_is_fitted(self)
        return self._map(X, self.whitener_)

    @property
    def _n_features_out(self) -> int:
        return self.whitener_.shape[1]

    def _expansion(self) -> KernelExpansion:
        kernel = make_kernel(self.kernel, self.width_)
        scales = getattr(self, "feature_scales_", None)
        if scales is not None:
            kernel = FeatureScaled(kernel, scales)
        return KernelExpansion(kernel, self.landmarks_)

    def check_parts(self) -> None:
        """Raise `ValueError` where the parts of the expansion are not of one size."""
        shape = n_landmarks, n_features = self.landmarks_.shape
        if self.coef_.shape != (n_landmarks,) or self.coef_.dtype.kind != "f":
            raise ValueError(f"coef_ does not have a number for each of {n_landmarks} landmarks")
        if n_features != self.n_features_in_ or not self.width_ > 0:
            raise ValueError(f"landmarks_ of shape {shape} for {self.n_features_in_} features")

    def _map(self, X: Any, coefficients: np.ndarray) -> np.ndarray:
        source = read_features(self, X, reset=False, squares=True)
        expansion = self._expansion()
        size = block_rows(expansion.n_landmarks, source.dtype)
        rows = rows_of(source, block_rows=size, n_jobs=self.n_jobs)
        return rows.map(block_scores, expansion, coefficients)


class KernelEstimator(BaseEstimator):
    """An estimator whose models of earlier versions are read with the parameters they lack."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        given = signature(type(self).__init__).parameters.values()
        defaults = {each.name: each.default for each in given if each.default is not each.empty}
        super().__setstate__(defaults | state)


class KernelLearner(FitsRows, KernelEstimator):
    """From a table and labels to prepared rows: machines and searches over them alike."""

    def _read_target(self, y: Any, sample_weight: Any, n_rows: int) -> RankingTarget:
        raise NotImplementedError

    def _remember(self, target: Any) -> None:
        """Keep what the labels are to users."""
        raise NotImplementedError

    def _prepare(self, X: Any, y: Any, sample_weight: Any, several: bool = False) -> Prepared[Any]:
        return self._read(X, y, sample_weight).prepared(several)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows[Any]:
        source = read_features(self, X, squares=True)
        target = self._read_target(y, sample_weight, source.n_rows)
        loss = make_loss(self.loss, self.eps, self.loss_params)
        settings, scales = settings_of(KernelSettings, self), None
        width = width_of_rows(settings, source, target.labels)
        if self._narrows(source.n_rows):
            source = narrowed(source, width if needs_width(self.kernel) else None)
        if self.feature_scaling == "learned":
            of_scales = settings_of(ScaleSettings, self)
            scales = learn_feature_scales(of_scales, source, target, width).scales
        return TrainingRows(settings, source, target, loss, width, scales)

    def _narrows(self, n_rows: int) -> bool:
        many = n_rows > _MANY_ROWS
        return self.kernel_dtype == "float32" or (self.kernel_dtype == "auto" and many)

    def _check_solver_parameters(self, lams: Sequence[float]) -> None:
        """Refuse what no solver can work with, naming the parameter and its range."""
        for lam in lams:
            check_number("lam", lam)
        if self.tol != "auto":
            check_number("tol", self.tol, "'auto' or a number above 0")
        check_whole("max_iter", self.max_iter)
        choices = {
            "penalty": tuple(PENALTIES),
            "feature_scaling": (None, "learned"),
            "kernel_dtype": ("auto", "float32", "float64"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r} is not one of {list(known)}.")


class KernelMachine(KernelModel, KernelLearner):
    """`fit` and `score_samples` of a kernel ranking machine."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn to rank the rare rows first, or rows by level.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)
            Numbers, all finite; standardise them first.
        y : array-like of shape (n_rows,)
            Two labels of any type. For ordinal machines levels: numbers, an ordered categorical,
            or any labels with `levels`.
        sample_weight : array-like of shape (n_rows,) or None
            Weights at or above 0: k counts a row k times, 0 leaves it out.

        Returns
        -------
        estimator
            This one.
        """
        self._check_solver_parameters([self.lam])
        prepared = self._prepare(X, y, sample_weight)
        settings = settings_of(SolverSettings, self)
        (learned,) = fit_path(prepared, [self.lam], settings, type(self).__name__)
        return self._learned(prepared, learned)

    def score_samples(self, X: Any) -> np.ndarray:
        """Score f(x) of every row: higher is more like the rare class, or the highest level.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Scores mean something only beside each other.

        Notes
        -----
        Cost: O(n_landmarks n_features) a row, in blocks; no memory but the result.
        """
        check_is_fitted(self)
        return finite_scores(self._map(X, self.coef_))

    def _learned(self, prepared: Prepared, learned: LearnedMachine) -> Self:
        """Keep all that `fit` leaves."""
        solution = learned.solution
        self.landmarks_, self.landmark_rows_ = learned.landmarks, learned.landmark_rows
        self.coef_, self.whitener_ = learned.coef, learned.whitener
        self.n_landmarks_ = int(np.count_nonzero(learned.coef))
        self.width_, self.feature_scales_ = prepared.width, prepared.scales
        self.objective_, self.optimality_ = solution.at.value, solution.optimality
        self.n_iter_, self.status_ = solution.n_iter, str(solution.status)
        self.history_ = solution.history
        self.__dict__.pop("duality_gap_", None)  # of a fit with another penalty
        self.__dict__.pop("calibration_", None)  # of a search
        if learned.duality_gap is not None:
            self.duality_gap_ = learned.duality_gap
        self._remember(prepared.target)
        return self


class RanksTwoClasses(RankScorer):
    """Labels of two classes, of which one is rare."""

    def _read_target(self, y: Any, sample_weight: Any, n_rows: int) -> TwoClasses:
        return TwoClasses(read_labels(y, sample_weight, self.pos_label, n_rows))

    def _remember(self, target: TwoClasses) -> None:
        self.classes_, self.pos_label_ = target.labels.classes, target.labels.pos_label


class RanksLevels(ClassifierMixin):
    """Labels that are ordered levels, of which one is frequent; levels from a score.

    It is a classifier to scikit-learn, not a regressor: labels may be text, `predict` gives one of
    them, and splitters and scorers should keep every level in every fold. Whoever inherits has
    ``score_samples``, ``thresholds_`` and ``classes_``, and where it kept maps of held-out scores
    ``calibration_``.
    """

    _calibrates = False
    calibration_: LevelCalibration

    def decision_function(self, X: Any) -> np.ndarray:
        """Rank of every row, one number whatever the number of levels: `score_samples`.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self.score_samples(X)

    def predict(self, X: Any) -> np.ndarray:
        """The level of every row: k where ``thresholds_[k - 1] < score <= thresholds_[k]``."""
        scores = self.score_samples(X)
        return self.classes_[np.searchsorted(self.thresholds_, scores, side="left")]

    @property
    def predict_proba(self) -> Callable[[Any], np.ndarray]:
        """Probability of each of ``classes_``, from the score and maps of held-out scores.

        ``predict_proba(X)`` takes what `score_samples` takes, and gives an ndarray of shape
        (n_rows, n_levels) whose rows sum to 1; see `LevelCalibration`. A level without rows has
        probability 0. There only where rows were held out while fitting, as in `OrdinalRankRCCV`.
        `predict` goes by thresholds, not by the likeliest level.
        """
        if getattr(self, "calibration_", None) is None and (
            not self._calibrates or hasattr(self, "classes_")
        ):
            raise AttributeError(
                f"this {type(self).__name__} has no probabilities: no scores of held-out rows were "
                "kept. OrdinalRankRCCV keeps some, with lams=[lam] too."
            )
        return self._predict_proba

    def _predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self.calibration_(self.score_samples(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """MAUC: share of the pairs of rows of different levels that are in order, in [0, 1].

        Raises
        ------
        ValueError
            Where y holds a label that `fit` did not know, or rows of one level only.
        """
        codes = encode(y, self.classes_)[1]
        return mauc(codes, self.score_samples(X), sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read_target(self, y: Any, sample_weight: Any, n_rows: int) -> OrderedLevels:
        levels = read_levels(y, sample_weight, self.levels, n_rows)
        return OrderedLevels(levels, pair_costs(self.pair_cost, levels))

    def _remember(self, target: OrderedLevels) -> None:
        self.classes_ = target.labels.levels
        self.majority_level_ = target.labels.majority_label
