"""Kernel ranking machines: `fit`, scores and features."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from rareclass.errors import ErrorKind
from rareclass.estimators.estimator import FitsRows, finite_scores, read_features, settings_of
from rareclass.estimators.rankings import KernelRanking
from rareclass.kernels.kernels import needs_width
from rareclass.parameters import check_choice, check_number, check_whole
from rareclass.ranking.feature_scaling import learn_feature_scales
from rareclass.ranking.losses import LabellingLoss, make_loss
from rareclass.ranking.ranking_data import (
    KernelSettings,
    PreparedRanking,
    RankingData,
    prepare,
    width_of_rows,
)
from rareclass.ranking.solve import PENALTIES, LearnedMachine, MachineParameters, fit_path
from rareclass.ranking.targets import RankingTarget
from rareclass.rows import RowSource
from rareclass.rows.source import narrowed

# Rows beyond which kernel_dtype="auto" is float32: there the kernel is nearly all of the time.
_MANY_ROWS = 100_000


class KernelModel(
    KernelRanking, ClassNamePrefixFeaturesOutMixin, TransformerMixin, FitsRows, BaseEstimator
):
    """Scores and features of a model that kernel functions of landmarks carry.

    Subclasses have ``whitener_`` and what `KernelRanking` has.
    """

    def score_samples(self, X: Any) -> np.ndarray:
        """Score f(x) of every row: higher is more like the rare class, or the highest level.

        Only the order of scores and their distances mean something. O(n_landmarks n_features) a
        row, in blocks; no memory but the result, of shape (n_rows,).
        """
        check_is_fitted(self)
        return finite_scores(super().score_samples(X))

    def transform(self, X: Any) -> np.ndarray:
        """Nyström features of every row: the paper's linearisation, section 5.1.

        Coordinates of the rows in the span of the landmarks, such that a linear model on them
        with a ridge penalty is the kernel model: inner products of features are the kernel
        projected on the landmarks, and the score is ``transform(X) @ w`` for some w.

        Of shape (n_rows, rank), rank at most the number of landmarks: duplicates add no direction.
        O(n_landmarks (n_features + rank)) a row.
        """
        check_is_fitted(self)
        return self._map(X, self.whitener_)

    @property
    def _n_features_out(self) -> int:
        return self.whitener_.shape[1]

    def _source(self, X: Any) -> RowSource:
        return read_features(self, X, reset=False, squares=True)


class KernelMachine(MachineParameters, KernelModel):
    """`fit` of a kernel ranking machine; subclasses read labels in `_read_target`."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn to rank the rare rows first, or rows by level.

        1. Validate columns, rows and labels.
        2. Find the width of the kernel, and scales of features where they are wanted.
        3. Choose landmarks; lay out the majority rows in blocks.
        4. Solve for `lam`, in whitened coordinates of the landmarks.
        5. Find the threshold on the training rows.
        6. Keep what was learned.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)
            Numbers, all finite; standardise them first.
        y : array-like of shape (n_rows,)
            Two labels of any type. For ordinal machines levels: numbers, an ordered categorical,
            or any labels with `levels`.
        sample_weight : array-like of shape (n_rows,) or None
            Weights at or above 0: k counts a row k times, 0 leaves it out.
        """
        self._check_parameters([self.lam])
        # 1. to 3.
        prepared = self._prepare(X, y, sample_weight)
        # 4. and 5.
        (learned,) = fit_path(prepared, [self.lam], self)
        # 6.
        return self._keep(prepared, learned)

    def _check_parameters(self, lams: Sequence[float]) -> None:
        """Raise `ValueError` on values that no solver can work with, naming parameter and range."""
        for lam in lams:
            check_number("lam", lam)
        if self.tol != "auto":
            check_number("tol", self.tol, "'auto' or a number above 0")
        check_whole("max_iter", self.max_iter)
        check_choice("penalty", self.penalty, list(PENALTIES))
        check_choice("feature_scaling", self.feature_scaling, (None, "learned"))
        check_choice("kernel_dtype", self.kernel_dtype, ("auto", "float32", "float64"))

    def _read_target(self, y: Any, sample_weight: Any, n_rows: int) -> RankingTarget:
        raise NotImplementedError

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, several: bool = False
    ) -> PreparedRanking:
        source = read_features(self, X, squares=True)
        return prepare(self._data(source, y, sample_weight), several)

    def _data(self, source: RowSource, y: Any, sample_weight: Any) -> RankingData:
        """Rows whose columns are known, with labels, width and scales of the features."""
        target = self._read_target(y, sample_weight, source.n_rows)
        loss = make_loss(self.loss, self.eps, self.loss_params)
        if isinstance(loss, LabellingLoss) and self.penalty != "l2":
            raise ErrorKind.COMBINATION.error(
                f"loss={type(loss).__name__} has no solver for penalty={self.penalty!r}.",
                "Use penalty='l2', or a loss of pairs.",
                value=type(loss).__name__,
            )
        settings = settings_of(KernelSettings, self)
        width = width_of_rows(settings, source, target.labels)
        many = self.kernel_dtype == "auto" and source.n_rows > _MANY_ROWS
        if many or self.kernel_dtype == "float32":
            source = narrowed(source, width if needs_width(self.kernel) else None)
        data = RankingData(settings, source, target, loss, width)
        if self.feature_scaling == "learned":
            data = replace(data, scales=learn_feature_scales(data, self.eps, self.verbose))
        return data

    def _keep(self, prepared: PreparedRanking, learned: LearnedMachine) -> Self:
        """Assign all attributes that `fit` leaves."""
        solution = learned.solution
        self.landmarks_, self.landmark_rows_ = learned.landmarks, learned.landmark_rows
        self.dual_coef_, self.whitener_ = learned.coef, learned.whitener
        self.n_landmarks_ = int(np.count_nonzero(learned.coef))
        self.width_, self.feature_scales_ = prepared.data.width, prepared.data.scales
        self.objective_, self.optimality_ = solution.at.value, solution.optimality
        self.n_iter_, self.status_ = solution.n_iter, str(solution.status)
        self.history_ = solution.history
        self.__dict__.pop("duality_gap_", None)  # of a fit with another penalty
        self.__dict__.pop("calibration_", None)  # of a search
        if learned.duality_gap is not None:
            self.duality_gap_ = learned.duality_gap
        self.__dict__.update(prepared.data.target.attributes)
        return self
