"""Stratified folds, each with rare rows to learn from and to be judged by."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold

from rareclass.errors import InputError, counted
from rareclass.folds.rare_rows import rare_rows
from rareclass.labels.two_classes import label_array
from rareclass.parameters import check_whole


class RareStratifiedKFold(BaseCrossValidator):
    """Shuffled stratified folds whose training and test parts all hold rare rows.

    scikit-learn's `StratifiedKFold`, which deals each label's rows evenly, behind a check: where
    some fold would hold no rare row it warns, or says nothing, and a score of that fold is
    undefined. Here that is an error which says how many folds there can be. A number that is no
    number of rows to a few rare ones says little by itself; `repeats` deals anew so many times.

    Parameters
    ----------
    n_splits : int, default=5
        Folds, at least 2 and at most the number of rare rows.
    repeats : int, default=1
        How often all rows are dealt to folds anew. With more than 1 the test parts overlap, which
        `cross_val_score` takes and `cross_val_predict` does not.
    random_state : int, default=0
        Seeds the dealing; repeat r is dealt by ``random_state + r``.
    pos_label : label or None, default=None
        The rare class; None is the label of fewest rows.

    Raises
    ------
    InputError
        From `split`: fewer rare rows, or fewer other rows, than folds; one label only.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.arange(20) < 3
    >>> folds = list(RareStratifiedKFold(3, repeats=2).split(np.empty((20, 0)), y))
    >>> len(folds), [int(y[test].sum()) for _, test in folds]
    (6, [1, 1, 1, 1, 1, 1])
    """

    def __init__(
        self, n_splits: int = 5, *, repeats: int = 1, random_state: int = 0, pos_label: Any = None
    ) -> None:
        check_whole("n_splits", n_splits, "a whole number of at least 2", 2)
        check_whole("repeats", repeats)
        check_whole("random_state", random_state, "a whole number of at least 0", 0)
        self.n_splits = n_splits
        self.repeats = repeats
        self.random_state = random_state
        self.pos_label = pos_label

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """How many pairs `split` gives: ``n_splits * repeats``."""
        return self.n_splits * self.repeats

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row numbers to learn from and to test, a pair for each fold and repeat.

        Parameters
        ----------
        X : ignored
        y : array-like of shape (n_rows,)
            Two labels or more; each is dealt evenly.
        groups : ignored
        """
        is_rare = rare_rows(y, self.pos_label)
        for name, number in (("rare", is_rare.sum()), ("other", (~is_rare).sum())):
            if number < self.n_splits:
                raise InputError(
                    f"{counted(number, f'{name} row')} cannot be in the test part of each of "
                    f"{self.n_splits} folds.",
                    f"Use n_splits={number}, with repeats= for more."
                    if number > 1
                    else f"A cross-validation needs 2 {name} rows.",
                )
        # By rare or not, where labels of few rows beside the rare one would be warned of.
        codes = np.unique(label_array(y), return_inverse=True)[1]
        strata = codes if np.bincount(codes).min() >= self.n_splits else is_rare
        for repeat in range(self.repeats):
            seed = self.random_state + repeat
            splitter = StratifiedKFold(self.n_splits, shuffle=True, random_state=seed)
            yield from splitter.split(np.empty((len(strata), 0)), strata)
