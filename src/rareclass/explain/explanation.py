"""What each column does to the scores of some rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Explanation:
    """What each column does to the scores of n rows.

    Attributes
    ----------
    score : ndarray of shape (n,)
    contributions : ndarray of shape (n, n_columns)
        By how much each column raises the score of a row, against a typical cell in its place;
        below 0 it lowers it.
    columns : list of str
        What the contributions are of: features, columns of a table, or groups.
    base : float or None
        Where contributions add up, the score without any of them: ``base + contributions.sum(1)``
        is the score. None where columns work together, so that their effects one at a time do not
        add up to anything.
    """

    score: Floats
    contributions: Floats
    columns: list[str]
    base: float | None = None

    def strongest(self, k: int) -> NDArray[np.intp]:
        """The k columns that raise each row's score most, the strongest first: (n, k).

        -1 where fewer raise it. Of equal ones the first.

        >>> told = Explanation(np.ones(1), np.array([[0.5, -1.0, 2.0]]), ["a", "b", "c"])
        >>> told.strongest(3).tolist()
        [[2, 0, -1]]
        """
        return strongest_of(self.contributions, k)


def strongest_of(effects: Floats, k: int) -> NDArray[np.intp]:
    """Positions of the k largest entries above 0 of each row, -1 where there are fewer."""
    found = np.full((len(effects), k), -1, dtype=np.intp)
    order = np.argsort(-effects, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(effects, order, axis=1)
    found[:, : order.shape[1]] = np.where(values > 0.0, order, -1)
    return found
