"""MIBCCV: C chosen by cross-validation, on moments that are summed once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from numbers import Real
from typing import Any, NamedTuple, Self, cast

import numpy as np

from rareclass.decide import balanced_accuracy_threshold
from rareclass.errors import ErrorKind
from rareclass.estimators.estimator import RankScorer, learn_calibration, learned, read_features
from rareclass.estimators.rankings import linear_scores
from rareclass.estimators.search import Fold, SearchCV, as_scoring, make_folds
from rareclass.labels.two_classes import Labels
from rareclass.machine import track
from rareclass.moments.covariance import CovarianceModel
from rareclass.moments.mibc import MIBC
from rareclass.moments.moments import Moments, MomentSettings, merge, moments_of, remove
from rareclass.moments.solution import (
    Hyperplane,
    MIBCParameters,
    check_memory,
    majority_weight,
    solve_path,
    warn_if_short,
    weighted_labels,
)
from rareclass.parameters import read_numbers, seed_of
from rareclass.rows import RowSource, consecutive, rows_of

PAPER_CS = tuple(10.0 ** np.arange(-4, 6))


@dataclass(eq=False, repr=False)
class MIBCCV(MIBCParameters, RankScorer, SearchCV):
    """`MIBC` with C, and the ridge where asked, chosen by cross-validation.

    The majority is read twice whatever the number of folds, prices and ridges: once for the moments
    of the folds, once for their held-out scores. Folds that hold out each row once are added up to
    the training parts and to the whole; of others, what is held out is taken out of the whole.

    Parameters
    ----------
    Cs : sequence of float, default=10**-4, 10**-3, ..., 10**5
        Prices to try: the paper's grid. np.inf is the hard margin.
    ridges : sequence of float and "auto", or None, default=None
        Ridges to try with each C; None tries `ridge` alone. Where features are many beside the
        majority rows, or the majority falls in groups, (0.01, 0.1, 1, 10) often help.
    cv : as in `RankRCCV`
    scoring : as in `RankRCCV`
        Among equal means the largest ridge is taken, and of these the smallest C.
    refit : bool, default=True
        Fit on all rows with the best C and ridge afterwards, which predicting needs.
    covariance, n_factors, ridge, tol, max_iter, random_state, n_jobs, pos_label
        As in `MIBC`; `random_state` also shuffles the folds.
    verbose : bool or "auto", default="auto"
        Progress on standard error; "auto" when that is a terminal.

    Attributes
    ----------
    best_C_, best_ridge_, best_score_, best_estimator_, best_index_, n_splits_
        The best pair, as in `RankRCCV`.
    cv_results_ : dict of ndarray
        ``C``, ``ridge``, ``split{k}_test_score``, ``mean_test_score``, ``std_test_score``,
        ``rank_test_score``, ``mean_n_iter``, ``largest_gap``; one entry for each pair.
    offset_ : float
        Score above which a row is called rare: the best balanced accuracy over all rows, each
        scored by the model of the fold that held it out; ``specificity_bound_`` is that of this
        threshold.
    calibration_ : Calibration
        From these scores to the probabilities of `predict_proba`.

    Notes
    -----
    Time: as two fits, plus folds x ridges factorisations (d^3) and folds x ridges x Cs solutions,
    each of which starts the next. Memory: the moments of all folds, twice: (2 folds + 4) d^2
    numbers for "full".

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, weights=[0.9], random_state=0, n_redundant=0)
    >>> model = MIBCCV(Cs=[0.01, 1.0], cv=3).fit(X, y)
    >>> model.best_C_ in (0.01, 1.0)
    True
    """

    Cs: Sequence[float] = PAPER_CS
    ridges: Sequence[Any] | None = None
    cv: Any = 10
    scoring: Any = "roc_auc"
    refit: bool = True
    verbose: bool | str = "auto"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose C by cross-validation, then fit on all rows, as `MIBC.fit` does."""
        Cs = sorted(read_numbers("Cs", self.Cs, "a list of numbers above 0", ends="(]"))
        models = self._models(Cs)
        scoring = as_scoring(self.scoring)
        source = read_features(self, X)
        labels = weighted_labels(y, sample_weight, self.pos_label, source.n_rows)
        folds = make_folds(self.cv, labels, source.n_rows, self.random_state, "MIBC with a C")
        rare_rows, seed = source.take(labels.rare), seed_of(self.random_state)
        all_rows = _TrainingTable(source, labels, rare_rows, seed, self.n_jobs)
        first = next(iter(models.values()))
        check_memory(source.n_features, first, 2 * len(folds) + 1)
        whole, trained = _moments_of_folds(all_rows, first.wanted(all_rows.seed), folds)
        paths: list[list[Hyperplane]] = []
        with track("Choosing C", len(folds), self.verbose) as advance:
            for fold, moments in zip(folds, trained, strict=True):
                each = list(models.values())
                paths.append(all_rows.solve(moments, fold, each, Cs, self.tol, self.max_iter))
                advance(1)
            held_out = all_rows.score(folds, paths)
        warn_if_short([solved for path in paths for solved in path], self.tol, self.max_iter)
        scores = [[scoring(p.y, column, p.weight) for column in p.scores.T] for p in held_out]
        tried = {
            "C": np.tile(Cs, len(models)),
            "ridge": np.repeat(np.array([*models], dtype=object), len(Cs)),
        }
        self._choose_candidate(tried, paths, np.array(scores))
        self.classes_, self.pos_label_ = labels.classes, labels.pos_label
        if self.refit:
            self._refit(models[self.best_ridge_], all_rows, whole, held_out)
        return self

    _calibrates = True
    calibration_ = learned("_best.calibration_", "From held-out scores to probabilities.")
    coef_ = learned("_best.coef_", "Weights of the best model, shape (n_features,).")
    intercept_ = learned("_best.intercept_", "``-offset_``.")
    offset_ = learned("_best.offset_", "Threshold of the score, learned on held-out scores.")
    specificity_bound_ = learned(
        "_best.specificity_bound_", "Least share of the majority called majority."
    )

    def _models(self, Cs: list[float]) -> dict[Any, CovarianceModel]:
        """Return a checked covariance model for each ridge."""
        given = [self.ridge] if self.ridges is None else self.ridges
        ridges = [given] if isinstance(given, (str, Real)) else list(given)
        if not ridges:
            raise ErrorKind.SETTING.error("ridges is empty.", "Give numbers, 'auto', or None.")
        return {ridge: self._covariance_model(Cs, ridge) for ridge in ridges}

    def _choose_candidate(
        self, tried: dict[str, np.ndarray], paths: list[list[Hyperplane]], scores: np.ndarray
    ) -> None:
        """Choose by the scores, (folds, candidates), and keep the results."""
        more = {
            "mean_n_iter": np.mean([[solved.n_iter for solved in path] for path in paths], axis=0),
            "largest_gap": np.max([[solved.gap for solved in path] for path in paths], axis=0),
        }
        # Among equal means the largest ridge, and of these the smallest C.
        ridges = np.array([0.0 if ridge == "auto" else float(ridge) for ridge in tried["ridge"]])
        place = np.argsort(np.lexsort((tried["C"], -ridges)))
        best = self._choose(tried, scores, place, more)
        self.best_C_, self.best_ridge_ = float(tried["C"][best]), tried["ridge"][best]

    def _refit(
        self,
        covariance: CovarianceModel,
        all_rows: "_TrainingTable",
        whole: Moments,
        held_out: list["_FoldScores"],
    ) -> None:
        """Fit the best candidate on all rows; its threshold is that of the held-out scores."""
        model = self._model(MIBC, C=self.best_C_, ridge=self.best_ridge_)
        model._seed = all_rows.seed
        model._learned(covariance, all_rows.labels, whole, all_rows.rare_rows)
        y = np.concatenate([fold.y for fold in held_out])
        scores = np.concatenate([fold.scores[:, self.best_index_] for fold in held_out])
        weight = np.concatenate([fold.weight for fold in held_out])
        threshold = balanced_accuracy_threshold(y, scores, weight)
        mean_score = model._solution.mean_score
        model.offset_ = float(mean_score + threshold)
        model.calibration_ = learn_calibration(y, scores + mean_score, weight)
        self.best_estimator_ = model


class _FoldScores(NamedTuple):
    """Held-out rows of a fold, their scores measured from the majority's mean."""

    y: np.ndarray
    scores: np.ndarray  # (n, candidates)
    weight: np.ndarray


class _TrainingTable(NamedTuple):
    """The rows and labels from which folds take their parts."""

    source: RowSource
    labels: Labels
    rare_rows: Any
    seed: int
    n_jobs: int | None

    def moments(self, wanted: MomentSettings, chosen: list[np.ndarray]) -> list[Moments]:
        """Sum the moments of the majority rows in each choice of rows, all in one reading."""
        majority = majority_weight(self.labels, self.source.n_rows)
        found: list[Moments] = []
        for start, stretch in consecutive(self.source):
            stop = start + stretch.n_rows
            more = []
            for choice in chosen:
                weight = np.where(choice[start:stop], majority[start:stop], 0.0)
                rows = np.flatnonzero(weight)
                more.append(moments_of(stretch, wanted, rows, weight[rows], self.n_jobs))
            found = [merge(*pair) for pair in zip(found, more, strict=True)] if found else more
        return found

    def solve(
        self,
        moments: Moments,
        fold: Fold,
        models: list[CovarianceModel],
        Cs: list[float],
        tol: float,
        max_iter: int,
    ) -> list[Hyperplane]:
        """Return the hyperplanes of all models and prices on the training part of a fold."""
        trained = ~fold.held_out[self.labels.rare]
        rare = self.rare_rows[np.flatnonzero(trained)]
        weight = self.labels.rare_weight[trained]
        path: list[Hyperplane] = []
        for model in models:
            fitted = model.model(moments, self.source.is_sparse)
            path += solve_path(fitted, moments.mean, rare, weight, Cs, tol, max_iter, self.seed)
        return path

    def score(self, folds: list[Fold], hyperplanes: list[list[Hyperplane]]) -> list[_FoldScores]:
        """Score the tested rows of each fold by its hyperplanes, all in one reading."""
        weight = majority_weight(self.labels, self.source.n_rows)
        weight[self.labels.rare] = self.labels.rare_weight
        is_rare = self.labels.is_rare(self.source.n_rows)
        coefs = [np.column_stack([solved.coef for solved in each]) for each in hyperplanes]
        means = [np.array([solved.mean_score for solved in each]) for each in hyperplanes]
        parts: list[list[_FoldScores]] = [[] for _ in folds]
        for start, stretch in consecutive(self.source):
            stop = start + stretch.n_rows
            for fold, coef, mean, part in zip(folds, coefs, means, parts, strict=True):
                rows = np.flatnonzero(fold.tested[start:stop] & (weight[start:stop] > 0.0))
                if len(rows):
                    scores = rows_of(stretch, rows, n_jobs=self.n_jobs).map(linear_scores, coef)
                    whole = start + rows
                    part.append(_FoldScores(is_rare[whole], scores - mean, weight[whole]))
        return [_FoldScores(*map(np.concatenate, zip(*part, strict=True))) for part in parts]


def _moments_of_folds(
    all_rows: _TrainingTable, wanted: MomentSettings, folds: list[Fold]
) -> tuple[Moments, Iterator[Moments]]:
    """Return moments of all majority rows, and of the training part of each fold in turn.

    Where each row is held out once, a training part is the folds before and the folds after:
    nothing is subtracted. Other folds are taken out of the whole.
    """
    held = all_rows.moments(wanted, [fold.held_out for fold in folds])
    times = np.sum([fold.held_out[all_rows.labels.majority] for fold in folds], axis=0)
    if not (times == 1).all():
        (whole,) = all_rows.moments(wanted, [np.ones(all_rows.source.n_rows, dtype=bool)])
        return whole, (remove(whole, out) for out in held)
    after = list(accumulate(reversed(held), merge))  # the last fold, the last two, ...

    def each() -> Iterator[Moments]:
        before = None
        for k, out in enumerate(held):
            rest = after[len(held) - 2 - k] if k < len(held) - 1 else None
            yield merge(before, rest) if before and rest else cast(Moments, before or rest)
            before = merge(before, out) if before else out

    return after[-1], each()
