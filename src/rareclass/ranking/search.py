"""RankRCCV and OrdinalRankRCCV: lam, and the loss, by cross-validation on one kernel.

1. rows are prepared once; folds, losses and lams are problems over the same kernel blocks
2. with `max_landmarks`, the lams whose model of all rows uses few enough landmarks
3. the solutions of all folds, losses and lams, in step; their held-out scores
4. the best pair of loss and lam (see `estimators.search`)
5. the machine of all rows, with a threshold learned on the held-out scores
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rareclass.estimators.door import settings_of
from rareclass.estimators.folds import Fold, make_folds
from rareclass.estimators.search import Scoring, SearchCV, TransformsByBest, as_scoring
from rareclass.findings import warn
from rareclass.parameters import check_whole
from rareclass.progress import track
from rareclass.ranking.fitting import (
    PENALTIES,
    SolverSettings,
    fit_path,
    learned_machines,
    stopped_short,
)
from rareclass.ranking.losses import PairLoss, make_loss
from rareclass.ranking.losses.registry import LossChoice, as_loss_choice
from rareclass.ranking.machine import KernelLearner, KernelMachine
from rareclass.ranking.preparation import Prepared, coefficients_of
from rareclass.ranking.problem import RankingProblem
from rareclass.ranking.solvers.newton import Solution, Step
from rareclass.ranking.solvers.path import solve_paths
from rareclass.ranking.targets import aligned

# Lams that are solved together on all rows, before it is known whether smaller ones are of use.
_LAMS_AT_ONCE = 8

Make = Callable[[], RankingProblem]


class _Grid(NamedTuple):
    """All that is tried: each loss with each lam, and where it was needed the models of all rows.

    ``on_all_rows`` make their problems by loss; ``whole`` are their solutions, by loss and lam.
    """

    losses: list[PairLoss]
    lams: list[float]
    on_all_rows: list[Make]
    whole: list[Solution] | None

    @property
    def by_entry(self) -> np.ndarray:
        """The lam of every candidate."""
        return np.tile(self.lams, len(self.losses))


class KernelSearch(TransformsByBest, SearchCV, KernelLearner):
    """The search over a machine's loss and lam."""

    _machine: ClassVar[type[KernelMachine]]
    _scorings: ClassVar[Mapping[str, Scoring]]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose lam by cross-validation, then fit on all rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `RankRC.fit`.

        Returns
        -------
        estimator
            This one.
        """
        self._check_parameters()
        candidates = self._candidates()
        scoring = as_scoring(self.scoring, self._scorings)
        prepared = self._prepare(X, y, sample_weight, several=True)
        folds = make_folds(
            self.cv,
            prepared.labels,
            prepared.n_rows,
            self.random_state,
            f"{self._machine.__name__} with a lam",
            prepared.target.strata(prepared.n_rows),
        )
        grid = self._grid(prepared, candidates)
        solutions, scores = self._cross_validate(prepared, folds, grid, scoring)
        self._store_results(candidates, grid, solutions, scores)
        self.feature_scales_ = prepared.scales
        self._remember(prepared.target)
        if self.refit:
            held_out = [path[self.best_index_] for path in solutions]
            self.best_estimator_ = self._refit(prepared, folds, grid, held_out)
        return self

    def _check_parameters(self) -> None:
        lams = [] if self.lams is None else [float(lam) for lam in np.ravel(self.lams)]
        if self.lams is not None and not lams:
            raise ValueError("lams is empty: pass at least one number above 0.")
        self._check_solver_parameters(lams)
        most = self.max_landmarks
        if most is None:
            return
        check_whole("max_landmarks", most, "a whole number above 0, or None")
        if not PENALTIES[self.penalty].drops_landmarks:
            raise ValueError(
                f"max_landmarks={most} needs penalty='l1': with {self.penalty!r} every landmark is "
                f"used. Pass landmarks=('rare', {most}) for as many of them."
            )

    def _candidates(self) -> list[LossChoice]:
        if self.losses is None:
            return [LossChoice(self.loss, self.loss_params)]
        is_list = isinstance(self.losses, Sequence) and not isinstance(self.losses, str)
        if not is_list or not len(self.losses):
            raise ValueError(
                f"losses={self.losses!r} must be a list of at least one loss, or None for `loss`."
            )
        if self.loss_params:
            raise ValueError(
                "loss_params belongs to `loss`; give those of losses beside their names: "
                '("pnorm_push", {"power": 4}).'
            )
        return [as_loss_choice(given) for given in self.losses]

    def _grid(self, prepared: Prepared, candidates: Sequence[LossChoice]) -> _Grid:
        """Losses and lams to try; with `max_landmarks` only lams that leave few enough."""
        of_pairs = [make_loss(c.loss, self.eps, c.params) for c in candidates]
        losses = [prepared.target.loss(loss) for loss in of_pairs]
        penalty = PENALTIES[self.penalty]
        on_all_rows: list[Make] = [
            partial(prepared.problem, 1.0, None, loss, penalty.coordinates) for loss in losses
        ]
        given = penalty.lams(on_all_rows) if self.lams is None else np.ravel(self.lams)
        lams = [float(lam) for lam in given]
        whole: list[Solution] | None = None
        if self.max_landmarks is not None:
            lams, whole = self._small_enough(prepared, on_all_rows, lams)
        return _Grid(losses, lams, on_all_rows, whole)

    def _cross_validate(
        self, prepared: Prepared, folds: list[Fold], grid: _Grid, scoring: Scoring
    ) -> tuple[list[list[Solution]], np.ndarray]:
        """The solutions of each fold, by loss and lam, and their held-out scores."""
        n_losses = len(grid.losses)
        total = len(folds) * n_losses * len(grid.lams)
        with prepared.blas_threads(), track("Choosing lam", total, self.verbose) as advance:

            def report(number: int, lam: float, step: Step) -> None:
                fold = number // n_losses + 1
                advance(0, f"fold {fold}, lam {lam:.3g}, iteration {step.iteration}")

            penalty = PENALTIES[self.penalty]
            paths = solve_paths(
                [
                    partial(prepared.problem, 1.0, fold.held_out, loss, penalty.coordinates)
                    for fold in folds
                    for loss in grid.losses
                ],
                grid.lams,
                self.tol,
                self.max_iter,
                prepared.at_once,
                report,
                lambda: advance(1),
                penalty.starts,
            )
            each = range(0, len(paths), n_losses)
            solutions = [list(chain(*paths[k : k + n_losses])) for k in each]
            scores = prepared.fold_scores(folds, solutions, scoring)
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
                more = solve_paths(
                    on_all_rows,
                    lams[start : start + _LAMS_AT_ONCE],
                    self.tol,
                    self.max_iter,
                    prepared.at_once,
                    lambda _, lam, step: advance(1, f"lam {lam:.3g}, iteration {step.iteration}"),
                    starts=PENALTIES[self.penalty].starts,
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
        grid: _Grid,
        solutions: list[list[Solution]],
        scores: np.ndarray,
    ) -> None:
        short = [[stopped_short(s, self.tol) for s in path] for path in solutions]
        if np.any(short):
            warn(
                f"{np.sum(short)} of {np.size(short)} solutions of the folds stopped short of "
                f"tol={self.tol:.1e}; cv_results_['n_stopped_short'] counts them for each lam. "
                "Raise max_iter or tol, or leave out the smallest lams.",
                ConvergenceWarning,
            )
        tried = {
            "loss": np.repeat([str(candidate) for candidate in candidates], len(grid.lams)),
            "lam": grid.by_entry,
        }
        more = {
            "n_stopped_short": np.sum(short, axis=0),
            "mean_n_iter": np.mean([[s.n_iter for s in path] for path in solutions], axis=0),
            "mean_passes": np.mean([[s.passes for s in path] for path in solutions], axis=0),
            "mean_n_landmarks": np.mean([_sizes(path) for path in solutions], axis=0),
        }
        allowed = None
        if grid.whole is not None:
            more["n_landmarks"] = _sizes(grid.whole)
            allowed = np.flatnonzero(self._is_allowed(more["n_landmarks"]))
        # Among equal means the largest lam: the smoothest model.
        best = self._choose(tried, scores, -grid.by_entry, more, allowed)
        self.best_lam_ = grid.lams[best % len(grid.lams)]
        self.best_loss_, self.best_loss_params_ = candidates[best // len(grid.lams)]

    def _refit(
        self, prepared: Prepared, folds: list[Fold], grid: _Grid, held_out: list[Solution]
    ) -> KernelMachine:
        """The best model of all rows; `held_out` are the solutions of its folds."""
        best = self.best_index_ // len(grid.lams)
        model = self._model(
            self._machine,
            lam=self.best_lam_,
            loss=self.best_loss_,
            loss_params=self.best_loss_params_,
        )
        settings = settings_of(SolverSettings, model)
        if grid.whole is None:
            its_own = replace(prepared, loss=grid.losses[best])
            (learned,) = fit_path(its_own, [model.lam], settings, self._machine.__name__)
        else:
            problem, solution = grid.on_all_rows[best](), grid.whole[self.best_index_]
            (learned,) = learned_machines(prepared, problem, [model.lam], [solution], settings)
        parts = [
            prepared.scored(coefficients_of([solution]), tested=fold.tested)
            for solution, fold in zip(held_out, folds, strict=True)
        ]
        # Scores of training rows are no guide: a held row is a landmark of its own model.
        held_out_rows = aligned(parts, prepared.scored(coefficients_of([learned.solution])))
        threshold = prepared.target.threshold(held_out_rows)
        model._learned(prepared, learned._replace(threshold=threshold))
        calibration = prepared.target.calibration(held_out_rows)
        if calibration is not None:
            model.calibration_ = calibration
        return model


def _sizes(solutions: Sequence[Solution]) -> np.ndarray:
    """How many landmarks each of the solutions uses."""
    return np.array([np.count_nonzero(solution.at.coefficients) for solution in solutions])
