"""Folds that keep the rows of a group together, each with rare rows."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from rareclass.errors import InputError, counted
from rareclass.folds.dealing import dealt_with_both, most_folds
from rareclass.folds.places import places
from rareclass.folds.rare_rows import rare_rows
from rareclass.labels.two_classes import plain
from rareclass.parameters import check_whole


class RareGroupKFold(BaseCrossValidator):
    """Folds by group (customer, patient, machine) whose parts all hold rare and other rows.

    Groups with rare rows are dealt first, the one with the most rare rows to the fold with the
    fewest; groups without even out the other rows. Where that would leave a fold without a class
    though another dealing would not, the other one is made. What cannot be done by any dealing is
    an error that says how many folds there can be.

    Parameters
    ----------
    n_splits : int, default=5
        Folds, at least 2.
    repeats : int, default=1
        How often the groups are dealt anew; groups of equally many rows come in another order.
    random_state : int, default=0
        Seeds the order; repeat r by ``random_state + r``.
    pos_label : label or None, default=None
        The rare class; None is the label of fewest rows.

    Raises
    ------
    InputError
        From `split`: no groups given, a row without one, one group with all rare rows, or fewer
        groups with rare rows than folds.

    Examples
    --------
    >>> import numpy as np
    >>> customer = np.repeat(np.arange(10), 4)
    >>> y = (np.arange(40) % 4 == 0) & (customer < 3)
    >>> [np.unique(customer[test][y[test]]).tolist()
    ...  for _, test in RareGroupKFold(3).split(np.empty((40, 0)), y, customer)]
    [[2], [0], [1]]
    """

    __metadata_request__split: ClassVar = {"groups": True}

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
        groups : array-like of shape (n_rows,)
            Group of each row: numbers, words or dates.
        """
        is_rare = rare_rows(y, self.pos_label)
        if groups is None:
            raise InputError(
                "the 'groups' parameter should not be None: RareGroupKFold keeps groups together.",
                "Pass groups=, one value a row, or use RareStratifiedKFold.",
            )
        group = places(groups, len(is_rare), "groups")
        self._check(is_rare, group, np.asarray(groups))
        for repeat in range(self.repeats):
            fold = dealt_with_both(self.n_splits, self.random_state + repeat, is_rare, group)
            for k in range(self.n_splits):
                yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def _check(self, is_rare: np.ndarray, group: np.ndarray, given: np.ndarray) -> None:
        for name, rows in (("rare", is_rare), ("other", ~is_rare)):
            held = np.unique(group[rows])
            if len(held) == 1:
                raise InputError(
                    f"the group {plain(given[int(np.argmax(rows))])!r} holds all "
                    f"{counted(rows.sum(), f'{name} row')}: no fold could learn from some and "
                    "test others.",
                    "Use finer groups, or RareStratifiedKFold, whose estimate will be too good "
                    "where rows of a group are alike.",
                )
        possible = most_folds(is_rare, group)
        if possible < self.n_splits:
            with_rare = len(np.unique(group[is_rare]))
            raise InputError(
                f"{counted(with_rare, 'group holds', 'groups hold')} rare rows: they make "
                f"{counted(possible, 'fold')} with rows of both classes at most, not "
                f"{self.n_splits}.",
                f"Use n_splits={possible}." if possible > 1 else "Use finer groups.",
            )
