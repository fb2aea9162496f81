"""A member that learns several folds at the same time, a thread each."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from rareclass.ensemble.members.member import CrossFitted, EncodedFolds, FoldByFold
from rareclass.rows.memory import count_threads
from rareclass.rows.workers import Workers

_CELLS_A_THREAD = 2_000_000

Work = TypeVar("Work")
Result = TypeVar("Result")


class FoldsAtOnce(FoldByFold):
    """As `FoldByFold`, with the threads given to the folds first.

    Boosting by several threads meets at a barrier in every node of every tree, where the threads
    wait for the last one: on a machine that does anything else, by far longer than one thread
    needs for everything. Folds have nothing to wait for. Threads that are left are shared among
    the folds where the table is large enough to employ them.
    """

    def cross_fit(self, rows: EncodedFolds) -> list[CrossFitted]:
        """Learn every fold; there is one setting."""
        n_threads = count_threads(rows.n_jobs)
        at_once = max(1, min(n_threads, rows.n_folds))
        within = max(1, min(n_threads // at_once, rows.X.size // _CELLS_A_THREAD))

        def learned(number: int) -> tuple:
            rows.check()
            train = np.flatnonzero(rows.fold != number)
            tested = np.flatnonzero(rows.fold == number)
            function = self.learn(
                rows.X[train],
                rows.is_rare[train],
                rows.weights(train),
                rows.seed + number,
                within,
            )
            return function, tested, function.scores(rows.X[tested], within)

        folds = list(in_order(learned, range(rows.n_folds), at_once))
        held_out = np.full(len(rows.fold), np.nan)
        for _, tested, scores in folds:
            held_out[tested] = scores
        return [CrossFitted("", held_out, [function for function, _, _ in folds])]


def in_order(
    do: Callable[[Work], Result], pieces: Iterable[Work], n_threads: int
) -> Iterator[Result]:
    """What `do` makes of each piece, in their order; one thread is this one.

    When the time ran out, or at Ctrl-C, pieces that wait are dropped.
    """
    return map(do, pieces) if n_threads == 1 else Workers().map(do, pieces, n_threads)
