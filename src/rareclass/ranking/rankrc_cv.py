"""RankRCCV: the paper's selection of lam by cross-validation, on one kernel."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from rareclass.decide import balanced_accuracy_threshold
from rareclass.estimators.folds import Fold, Scoring, as_scoring, best_of, make_folds, score_table
from rareclass.estimators.rank_scorer import RankScorer
from rareclass.progress import track
from rareclass.ranking.fitting import fit_path, stopped_short, store_solutions
from rareclass.ranking.losses import PairLoss, make_loss
from rareclass.ranking.losses.registry import LossChoice, as_loss_choice
from rareclass.ranking.penalties import PAPER_LAMS, PENALTIES
from rareclass.ranking.preparation import Prepared, prepare
from rareclass.ranking.problem import RankingProblem
from rareclass.ranking.rankrc import (
    RankRC,
    check_solver_parameters,
)
from rareclass.ranking.solvers.newton import Solution, Step
from rareclass.rows import LabelledRows, header

# Lams that are solved together on all rows, before it is known whether smaller ones are of use.
_LAMS_AT_ONCE = 8

Make = Callable[[], RankingProblem]

__all__ = ["PAPER_LAMS", "RankRCCV"]


class RankRCCV(ClassNamePrefixFeaturesOutMixin, RankScorer, TransformerMixin, BaseEstimator):
    """`RankRC` with lam chosen by cross-validation.

    One kernel serves all folds and lams, which share the passes of the rows. In a fold the
    held-out rows have no weight and held-out rare rows are no landmarks.

    Parameters
    ----------
    lams : sequence of float or None, default=None
        Regularisations to try. None is the paper's grid, 2**10, 2**8, ..., 2**-20; with
        ``penalty="l1"`` it begins where the first landmark comes in, as the data have it:
        :math:`\\lambda_{\\max} 2^{-k/2}` for k = 1/32, 1/16, ..., 1, 2, 3, ..., 32.
    cv : int, splitter or iterable of (train, test), default=10
        Folds. An integer makes stratified, shuffled folds, fewer when there are fewer rare
        rows, so that every fold holds some.
    scoring : {"roc_auc", "average_precision"} or callable, default="roc_auc"
        What to maximise; a callable takes (y, scores, sample_weight) with y true for rare rows.
        Fold means decide; among equals the largest lam.
    refit : bool, default=True
        Fit on all rows with the best lam afterwards, which predicting needs.
    max_landmarks : int or None, default=None
        With ``penalty="l1"``: only lams whose model of all rows uses at most so many landmarks,
        and one at least, are tried. Fewer score faster, and too few rank worse.
    losses : sequence or None, default=None
        Losses to choose from together with lam, in place of `loss` and `loss_params`: names,
        pairs of a name and a dict of its parameters, or PairLoss objects, such as
        ``["smoothed_hinge", ("pnorm_push", {"power": 4})]``.
    kernel, width, landmarks, loss, eps, loss_params, penalty, feature_scaling, tol, max_iter, \
memory, n_jobs, random_state, pos_label, verbose
        As in `RankRC`; `random_state` also shuffles the folds. ``width="mean"`` is taken over all
        rows.

    Attributes
    ----------
    best_lam_ : float
    best_loss_ : str or PairLoss
    best_loss_params_ : dict or None
        The loss chosen, as `losses` or `loss` and `loss_params` gave it.
    best_score_ : float
        Mean score over the folds at the best lam. It is the best of many, so a little high.
    best_estimator_ : RankRC
        Fitted on all rows, when `refit`.
    best_index_ : int
        Position in `cv_results_`: in ``lams`` where there is one loss.
    cv_results_ : dict of ndarray
        ``loss``, ``lam``, ``split{k}_test_score``, ``mean_test_score``, ``std_test_score``,
        ``rank_test_score``, ``n_stopped_short`` (folds whose solver did), ``mean_n_iter``,
        ``mean_passes``, ``mean_n_landmarks`` (in use, over the folds), and with `max_landmarks`
        ``n_landmarks`` (in use by the model of all rows), one entry for each loss and lam.
    n_splits_ : int
    offset_ : float
        Score above which a row is called rare: the best balanced accuracy over all rows, each
        scored by the model of the fold that held it out.
    classes_, pos_label_, n_iter_, feature_scales_, n_features_in_, feature_names_in_
        As in `RankRC`. Learned scales serve all folds: they are found before, on all rows, which
        makes ``best_score_`` a little higher still.

    Raises
    ------
    ValueError
        As `RankRC.fit`, and when some fold holds no rare or no majority row.

    Notes
    -----
    Time: folds x lams solutions over one kernel of rows x landmarks; a pass of the rows serves
    up to 16 of them at once, and held-out scores of all folds and lams take one pass together.

    References
    ----------
    .. [1] Tayal, Coleman, Li, "RankRC", IEEE TKDE 27(12), 2015, section 6.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, weights=[0.9], random_state=0)
    >>> model = RankRCCV(lams=[1.0, 0.01], cv=3).fit(X, y)
    >>> model.best_lam_ in (1.0, 0.01)
    True

    At most three landmarks:

    >>> sparse = RankRCCV(penalty="l1", max_landmarks=3, cv=3).fit(X, y)
    >>> sparse.best_estimator_.n_landmarks_ <= 3
    True
    """

    def __init__(
        self,
        lams: Sequence[float] | None = None,
        cv: Any = 10,
        scoring: Any = "roc_auc",
        refit: bool = True,
        max_landmarks: int | None = None,
        losses: Sequence[Any] | None = None,
        kernel: Any = "gaussian",
        width: Any = "mean",
        landmarks: Any = "rare",
        loss: Any = "smoothed_hinge",
        eps: float = 0.5,
        loss_params: dict[str, Any] | None = None,
        penalty: str = "l2",
        feature_scaling: str | None = None,
        tol: float = 1e-6,
        max_iter: int = 200,
        memory: int | str = "2GiB",
        n_jobs: int | None = None,
        random_state: Any = None,
        pos_label: Any = None,
        verbose: bool | str = "auto",
    ) -> None:
        self.lams = lams
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.max_landmarks = max_landmarks
        self.losses = losses
        self.kernel = kernel
        self.width = width
        self.landmarks = landmarks
        self.loss = loss
        self.eps = eps
        self.loss_params = loss_params
        self.penalty = penalty
        self.feature_scaling = feature_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.pos_label = pos_label
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose lam by cross-validation, then fit on all rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `RankRC.fit`.

        Returns
        -------
        RankRCCV
            This estimator.
        """
        self._check_parameters()
        candidates = self._candidates()
        scoring = as_scoring(self.scoring)
        validate_data(self, header(X), skip_check_array=True)
        prepared = prepare(self, X, y, sample_weight, several=True)
        folds = make_folds(
            self.cv, prepared.labels, prepared.n_rows, self.random_state, "RankRC with a lam"
        )
        losses = [make_loss(c.loss, self.eps, c.params) for c in candidates]
        penalty = PENALTIES[self.penalty]
        on_all_rows = [
            partial(prepared.problem, 1.0, None, loss, penalty.coordinates) for loss in losses
        ]
        given = penalty.lams(on_all_rows) if self.lams is None else np.ravel(self.lams)
        lams = [float(lam) for lam in given]
        whole: list[Solution] | None = None
        if self.max_landmarks is not None:
            lams, whole = self._small_enough(prepared, on_all_rows, lams)
        solutions, scores = self._cross_validate(prepared, folds, losses, lams, scoring)
        self._store_results(candidates, lams, solutions, scores, whole)
        self.n_splits_ = len(folds)
        self.feature_scales_ = prepared.scales
        self.classes_, self.pos_label_ = prepared.labels.classes, prepared.labels.pos_label
        if self.refit:
            best, loss = self.best_index_, losses[self.best_index_ // len(lams)]
            model = self._best_model()
            if whole is None:
                fit_path([model], replace(prepared, loss=loss), self.verbose)
            else:
                problem = on_all_rows[best // len(lams)]()
                store_solutions([model], prepared, problem, [whole[best]])
            model.offset_ = _held_out_threshold(prepared, folds, [path[best] for path in solutions])
            self.best_estimator_ = model
        return self

    def fit_rows(self, rows: LabelledRows) -> Self:
        """Choose lam and fit on rows that live on disk; see `RankRC.fit_rows`."""
        rows = LabelledRows.to_learn_from(rows)
        return self.fit(rows, rows.y, rows.sample_weight)

    @property
    def offset_(self) -> float:
        """Score above which a row is called rare, learned on held-out scores."""
        return self._best().offset_

    def score_samples(self, X: Any) -> np.ndarray:
        """Rarity score of every row by the best model: higher is more like the rare class."""
        check_is_fitted(self)
        return self._best().score_samples(X)

    def transform(self, X: Any) -> np.ndarray:
        """Nyström features of every row by the best model; see `RankRC.transform`."""
        check_is_fitted(self)
        return self._best().transform(X)

    @property
    def n_iter_(self) -> int:
        """Newton iterations of the best model; see ``cv_results_`` for those of the folds."""
        return self._best().n_iter_

    @property
    def _n_features_out(self) -> int:
        return self._best()._n_features_out

    def _best(self) -> RankRC:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                "this RankRCCV has no best_estimator_: fit it first, with refit=True."
            )
        return self.best_estimator_

    def _check_parameters(self) -> None:
        lams = [] if self.lams is None else [float(lam) for lam in np.ravel(self.lams)]
        if self.lams is not None and not lams:
            raise ValueError("lams is empty: pass at least one number above 0.")
        check_solver_parameters(self, lams)
        most = self.max_landmarks
        if most is None:
            return
        if not isinstance(most, (int, np.integer)) or isinstance(most, bool) or most < 1:
            raise ValueError(f"max_landmarks={most!r} must be a whole number above 0, or None.")
        if not PENALTIES[self.penalty].drops_landmarks:
            raise ValueError(
                f"max_landmarks={most} needs penalty='l1': with {self.penalty!r} every landmark is "
                f"used. Pass landmarks=('rare', {most}) for as many of them."
            )

    def _candidates(self) -> list[LossChoice]:
        if self.losses is None:
            return [LossChoice(self.loss, self.loss_params)]
        if isinstance(self.losses, str) or not len(self.losses):
            raise ValueError(
                f"losses={self.losses!r} must be a list of at least one loss, or None for `loss`."
            )
        if self.loss_params:
            raise ValueError(
                "loss_params belongs to `loss`; give those of losses beside their names: "
                '("pnorm_push", {"power": 4}).'
            )
        return [as_loss_choice(given) for given in self.losses]

    def _cross_validate(
        self,
        prepared: Prepared,
        folds: list[Fold],
        losses: list[PairLoss],
        lams: list[float],
        scoring: Scoring,
    ) -> tuple[list[list[Solution]], np.ndarray]:
        """The solutions of each fold, by loss and lam, and their held-out scores."""
        total = len(folds) * len(losses) * len(lams)
        with prepared.blas_threads(), track("Choosing lam", total, self.verbose) as advance:

            def report(number: int, lam: float, step: Step) -> None:
                fold = number // len(losses) + 1
                advance(0, f"fold {fold}, lam {lam:.3g}, iteration {step.iteration}")

            penalty = PENALTIES[self.penalty]
            paths = penalty.solve_paths(
                [
                    partial(prepared.problem, 1.0, held_out, loss, penalty.coordinates)
                    for held_out, _ in folds
                    for loss in losses
                ],
                lams,
                self.tol,
                self.max_iter,
                prepared.at_once,
                report,
                lambda: advance(1),
            )
            each = range(0, len(paths), len(losses))
            solutions = [list(chain(*paths[k : k + len(losses)])) for k in each]
            scores = np.empty((len(folds), len(losses) * len(lams)))
            for k, (path, (_, tested)) in enumerate(zip(solutions, folds, strict=True)):
                y, held_out_scores, weight = _held_out(prepared, path, tested)
                scores[k] = [scoring(y, column, weight) for column in held_out_scores.T]
        return solutions, scores

    def _small_enough(
        self, prepared: Prepared, on_all_rows: Sequence[Make], lams: list[float]
    ) -> tuple[list[float], list[Solution]]:
        """The lams with which some loss uses few enough landmarks on all rows.

        And the solutions there, by loss and lam.
        """
        lams = sorted(lams, reverse=True)
        paths: list[list[Solution]] = [[] for _ in on_all_rows]
        with prepared.blas_threads(), track("Counting landmarks", None, self.verbose) as advance:
            for start in range(0, len(lams), _LAMS_AT_ONCE):
                more = PENALTIES[self.penalty].solve_paths(
                    on_all_rows,
                    lams[start : start + _LAMS_AT_ONCE],
                    self.tol,
                    self.max_iter,
                    prepared.at_once,
                    lambda _, lam, step: advance(1, f"lam {lam:.3g}, iteration {step.iteration}"),
                )
                paths = [path + solutions for path, solutions in zip(paths, more, strict=True)]
                # From here on there are only more of them.
                if all((_sizes(solutions) > self.max_landmarks).all() for solutions in more):
                    break
        sizes = np.array([_sizes(path) for path in paths])
        kept = np.flatnonzero(self._is_allowed(sizes).any(axis=0))
        if not len(kept):
            used = np.where(sizes > 0, sizes, np.iinfo(int).max).min(axis=0)
            fewest = int(used.argmin())
            raise ValueError(
                f"no lam leaves 1 to {self.max_landmarks} landmarks: lam={lams[fewest]:.3g} uses "
                f"{used[fewest]}, the fewest. Raise max_landmarks, or pass more lams around it."
            )
        return [lams[k] for k in kept], [path[k] for path in paths for k in kept]

    def _is_allowed(self, sizes: np.ndarray) -> np.ndarray:
        """Whether models that use so many landmarks may be chosen."""
        return (sizes > 0) & (sizes <= self.max_landmarks)

    def _store_results(
        self,
        candidates: list[LossChoice],
        lams: list[float],
        solutions: list[list[Solution]],
        scores: np.ndarray,
        whole: list[Solution] | None,
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
        by_entry = np.tile(lams, len(candidates))
        sizes = None if whole is None else _sizes(whole)
        allowed = np.arange(len(mean)) if sizes is None else np.flatnonzero(self._is_allowed(sizes))
        best = int(allowed[best_of(mean[allowed], -by_entry[allowed])])
        self.best_index_, self.best_lam_ = best, lams[best % len(lams)]
        self.best_loss_, self.best_loss_params_ = candidates[best // len(lams)]
        self.best_score_ = float(mean[best])
        self.cv_results_ = {
            "loss": np.repeat([str(candidate) for candidate in candidates], len(lams)),
            "lam": by_entry,
            **score_table(scores),
            "n_stopped_short": np.sum(short, axis=0),
            "mean_n_iter": np.mean([[s.n_iter for s in path] for path in solutions], axis=0),
            "mean_passes": np.mean([[s.passes for s in path] for path in solutions], axis=0),
            "mean_n_landmarks": np.mean([_sizes(path) for path in solutions], axis=0),
        }
        if sizes is not None:
            self.cv_results_["n_landmarks"] = sizes

    def _best_model(self) -> RankRC:
        """A model that is still to be fitted."""
        own = self.get_params(deep=False)
        names = RankRC().get_params(deep=False)
        own |= {"loss": self.best_loss_, "loss_params": self.best_loss_params_}
        model = RankRC(lam=self.best_lam_, **{name: own[name] for name in names if name in own})
        model.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model


def _sizes(solutions: Sequence[Solution]) -> np.ndarray:
    """How many landmarks each of the solutions uses."""
    return np.array([np.count_nonzero(solution.at.coefficients) for solution in solutions])


def _held_out(
    prepared: Prepared, solutions: list[Solution], tested: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """(y, scores, weight) of the tested rows, a column of scores a solution."""
    labels = prepared.labels
    coefficients = np.column_stack([solution.at.coefficients for solution in solutions])
    rare, majority = prepared.training_scores(coefficients, tested=tested)
    y = np.repeat([True, False], [len(rare), len(majority)])
    weight = None
    if labels.majority_weight is not None:
        weight = np.concatenate(
            [
                labels.rare_weight[tested[labels.rare]],
                labels.majority_weight[tested[labels.majority]],
            ]
        )
    return y, np.concatenate([rare, majority]), weight


def _held_out_threshold(prepared: Prepared, folds: list[Fold], solutions: list[Solution]) -> float:
    """The threshold of best balanced accuracy when every row is scored by its own fold's model.

    Scores of training rows are no guide: a rare row is a landmark of its own model.
    """
    parts = [
        _held_out(prepared, [solution], tested)
        for solution, (_, tested) in zip(solutions, folds, strict=True)
    ]
    y = np.concatenate([part[0] for part in parts])
    scores = np.concatenate([part[1][:, 0] for part in parts])
    weights = [part[2] for part in parts if part[2] is not None]
    return balanced_accuracy_threshold(y, scores, np.concatenate(weights) if weights else None)
