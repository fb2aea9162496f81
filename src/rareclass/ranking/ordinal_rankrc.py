"""OrdinalRankRC: kernel ranking of ordered levels of which one is frequent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from rareclass.estimators.estimator import check_calibrated, learned
from rareclass.labels.levels import encode, read_levels
from rareclass.metrics import mauc, vus
from rareclass.ranking.machine import KernelMachine
from rareclass.ranking.ranking_data import PreparedRanking
from rareclass.ranking.search import KernelSearch
from rareclass.ranking.solve import LearnedMachine
from rareclass.ranking.targets import OrderedLevels, pair_costs


class RanksLevels(ClassifierMixin):
    """Levels from a score: predictions and probabilities of estimators of ordered levels.

    A classifier to scikit-learn, not a regressor: labels may be text, `predict` gives one of
    them, and splitters and scorers should keep every level in every fold. Subclasses have
    ``score_samples``, ``thresholds_`` and ``classes_``, and where held-out scores were kept
    ``calibration_``.
    """

    _calibrates = False

    def decision_function(self, X: Any) -> np.ndarray:
        """Rank of every row, one number whatever the number of levels: `score_samples`."""
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
        check_calibrated(self, "OrdinalRankRCCV keeps some, with lams=[lam] too.")
        return self._predict_proba

    def _predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self.calibration_(self.score_samples(X))

    _predict_proba.__name__ = "predict_proba"  # by which scikit-learn takes one of its columns

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """MAUC: share of the pairs of rows of different levels that are in order, in [0, 1].

        Raises
        ------
        ValueError
            Where y holds a label that `fit` did not know, or rows of one level only.
        """
        codes = encode(y, self.classes_)[1]
        return mauc(codes, self.score_samples(X), sample_weight)


@dataclass(eq=False, repr=False)
class OrdinalRankRC(RanksLevels, KernelMachine):
    r"""Kernel ranking machine for ordered levels, carried by the rows of the rare ones.

    .. math::

        \min_\beta \; \frac{1}{\sum_{r < t} c_{rt} W_r W_t} \sum_{r < t} c_{rt}
        \sum_{i \in t} \sum_{j \in r} w_i w_j \, \ell\bigl(f(x_i) - f(x_j)\bigr)
        + \frac{\lambda}{2} \beta' K_{RR} \beta,
        \qquad f(x) = \sum_{q \in R} \beta_q k(x_q, x)

    r < t are levels, W their weights, w those of rows, c the cost of a pair of two levels (1 by
    default, which is the paper's problem), l the smoothed hinge. The majority is the level of
    greatest weight, wherever it stands in the order: its rows are only ever summed. R are the
    landmarks, by default the rows of all other levels. With two levels it is `RankRC`.

    Parameters
    ----------
    levels : sequence or None, default=None
        The levels in increasing order; some may have no rows. None takes the order of numbers, 100
        at most, or that of an ordered categorical. Text needs it.
    kernel, width : as in `RankRC`
    lam : float, default=2**-8
        Strength of the regulariser, above 0. Larger is smoother; see `OrdinalRankRCCV`.
    landmarks : as in `RankRC`, default="rare"
        "rare" are the rows of every level but the majority; ("rare", k) at most k of them, spread
        out; "all" is ordinal kernel RankSVM, for thousands of rows.
    pair_cost : None, "distance", matrix or callable, default=None
        c: what a pair of two levels weighs. None: every pair the same. "distance": as many levels
        as lie from one to the other, so that 0 before 15 matters more than 0 before 1. A matrix
        of shape (n_levels, n_levels): entries above the diagonal, at or above 0, are used;
        what is below must be zero or mirror them. A callable takes the positions (r, t) of two
        levels, r < t.
    loss : "smoothed_hinge" or another loss of `RankRC`, or PairLoss
    eps, loss_params, tol, max_iter : as in `RankRC`
    penalty : {"l2", "l1"}, default="l2"
        As in `RankRC`: with "l1" most landmarks drop out.
    feature_scaling : {None, "learned"}, default=None
        As in `RankRC`, by the held-out MAUC.
    memory, kernel_dtype, n_jobs, random_state, verbose : as in `RankRC`

    Attributes
    ----------
    classes_ : ndarray of shape (n_levels,)
        The levels, in increasing order.
    majority_level_ : label
        The level of greatest weight.
    thresholds_ : ndarray of shape (n_levels - 1,)
        Non-decreasing: level k is ``thresholds_[k - 1] < score <= thresholds_[k]``. They minimise
        the absolute error in levels on the training rows, averaged within each level and then
        over levels (`rareclass.decide.level_thresholds`). -inf or inf where a level is never worth
        predicting. Training scores of landmarks are optimistic; `OrdinalRankRCCV` learns the
        thresholds on held-out scores.

    Raises
    ------
    ValueError
        On fewer than two levels, a label that is not among `levels`, text without `levels`,
        missing or infinite values (naming row and column), or parameters outside their range.

    Notes
    -----
    Time: as `RankRC` with as many rare rows as there are rows outside the majority, and
    O(m_rare log m_rare) for each level and pass. Memory: as `RankRC`, and some numbers for each
    rare row and level.

    `predict` is for when a level must be named; ranking is what the model learns, and what
    `score` measures.

    References
    ----------
    .. [1] Tayal, Coleman, Li, "Bounding the difference between RankRC and RankSVM and application
       to multi-level rare class kernel ranking", 2014, section 5: problem (48), and (47) with
       ``landmarks="all"``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["low", "medium", "high"], [170, 20, 10])
    >>> X = rng.normal(size=(200, 2)) + 2 * (y != "low")[:, None] + 2 * (y == "high")[:, None]
    >>> model = OrdinalRankRC(levels=["low", "medium", "high"]).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model.predict([[0.0, 0.0], [4.0, 4.0]]).tolist()
    ['low', 'high']
    """

    levels: Any = None
    kernel: Any = "gaussian"
    width: Any = "mean"
    lam: float = 2**-8
    landmarks: Any = "rare"
    pair_cost: Any = None

    def _read_target(self, y: Any, sample_weight: Any, n_rows: int) -> OrderedLevels:
        levels = read_levels(y, sample_weight, self.levels, n_rows)
        return OrderedLevels(levels, pair_costs(self.pair_cost, levels))

    def _keep(self, prepared: PreparedRanking, learned: LearnedMachine) -> Self:
        self.thresholds_ = learned.threshold
        return super()._keep(prepared, learned)


@dataclass(eq=False, repr=False)
class OrdinalRankRCCV(RanksLevels, KernelSearch):
    """`OrdinalRankRC` with lam chosen by cross-validation.

    The search, its results and its costs are those of `RankRCCV`.

    Parameters
    ----------
    lams : sequence of float or None, default=None
        Regularisations to try. None is the paper's grid, 2**10, 2**8, ..., 2**-20; with
        ``penalty="l1"`` one that begins where the first landmark comes in, as in `RankRCCV`.
    cv : int, splitter or iterable of (train, test), default=5
        Folds. An integer makes shuffled folds, stratified by level; a level of fewer rows than
        folds is not tested in every one. Splitters see positions of levels as y.
    scoring : "mauc", "vus" or callable, default="mauc"
        What to maximise: a measure of `rareclass.metrics`, or a callable. A callable takes
        (y, scores, sample_weight) with y the position of the level of each row, from 0. Fold means
        decide; among equals the largest lam.
    refit : bool, default=True
        Fit on all rows with the best lam afterwards, which predicting needs.
    max_landmarks, widths, search_rows : as in `RankRCCV`
    levels, kernel, width, landmarks, pair_cost, loss, eps, loss_params, penalty, \
feature_scaling, tol, max_iter, memory, kernel_dtype, n_jobs, random_state, verbose
        As in `OrdinalRankRC`; `random_state` also shuffles the folds. ``width="mean"`` is taken
        over all rows.

    Attributes
    ----------
    best_lam_, best_width_, best_score_, best_estimator_, best_index_, cv_results_, n_splits_
        As in `RankRCCV`.
    thresholds_ : ndarray of shape (n_levels - 1,)
        As in `OrdinalRankRC`, learned on scores of held-out rows: each row scored by the model
        of the fold that held it out.
    calibration_ : LevelCalibration
        From these scores to the probabilities of levels, of `predict_proba`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], [170, 20, 10])
    >>> X = rng.normal(y[:, None], size=(200, 2))
    >>> model = OrdinalRankRCCV(lams=[1.0, 0.01], cv=3).fit(X, y)
    >>> model.best_lam_ in (1.0, 0.01)
    True
    """

    _machine = OrdinalRankRC
    _scorings: ClassVar = {"mauc": mauc, "vus": vus}
    _calibrates = True
    calibration_ = learned("_best.calibration_", "From held-out scores to probabilities.")
    thresholds_ = learned("_best.thresholds_", "Scores at which levels end, from held-out scores.")

    lams: Sequence[float] | None = None
    cv: Any = 5
    scoring: Any = "mauc"
    refit: bool = True
    max_landmarks: int | None = None
    widths: Sequence[float] | None = None
    search_rows: int | None = None
    levels: Any = None
    kernel: Any = "gaussian"
    width: Any = "mean"
    landmarks: Any = "rare"
    pair_cost: Any = None
