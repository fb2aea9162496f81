"""The folds of a cross-validation: rows that are not learned from, and rows that are scored."""

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from rareclass.findings import warn
from rareclass.labels.two_classes import HeldRows


class Fold(NamedTuple):
    """One split of the rows: masks over all of them.

    Rows `held_out` are not learned from, those `tested` are scored.
    """

    held_out: np.ndarray
    tested: np.ndarray


def make_folds(
    cv: Any,
    labels: HeldRows,
    n_rows: int,
    random_state: Any,
    instead: str,
    strata: np.ndarray | None = None,
) -> list[Fold]:
    """The folds that the parameter `cv` of an estimator means.

    An integer makes stratified, shuffled folds, fewer when there are fewer rare rows; without a
    `random_state` they are the same from run to run. `strata` of shape (n_rows,) is what folds
    are stratified by, and what splitters are shown as y: without it, rare or not. `instead` says
    what to use where there are too few rows, such as "RankRC with a lam".

    Raises `ValueError` when there are too few rows, or a fold lacks a class.
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
        splitter = _stratified(int(cv), is_rare, seed, instead)
        by = is_rare if strata is None else strata[kept]
        with warnings.catch_warnings():
            # A level of few rows is not in every fold: as good as can be.
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
    if not folds:
        raise ValueError(f"cv={cv!r} holds no folds: give a number of them, or a list of some.")
    return folds


def _stratified(cv: int, is_rare: np.ndarray, seed: Any, instead: str) -> Any:
    from sklearn.model_selection import StratifiedKFold

    fewest = int(min(is_rare.sum(), (~is_rare).sum()))
    if cv < 2 or fewest < 2:
        raise ValueError(
            f"cross-validation with cv={cv} needs at least 2 folds and 2 rows of each "
            f"class; the smaller class has {fewest}. Use {instead} of your choice."
        )
    if fewest < cv:
        warn(f"only {fewest} rows of the smaller class: {fewest} folds in place of {cv}.")
    return StratifiedKFold(min(cv, fewest), shuffle=True, random_state=seed)


def _check_fold(number: int, fold: Fold, labels: HeldRows) -> None:
    for name, rows in (("rare", labels.rare), ("majority", labels.majority)):
        if fold.held_out[rows].all() or not fold.tested[rows].any():
            side = "training" if fold.held_out[rows].all() else "test"
            raise ValueError(
                f"fold {number + 1} has no {name} row in its {side} part; use stratified folds "
                "(cv=an integer makes them) or fewer of them."
            )
