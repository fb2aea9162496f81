"""Folds in the order of time: learn from what was, test on what came, rare rows in both."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from rareclass.errors import InputError, counted
from rareclass.folds.rare_rows import rare_rows
from rareclass.folds.stretches import exactly
from rareclass.folds.times import read_span, read_times
from rareclass.parameters import check_whole

WINDOWS = ("expanding", "sliding", "around")


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

    def __init__(
        self,
        n_splits: int = 5,
        *,
        gap: Any = 0,
        embargo: Any = 0,
        window: str = "expanding",
        train_span: Any = None,
        pos_label: Any = None,
    ) -> None:
        if window not in WINDOWS:
            raise ValueError(f"window={window!r} is not one of {list(WINDOWS)}.")
        least = 2 if window == "around" else 1
        check_whole("n_splits", n_splits, f"a whole number of at least {least}", least)
        if (window == "sliding") != (train_span is not None):
            raise ValueError(
                f"window={window!r} and train_span={train_span!r} do not go together: "
                'train_span is the length of the "sliding" window, and of no other.'
            )
        if embargo != 0 and window != "around":
            raise ValueError(
                f"embargo={embargo!r} has no effect with window={window!r}, which never learns "
                'from rows after the test part: use gap=, or window="around".'
            )
        self.n_splits = n_splits
        self.gap = gap
        self.embargo = embargo
        self.window = window
        self.train_span = train_span
        self.pos_label = pos_label

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """How many pairs `split` gives."""
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
            raise InputError(lacking, self._remedy(is_rare, time))
        yield from folds

    def _folds(
        self, n_splits: int, is_rare: np.ndarray, time: np.ndarray
    ) -> tuple[list[tuple[np.ndarray, np.ndarray]], str]:
        """The folds, and what one of them lacks, if any."""
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
