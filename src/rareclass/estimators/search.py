"""The one search: what is tried is scored on held-out rows, and the best is what predicts.

A method solves and scores its folds, sharing between them what it can; everything after that is
the same for all of them.

1. a score for each fold and candidate (`Scoring` of the rows that the fold held out)
2. the best mean over the folds, or of means that are as good as equal the one that is best by
   another measure; among equals the simplest candidate
3. ``cv_results_`` as scikit-learn's searches name it
4. the best model on all rows, whose threshold is learned on held-out scores: every row scored by
   the model of the fold that held it out
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rareclass.decide.rarity_scores import folds_at_most, given_splits
from rareclass.errors import ErrorKind
from rareclass.estimators.estimator import FitsRows, learned, same_columns
from rareclass.folds.splitters import stratified
from rareclass.labels.two_classes import Labels
from rareclass.metrics import average_precision, roc_auc


class Fold(NamedTuple):
    """One split of the rows: masks over all of them.

    Rows `held_out` are not learned from, those `tested` are scored.
    """

    held_out: np.ndarray
    tested: np.ndarray


def make_folds(
    cv: Any,
    labels: Labels,
    n_rows: int,
    random_state: Any,
    instead: str,
    strata: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> list[Fold]:
    """The folds that the parameter `cv` of an estimator means.

    An integer makes stratified, shuffled folds, fewer when there are fewer rare rows; without a
    `random_state` they are the same from run to run. `strata` of shape (n_rows,) is what folds
    are stratified by, and what splitters are shown as y: without it, rare or not. `groups` are for
    splitters; `instead` says what to use where there are too few rows, such as "RankRC with a lam".

    Raises `ValueError` when there are too few rows, or a fold lacks a class.
    """
    is_rare = labels.is_rare(n_rows)
    by = is_rare if strata is None else strata
    if isinstance(cv, (int, np.integer)):
        kept = labels.kept
        seed = 0 if random_state is None else random_state
        n_folds = folds_at_most(int(cv), labels, f"Use {instead} of your choice.")
        folds = stratified(n_folds, by[kept], seed)
        splits = [(kept[train], kept[test]) for train, test in folds]
    else:
        splits = given_splits(cv, np.empty((n_rows, 0)), by, groups)
    found = []
    for number, (train, test) in enumerate(splits):
        fold = Fold(np.ones(n_rows, dtype=bool), np.zeros(n_rows, dtype=bool))
        fold.held_out[train] = False
        fold.tested[test] = True
        found.append(fold)
        for name, rows in (("rare", labels.rare), ("majority", labels.majority)):
            if fold.held_out[rows].all() or not fold.tested[rows].any():
                side = "training" if fold.held_out[rows].all() else "test"
                raise ErrorKind.TOO_FEW_ROWS.error(
                    f"fold {number + 1} has no {name} row in its {side} part; use stratified folds "
                    "(cv=an integer makes them) or fewer of them."
                )
    if not found:
        raise ErrorKind.SETTING.error(f"cv={cv!r} holds no folds: give a number, or a list.")
    return found


Model = TypeVar("Model", bound=BaseEstimator)
Scoring = Callable[[np.ndarray, np.ndarray, Any], float]

SCORINGS: dict[str, Scoring] = {"roc_auc": roc_auc, "average_precision": average_precision}


def as_scoring(scoring: Any, known: Mapping[str, Scoring] = SCORINGS) -> Scoring:
    """The function of (y, scores, sample_weight) that a parameter names."""
    if callable(scoring):
        return scoring
    if not isinstance(scoring, str) or scoring not in known:
        names = sorted(known)
        raise ErrorKind.SETTING.error(
            f"scoring={scoring!r} is not {f'one of {names}' if len(names) > 1 else repr(names[0])} "
            "or a function of (y, scores, sample_weight)."
        )
    return known[scoring]


class TieBreaker(NamedTuple):
    """Means by another measure, which decide between those that the first one has as good as equal.

    ``means`` of shape (n_candidates,); ``within`` is how far below the best mean of the first
    measure is as good.
    """

    name: str
    means: np.ndarray
    within: float


def best_of(means: np.ndarray, simplest_first: np.ndarray, tie: TieBreaker | None = None) -> int:
    """Position of the largest mean; among equals the one that is smallest in `simplest_first`.

    With a `tie` breaker, of the means as good as the largest the one that is best by its measure.

    >>> means, place = np.array([0.8, 0.899, 0.9, 0.9]), np.array([0, 1, 3, 2])
    >>> best_of(means, place)
    3
    >>> best_of(means, place, TieBreaker("", np.array([0.5, 0.3, 0.2, 0.1]), 0.002))
    1
    """
    within, by = (0.0, means) if tie is None else (tie.within, tie.means)
    return int(max(as_good_as_best(means, within), key=lambda k: (by[k], -simplest_first[k])))


def as_good_as_best(means: np.ndarray, within: float) -> np.ndarray:
    """Positions of the means that are at most so far below the largest."""
    return np.flatnonzero(means >= means.max() - within)


def score_table(scores: np.ndarray) -> dict[str, np.ndarray]:
    """Scores of shape (folds, candidates) as scikit-learn's searches name them."""
    mean = scores.mean(axis=0)
    return {
        **{f"split{k}_test_score": row for k, row in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=0),
        "rank_test_score": ranks(mean),
    }


def ranks(means: np.ndarray) -> np.ndarray:
    """1 for the largest, equals alike."""
    return 1 + (means[None, :] > means[:, None]).sum(axis=1)


class SearchCV(FitsRows, BaseEstimator):
    """Base class of estimators that choose their parameters by cross-validation.

    Subclasses define ``refit``, and leave ``best_estimator_`` where it is true.
    """

    best_estimator_: Any

    def score_samples(self, X: Any) -> np.ndarray:
        """Score of every row by the best model: higher is rarer, or of a higher level."""
        check_is_fitted(self)
        return self._best.score_samples(X)

    n_iter_ = learned(
        "_best.n_iter_", "Iterations of the best model; see ``cv_results_`` for those of the folds."
    )

    @property
    def _best(self) -> Any:
        if "best_estimator_" not in vars(self):
            raise AttributeError(
                f"this {type(self).__name__} has no best_estimator_: fit it first, with refit=True."
            )
        return self.best_estimator_

    def _model(self, kind: type[Model], **chosen: Any) -> Model:
        """A model that is still to be fitted: the parameters that it shares with this search."""
        own, names = self.get_params(deep=False), kind().get_params(deep=False)
        model = kind(**{name: own[name] for name in names if name in own} | chosen)
        if "n_features_in_" in vars(self):
            same_columns(model, self)
        return model

    def _choose(
        self,
        tried: Mapping[str, np.ndarray],
        scores: np.ndarray,
        simplest_first: np.ndarray,
        more: Mapping[str, np.ndarray],
        tie: TieBreaker | None = None,
    ) -> int:
        """Keep ``cv_results_`` and the best candidate's place in it, which is also returned."""
        mean = scores.mean(axis=0)
        self.best_index_ = best_of(mean, simplest_first, tie)
        self.best_score_ = float(mean[self.best_index_])
        beside = {} if tie is None else {f"mean_test_{tie.name}": tie.means}
        self.cv_results_ = {**tried, **score_table(scores), **beside, **more}
        self.n_splits_ = len(scores)
        return self.best_index_
