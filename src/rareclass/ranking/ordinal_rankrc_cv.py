"""OrdinalRankRCCV: lam of the ordinal ranking machine by cross-validation, on one kernel."""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from rareclass.decide.level_thresholds import thresholds_of_codes
from rareclass.estimators.folds import Fold, Scoring, best_of, make_folds, score_table
from rareclass.labels.levels import Levels
from rareclass.metrics import mauc
from rareclass.progress import track
from rareclass.ranking.fitting import stopped_short
from rareclass.ranking.ordinal_rankrc import (
    OrdinalRankRC,
    fit_ordinal,
    prepare_ordinal,
    scored_levels,
)
from rareclass.ranking.ordinal_scorer import OrdinalScorer
from rareclass.ranking.penalties import PAPER_LAMS
from rareclass.ranking.preparation import Prepared
from rareclass.ranking.rankrc import check_solver_parameters
from rareclass.ranking.solvers.newton import Solution, Step
from rareclass.ranking.solvers.path import solve_paths
from rareclass.rows import LabelledRows, header


class OrdinalRankRCCV(
    ClassNamePrefixFeaturesOutMixin, OrdinalScorer, TransformerMixin, BaseEstimator
):
    """`OrdinalRankRC` with lam chosen by cross-validation.

    One kernel serves all folds and lams, which share the passes of the rows. In a fold the
    held-out rows have no weight and are no landmarks.

    Parameters
    ----------
    lams : sequence of float, default=2**10, 2**8, ..., 2**-20
        Regularisations to try: the paper's grid.
    cv : int, splitter or iterable of (train, test), default=5
        Folds. An integer makes shuffled folds, stratified by level; a level of fewer rows than
        folds is not tested in every one. Splitters see positions of levels as y.
    scoring : "mauc" or callable, default="mauc"
        What to maximise; a callable takes (y, scores, sample_weight) with y the position of the
        level of each row, from 0. Fold means decide; among equals the largest lam.
    refit : bool, default=True
        Fit on all rows with the best lam afterwards, which predicting needs.
    levels, kernel, width, landmarks, pair_cost, loss, eps, loss_params, tol, max_iter, memory, \
n_jobs, random_state, verbose
        As in `OrdinalRankRC`; `random_state` also shuffles the folds. ``width="mean"`` is taken
        over all rows.

    Attributes
    ----------
    best_lam_ : float
    best_score_ : float
        Mean score over the folds at the best lam. It is the best of many, so a little high.
    best_estimator_ : OrdinalRankRC
        Fitted on all rows, when `refit`.
    best_index_ : int
        Position in ``lams``.
    cv_results_ : dict of ndarray
        ``lam``, ``split{k}_test_score``, ``mean_test_score``, ``std_test_score``,
        ``rank_test_score``, ``n_stopped_short`` (folds whose solver did), ``mean_n_iter``,
        ``mean_passes``, one entry for each lam.
    n_splits_ : int
    thresholds_ : ndarray of shape (n_levels - 1,)
        As in `OrdinalRankRC`, learned on scores of held-out rows: each row scored by the model
        of the fold that held it out.
    classes_, majority_level_, n_iter_, n_features_in_, feature_names_in_
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
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], [170, 20, 10])
    >>> X = rng.normal(y[:, None], size=(200, 2))
    >>> model = OrdinalRankRCCV(lams=[1.0, 0.01], cv=3).fit(X, y)
    >>> model.best_lam_ in (1.0, 0.01)
    True
    """

    def __init__(
        self,
        lams: Sequence[float] = PAPER_LAMS,
        cv: Any = 5,
        scoring: Any = "mauc",
        refit: bool = True,
        levels: Any = None,
        kernel: Any = "gaussian",
        width: Any = "mean",
        landmarks: Any = "rare",
        pair_cost: Any = None,
        loss: Any = "smoothed_hinge",
        eps: float = 0.5,
        loss_params: dict[str, Any] | None = None,
        tol: float = 1e-6,
        max_iter: int = 200,
        memory: int | str = "2GiB",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | str = "auto",
    ) -> None:
        self.lams = lams
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.levels = levels
        self.kernel = kernel
        self.width = width
        self.landmarks = landmarks
        self.pair_cost = pair_cost
        self.loss = loss
        self.eps = eps
        self.loss_params = loss_params
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose lam by cross-validation, then fit on all rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `OrdinalRankRC.fit`.

        Returns
        -------
        OrdinalRankRCCV
            This estimator.
        """
        lams = [float(lam) for lam in np.ravel(self.lams)]
        if not lams:
            raise ValueError("lams is empty: pass at least one number above 0.")
        check_solver_parameters(self, lams)
        scoring = _as_scoring(self.scoring)
        validate_data(self, header(X), skip_check_array=True)
        prepared = prepare_ordinal(self, X, y, sample_weight, several=True)
        levels = prepared.labels
        folds = make_folds(
            self.cv,
            levels,
            prepared.n_rows,
            self.random_state,
            "OrdinalRankRC with a lam",
            strata=_codes_of_rows(levels, prepared.n_rows),
        )
        solutions, scores = self._cross_validate(prepared, folds, lams, scoring)
        self._store_results(lams, solutions, scores)
        self.n_splits_ = len(folds)
        self.classes_ = levels.levels
        self.majority_level_ = levels.majority_label
        if self.refit:
            self._refit(prepared, folds, [path[self.best_index_] for path in solutions])
        return self

    def fit_rows(self, rows: LabelledRows) -> Self:
        """Choose lam and fit on rows that live on disk; see `RankRC.fit_rows`."""
        rows = LabelledRows.to_learn_from(rows)
        return self.fit(rows, rows.y, rows.sample_weight)

    @property
    def thresholds_(self) -> np.ndarray:
        """Scores at which levels end, learned on held-out scores."""
        return self._best().thresholds_

    @property
    def n_iter_(self) -> int:
        """Newton iterations of the best model; see ``cv_results_`` for those of the folds."""
        return self._best().n_iter_

    def score_samples(self, X: Any) -> np.ndarray:
        """Rank of every row by the best model: higher is more like the highest level."""
        check_is_fitted(self)
        return self._best().score_samples(X)

    def transform(self, X: Any) -> np.ndarray:
        """Nyström features of every row by the best model; see `RankRC.transform`."""
        check_is_fitted(self)
        return self._best().transform(X)

    @property
    def _n_features_out(self) -> int:
        return self._best()._n_features_out

    def _best(self) -> OrdinalRankRC:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                "this OrdinalRankRCCV has no best_estimator_: fit it first, with refit=True."
            )
        return self.best_estimator_

    def _cross_validate(
        self, prepared: Prepared[Levels], folds: list[Fold], lams: list[float], scoring: Scoring
    ) -> tuple[list[list[Solution]], np.ndarray]:
        """The path of each fold, and held-out scores of shape (folds, lams)."""
        total = len(folds) * len(lams)
        with prepared.blas_threads(), track("Choosing lam", total, self.verbose) as advance:

            def report(fold: int, lam: float, step: Step) -> None:
                advance(0, f"fold {fold + 1}, lam {lam:.3g}, iteration {step.iteration}")

            solutions = solve_paths(
                [partial(prepared.problem, 1.0, held_out) for held_out, _ in folds],
                lams,
                self.tol,
                self.max_iter,
                prepared.at_once,
                report,
                lambda: advance(1),
            )
            scores = np.empty((len(folds), len(lams)))
            for k, (path, (_, tested)) in enumerate(zip(solutions, folds, strict=True)):
                codes, of_path, weight = scored_levels(prepared, path, tested=tested)
                scores[k] = [scoring(codes, column, weight) for column in of_path.T]
        return solutions, scores

    def _store_results(
        self, lams: list[float], solutions: list[list[Solution]], scores: np.ndarray
    ) -> None:
        mean = scores.mean(axis=0)
        short = [[stopped_short(s, self.tol) for s in path] for path in solutions]
        if np.any(short):
            warnings.warn(
                f"{np.sum(short)} of {np.size(short)} solutions of the folds stopped short of "
                f"tol={self.tol:.1e}; cv_results_['n_stopped_short'] counts them for each lam. "
                "Raise max_iter or tol, or leave out the smallest lams.",
                ConvergenceWarning,
                stacklevel=3,
            )
        # Among equal means the largest lam: the smoothest model.
        best = best_of(mean, -np.array(lams))
        self.best_index_, self.best_lam_ = best, lams[best]
        self.best_score_ = float(mean[best])
        self.cv_results_ = {
            "lam": np.array(lams),
            **score_table(scores),
            "n_stopped_short": np.sum(short, axis=0),
            "mean_n_iter": np.mean([[s.n_iter for s in path] for path in solutions], axis=0),
            "mean_passes": np.mean([[s.passes for s in path] for path in solutions], axis=0),
        }

    def _refit(
        self, prepared: Prepared[Levels], folds: list[Fold], solutions: list[Solution]
    ) -> None:
        own = self.get_params(deep=False)
        names = OrdinalRankRC().get_params(deep=False)
        model = OrdinalRankRC(
            lam=self.best_lam_, **{name: own[name] for name in names if name in own}
        )
        model.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        fit_ordinal(model, prepared)
        model.thresholds_ = _held_out_thresholds(prepared, folds, solutions)
        self.best_estimator_ = model


def _as_scoring(scoring: Any) -> Scoring:
    if isinstance(scoring, str) and scoring == "mauc":
        return mauc
    if not callable(scoring):
        raise ValueError(
            f"scoring={scoring!r} is not 'mauc' or a function of (y, scores, sample_weight)."
        )
    return scoring


def _codes_of_rows(levels: Levels, n_rows: int) -> np.ndarray:
    codes = np.full(n_rows, levels.majority_level)
    codes[levels.rare] = levels.rare_codes
    return codes


def _held_out_thresholds(
    prepared: Prepared[Levels], folds: list[Fold], solutions: list[Solution]
) -> np.ndarray:
    """The best thresholds when every row is scored by its own fold's model.

    Scores of training rows are no guide: held rows are landmarks of their own model.
    """
    parts = [
        scored_levels(prepared, [solution], tested=tested)
        for solution, (_, tested) in zip(solutions, folds, strict=True)
    ]
    codes = np.concatenate([part[0] for part in parts])
    scores = np.concatenate([part[1][:, 0] for part in parts])
    weights = [part[2] for part in parts if part[2] is not None]
    return thresholds_of_codes(
        codes, scores, np.concatenate(weights) if weights else None, len(prepared.labels.levels)
    )
