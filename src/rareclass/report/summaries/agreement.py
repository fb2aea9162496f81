"""Whether two rankings find the same rare rows."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Agreement:
    """Of the k highest rows of two rankings: how many are the same, and who finds which.

    Attributes
    ----------
    k : int
        Rows at the top of each; of equal scores those that come first.
    shared : int
        Rows that are among them in both.
    found_by_both, found_by_first, found_by_second : int
        Rare rows among those of both, and of one alone.
    """

    k: int
    shared: int
    found_by_both: int
    found_by_first: int
    found_by_second: int

    @classmethod
    def of(cls, y: ArrayLike, a: ArrayLike, b: ArrayLike, k: int) -> Self:
        """Count; O(n log n) time.

        >>> Agreement.of([1, 1, 0, 0], [4, 3, 2, 1], [4, 1, 3, 2], 2)
        Agreement(k=2, shared=1, found_by_both=1, found_by_first=1, found_by_second=0)
        """
        rare = np.asarray(y) == 1
        tops = []
        for scores in (a, b):
            top = np.zeros(len(rare), dtype=bool)
            top[np.argsort(-np.asarray(scores, float), kind="stable")[:k]] = True
            tops.append(top)
        first, second = tops
        return cls(
            k,
            int((first & second).sum()),
            int((first & second & rare).sum()),
            int((first & ~second & rare).sum()),
            int((~first & second & rare).sum()),
        )
