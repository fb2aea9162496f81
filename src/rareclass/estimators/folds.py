"""What every estimator with built-in cross-validation shares: folds, scorings, the best of many."""

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold

from rareclass.labels.two_classes import HeldRows
from rareclass.metrics import average_precision, roc_auc

Scoring = Callable[[np.ndarray, np.ndarray, Any], float]

SCORINGS: dict[str, Scoring] = {"roc_auc": roc_auc, "average_precision": average_precision}


class Fold(NamedTuple):
    """One split of the rows.

    Attributes
    ----------
    held_out : ndarray of bool of shape (n_rows,)
        Rows that are not learned from.
    tested : ndarray of bool of shape (n_rows,)
        Rows that are scored.
    """

    held_out: np.ndarray
    tested: np.ndarray


def as_scoring(scoring: Any) -> Scoring:
    """The function of (y, scores, sample_weight) that a parameter names."""
    if callable(scoring):
        return scoring
    if scoring not in SCORINGS:
        raise ValueError(
            f"scoring={scoring!r} is not one of {sorted(SCORINGS)} or a function of "
            "(y, scores, sample_weight)."
        )
    return SCORINGS[scoring]


def make_folds(
    cv: Any,
    labels: HeldRows,
    n_rows: int,
    random_state: Any,
    instead: str,
    stacklevel: int = 4,
    strata: np.ndarray | None = None,
) -> list[Fold]:
    """The folds that the parameter `cv` of an estimator means.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        An integer makes stratified, shuffled folds, fewer when there are fewer rare rows.
    labels : Labels or Levels
    n_rows : int
    random_state : int, RandomState or None
        None still gives the same folds from run to run.
    instead : str
        What to use where there are too few rows, such as "RankRC with a lam".
    stacklevel : int
        Of the warning about fewer folds.
    strata : ndarray of shape (n_rows,) or None
        What folds are stratified by, and splitters are shown as y; None: rare or not.

    Raises
    ------
    ValueError
        When there are too few rows, or a fold lacks a class.
    """
    kept = np.sort(np.concatenate([labels.rare, labels.majority]))
    is_rare = np.isin(kept, labels.rare)
    splits: Iterable
    if not (hasattr(cv, "split") or isinstance(cv, (int, np.integer, Iterable))) or isinstance(
        cv, str
    ):
        raise ValueError(f"cv={cv!r} is not a number of folds, a splitter or a list of folds.")
    if isinstance(cv, (int, np.integer)):
        seed = 0 if random_state is None else random_state
        splitter = _stratified(int(cv), is_rare, seed, instead, stacklevel)
        by = is_rare if strata is None else strata[kept]
        with (
            warnings.catch_warnings()
        ):  # a level of few rows is not in every fold: as good as can be
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            splits, to_rows = list(splitter.split(kept, by)), kept
    else:
        y = np.zeros(n_rows, dtype=bool) if strata is None else strata
        if strata is None:
            y[labels.rare] = True
        splits = cv.split(np.empty((n_rows, 0)), y) if hasattr(cv, "split") else cv
        to_rows = np.arange(n_rows)
    folds = []
    for number, (train, test) in enumerate(splits):
        held_out = np.ones(n_rows, dtype=bool)
        held_out[to_rows[train]] = False
        tested = np.zeros(n_rows, dtype=bool)
        tested[to_rows[test]] = True
        folds.append(Fold(held_out, tested))
        _check_fold(number, folds[-1], labels)
    return folds


def best_of(means: np.ndarray, simplest_first: np.ndarray) -> int:
    """Position of the largest mean; among equals the simplest model.

    Parameters
    ----------
    means : ndarray of shape (n,)
    simplest_first : ndarray of shape (n,)
        The smaller the simpler.

    Examples
    --------
    >>> best_of(np.array([0.8, 0.9, 0.9]), np.array([1, 3, 2]))
    2
    """
    return max(range(len(means)), key=lambda k: (means[k], -simplest_first[k]))


def score_table(scores: np.ndarray) -> dict[str, np.ndarray]:
    """Scores of shape (folds, candidates) as scikit-learn's searches name them."""
    mean = scores.mean(axis=0)
    return {
        **{f"split{k}_test_score": row for k, row in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=0),
        "rank_test_score": 1 + (mean[None, :] > mean[:, None]).sum(axis=1),
    }


def _stratified(
    cv: int, is_rare: np.ndarray, seed: Any, instead: str, stacklevel: int
) -> StratifiedKFold:
    fewest = int(min(is_rare.sum(), (~is_rare).sum()))
    if cv < 2 or fewest < 2:
        raise ValueError(
            f"cross-validation with cv={cv} needs at least 2 folds and 2 rows of each "
            f"class; the smaller class has {fewest}. Use {instead} of your choice."
        )
    if fewest < cv:
        warnings.warn(
            f"only {fewest} rows of the smaller class: {fewest} folds in place of {cv}.",
            UserWarning,
            stacklevel=stacklevel,
        )
    return StratifiedKFold(min(cv, fewest), shuffle=True, random_state=seed)


def _check_fold(number: int, fold: Fold, labels: HeldRows) -> None:
    for name, rows in (("rare", labels.rare), ("majority", labels.majority)):
        if fold.held_out[rows].all() or not fold.tested[rows].any():
            side = "training" if fold.held_out[rows].all() else "test"
            raise ValueError(
                f"fold {number + 1} has no {name} row in its {side} part; use stratified folds "
                "(cv=an integer makes them) or fewer of them."
            )
