"""OrdinalRankRCCV: lam of the ordinal ranking machine by cross-validation, on one kernel."""

from collections.abc import Sequence
from typing import Any, ClassVar

from rareclass.estimators.search import of_best
from rareclass.metrics import mauc
from rareclass.ranking.machine import RanksLevels
from rareclass.ranking.ordinal_rankrc import OrdinalRankRC
from rareclass.ranking.search import KernelSearch


class OrdinalRankRCCV(RanksLevels, KernelSearch):
    """`OrdinalRankRC` with lam chosen by cross-validation.

    One kernel serves all folds and lams, which share the passes of the rows. In a fold the
    held-out rows have no weight and are no landmarks.

    Parameters
    ----------
    lams : sequence of float or None, default=None
        Regularisations to try. None is the paper's grid, 2**10, 2**8, ..., 2**-20; with
        ``penalty="l1"`` one that begins where the first landmark comes in, as in `RankRCCV`.
    cv : int, splitter or iterable of (train, test), default=5
        Folds. An integer makes shuffled folds, stratified by level; a level of fewer rows than
        folds is not tested in every one. Splitters see positions of levels as y.
    scoring : "mauc" or callable, default="mauc"
        What to maximise; a callable takes (y, scores, sample_weight) with y the position of the
        level of each row, from 0. Fold means decide; among equals the largest lam.
    refit : bool, default=True
        Fit on all rows with the best lam afterwards, which predicting needs.
    max_landmarks, losses, widths, search_rows : as in `RankRCCV`
    levels, kernel, width, landmarks, pair_cost, loss, eps, loss_params, penalty, \
feature_scaling, tol, max_iter, memory, kernel_dtype, n_jobs, random_state, verbose
        As in `OrdinalRankRC`; `random_state` also shuffles the folds. ``width="mean"`` is taken
        over all rows.

    Attributes
    ----------
    best_lam_ : float
    best_width_, best_loss_, best_loss_params_ : as in `RankRCCV`
    best_score_ : float
        Mean score over the folds at the best lam. It is the best of many, so a little high.
    best_estimator_ : OrdinalRankRC
        Fitted on all rows, when `refit`.
    best_index_ : int
        Position in `cv_results_`: in ``lams`` where there is one loss.
    cv_results_ : dict of ndarray
        As in `RankRCCV`, one entry for each loss and lam.
    n_splits_ : int
    thresholds_ : ndarray of shape (n_levels - 1,)
        As in `OrdinalRankRC`, learned on scores of held-out rows: each row scored by the model
        of the fold that held it out.
    calibration_ : LevelCalibration
        From these scores to the probabilities of levels, of `predict_proba`.
    classes_, majority_level_, n_iter_, feature_scales_, n_features_in_, feature_names_in_
        As in `OrdinalRankRC`.

    Raises
    ------
    ValueError
        As `OrdinalRankRC.fit`, and when some fold holds no row of the majority level or none of
        the others.

    Notes
    -----
    Time: folds x lams solutions over one kernel of rows x landmarks; a pass of the rows serves up
    to 16 of them at once, and held-out scores of all lams of a fold take one pass together.

    References
    ----------
    .. [1] Tayal, Coleman, Li, 2014, as in `OrdinalRankRC`, section 5.

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
    _scorings: ClassVar = {"mauc": mauc}
    _calibrates = True
    calibration_ = of_best("calibration_", "From scores to probabilities, from held-out scores.")
    thresholds_ = of_best("thresholds_", "Scores at which levels end, learned on held-out scores.")

    def __init__(
        self,
        lams: Sequence[float] | None = None,
        cv: Any = 5,
        scoring: Any = "mauc",
        refit: bool = True,
        max_landmarks: int | None = None,
        losses: Sequence[Any] | None = None,
        widths: Sequence[float] | None = None,
        search_rows: int | None = None,
        levels: Any = None,
        kernel: Any = "gaussian",
        width: Any = "mean",
        landmarks: Any = "rare",
        pair_cost: Any = None,
        loss: Any = "smoothed_hinge",
        eps: float = 0.5,
        loss_params: dict[str, Any] | None = None,
        penalty: str = "l2",
        feature_scaling: str | None = None,
        tol: float | str = "auto",
        max_iter: int = 200,
        memory: int | str = "2GiB",
        kernel_dtype: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | str = "auto",
    ) -> None:
        self.lams = lams
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.max_landmarks = max_landmarks
        self.losses = losses
        self.widths = widths
        self.search_rows = search_rows
        self.levels = levels
        self.kernel = kernel
        self.width = width
        self.landmarks = landmarks
        self.pair_cost = pair_cost
        self.loss = loss
        self.eps = eps
        self.loss_params = loss_params
        self.penalty = penalty
        self.feature_scaling = feature_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory
        self.kernel_dtype = kernel_dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
