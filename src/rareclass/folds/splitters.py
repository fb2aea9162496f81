"""Splitters of scikit-learn's kind whose training and test parts all hold rare rows."""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold

from rareclass.errors import ErrorKind, counted
from rareclass.folds.dealing import (
    dealt_with_both,
    exactly,
    group_numbers,
    most_folds,
    rare_rows,
    read_span,
    read_times,
)
from rareclass.labels.spelling import plain
from rareclass.labels.two_classes import different, label_array
from rareclass.parameters import check_choice, check_whole


def stratified(n_folds: int, strata: np.ndarray, seed: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of shuffled folds; a stratum of fewer rows is not in every fold."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        return list(splitter.split(np.empty((len(strata), 0)), strata))


class _RareKFold(BaseCrossValidator):
    """Parameters that folds by class and folds by group share."""

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
        """Number of pairs that `split` gives: ``n_splits * repeats``."""
        return self.n_splits * self.repeats


class RareStratifiedKFold(_RareKFold):
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
                raise ErrorKind.TOO_FEW_ROWS.error(
                    f"{counted(number, f'{name} row')} cannot be in the test part of each of "
                    f"{self.n_splits} folds.",
                    f"Use n_splits={number}, with repeats= for more."
                    if number > 1
                    else f"A cross-validation needs 2 {name} rows.",
                )
        codes = different(label_array(y))[1]
        for repeat in range(self.repeats):
            yield from stratified(self.n_splits, codes, self.random_state + repeat)


class RareGroupKFold(_RareKFold):
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
            raise ErrorKind.MISSING_COLUMN.error(
                "the 'groups' parameter should not be None: RareGroupKFold keeps groups together.",
                "Pass groups=, one value a row, or use RareStratifiedKFold.",
            )
        group = group_numbers(groups, len(is_rare))
        self._check(is_rare, group, np.asarray(groups))
        for repeat in range(self.repeats):
            fold = dealt_with_both(self.n_splits, self.random_state + repeat, is_rare, group)
            for k in range(self.n_splits):
                yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def _check(self, is_rare: np.ndarray, group: np.ndarray, given: np.ndarray) -> None:
        for name, rows in (("rare", is_rare), ("other", ~is_rare)):
            held = np.unique(group[rows])
            if len(held) == 1:
                raise ErrorKind.TOO_FEW_ROWS.error(
                    f"the group {plain(given[int(np.argmax(rows))])!r} holds all "
                    f"{counted(rows.sum(), f'{name} row')}: no fold could learn from some and "
                    "test others.",
                    "Use finer groups, or RareStratifiedKFold, whose estimate will be too good "
                    "where rows of a group are alike.",
                )
        possible = most_folds(is_rare, group)
        if possible < self.n_splits:
            with_rare = len(np.unique(group[is_rare]))
            raise ErrorKind.TOO_FEW_ROWS.error(
                f"{counted(with_rare, 'group holds', 'groups hold')} rare rows: they make "
                f"{counted(possible, 'fold')} with rows of both classes at most, not "
                f"{self.n_splits}.",
                f"Use n_splits={possible}." if possible > 1 else "Use finer groups.",
            )


WINDOWS = ("expanding", "sliding", "around")


@dataclass(eq=False, repr=False)
class RareTimeSplit(BaseCrossValidator):
    """Stretches of time as test parts, cut so that each holds about as many rare rows.

    scikit-learn's `TimeSeriesSplit` cuts by number of rows, wherever the rare ones are. Here the
    cuts follow the rare rows; rows of one moment are on the same side. ``n_splits + 1`` stretches
    make `n_splits` folds: stretch k is tested by what was learned before it. A fold whose training
    or test part would lack a class is an error that says what is possible.

    Parameters
    ----------
    n_splits : int, default=5
        Folds.
    gap : number or timedelta, default=0
        Rows within this time before the first row of a test part are not learned from: labels
        that come late (a chargeback) would not have been known. A number counts days where times
        are dates, else it is in the unit of the times, or in rows where there are none.
    embargo : number or timedelta, default=0
        The same after the last row of a test part; only ``window="around"`` learns from later
        rows.
    window : {"expanding", "sliding", "around"}, default="expanding"
        "expanding" learns from everything before the gap; "sliding" from `train_span` of it;
        "around" from before the gap and after the embargo, so that there are `n_splits` stretches
        and each is tested once: for estimates when nothing drifts.
    train_span : number or timedelta, optional
        Length of the sliding window.
    pos_label : label or None, default=None
        The rare class; None is the label of fewest rows.

    Raises
    ------
    InputError
        From `split`: times that are none, or folds that cannot all have rare rows; with the number
        of folds that is possible.
    ValueError
        On parameters outside their range or that do not go together.

    Notes
    -----
    Times are passed as `groups`, the slot that scikit-learn has for a column beside X and y:
    ``cross_val_score(model, X, y, groups=dates, cv=RareTimeSplit())``. Without them rows are in
    the order of time, one moment each.

    Examples
    --------
    >>> import numpy as np
    >>> day = np.repeat(np.arange(40), 5)
    >>> y = np.arange(200) % 20 == 0
    >>> for train, test in RareTimeSplit(3, gap=2).split(np.empty((200, 0)), y, day):
    ...     print(day[train].max(), day[test].min(), day[test].max(), int(y[test].sum()))
    7 10 21 3
    19 22 29 2
    27 30 39 2
    """

    __metadata_request__split: ClassVar = {"groups": True}

    n_splits: int = 5
    _: KW_ONLY
    gap: Any = 0
    embargo: Any = 0
    window: str = "expanding"
    train_span: Any = None
    pos_label: Any = None

    def __post_init__(self) -> None:
        window, train_span, embargo = self.window, self.train_span, self.embargo
        check_choice("window", window, WINDOWS)
        least = 2 if window == "around" else 1
        check_whole("n_splits", self.n_splits, f"a whole number of at least {least}", least)
        if (window == "sliding") != (train_span is not None):
            raise ErrorKind.COMBINATION.error(
                f"window={window!r} and train_span={train_span!r} do not go together: "
                'train_span is the length of the "sliding" window, and of no other.'
            )
        if embargo != 0 and window != "around":
            raise ErrorKind.COMBINATION.error(
                f"embargo={embargo!r} has no effect with window={window!r}, which never learns "
                'from rows after the test part: use gap=, or window="around".'
            )

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of pairs that `split` gives."""
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row numbers to learn from and to test, a pair for each fold, the earliest first.

        Parameters
        ----------
        X : ignored
        y : array-like of shape (n_rows,)
        groups : array-like of shape (n_rows,), optional
            Time of each row: dates, text that says dates, or numbers. None: rows are in the order
            of time.
        """
        is_rare = rare_rows(y, self.pos_label)
        n_rows = len(is_rare)
        time = np.arange(n_rows, dtype=float) if groups is None else read_times(groups, n_rows)
        folds, lacking = self._folds(self.n_splits, is_rare, time)
        if lacking:
            raise ErrorKind.TOO_FEW_ROWS.error(lacking, self._remedy(is_rare, time))
        yield from folds

    def _folds(
        self, n_splits: int, is_rare: np.ndarray, time: np.ndarray
    ) -> tuple[list[tuple[np.ndarray, np.ndarray]], str]:
        """Return the folds, and what one of them lacks, if any."""
        moment = np.unique(time, return_inverse=True)[1]
        first = 0 if self.window == "around" else 1
        stretch = exactly(n_splits + first, is_rare, moment)
        if stretch is None:
            with_rare = len(np.unique(moment[is_rare]))
            return [], (
                f"{counted(with_rare, 'moment has', 'moments have')} rare rows, and "
                f"{counted(n_splits, 'fold')} need {n_splits + first} such moments."
            )
        folds = []
        for k in range(first, n_splits + first):
            tested = stretch == k
            learned = self._learned(time, tested)
            for side, rows in (("train", learned), ("test", tested)):
                for name, of_class in (("rare", is_rare), ("majority", ~is_rare)):
                    if not (rows & of_class).any():
                        return [], f"fold {k - first + 1} would have no {name} row to {side} on."
            folds.append((np.flatnonzero(learned), np.flatnonzero(tested)))
        return folds, ""

    def _learned(self, time: np.ndarray, tested: np.ndarray) -> np.ndarray:
        """Rows that may be learned from when others are tested."""
        begin, end = time[tested].min(), time[tested].max()
        before = time < begin - read_span("gap", self.gap, time)
        if self.window == "sliding":
            span = read_span("train_span", self.train_span, time)
            before &= time >= begin - read_span("gap", self.gap, time) - span
        if self.window == "around":
            before |= time > end + read_span("embargo", self.embargo, time)
        return before

    def _remedy(self, is_rare: np.ndarray, time: np.ndarray) -> str:
        least = 2 if self.window == "around" else 1
        for fewer in range(self.n_splits - 1, least - 1, -1):
            if not self._folds(fewer, is_rare, time)[1]:
                return f"Use n_splits={fewer}."
        shorter = " a shorter gap," if self.gap or self.embargo else ""
        longer = " a longer train_span," if self.window == "sliding" else ""
        return f"No number of folds is possible with these times: try{shorter}{longer} finer times."


def splitter_for(
    n_splits: int, seed: int, pos_label: Any = True, groups: Any = None, time: Any = None
) -> BaseCrossValidator:
    """Return the splitter that a number of folds stands for: by group, by time, or by class."""
    if groups is None and time is not None:
        return RareTimeSplit(n_splits, pos_label=pos_label)
    kind = RareStratifiedKFold if groups is None else RareGroupKFold
    return kind(n_splits, random_state=seed, pos_label=pos_label)
