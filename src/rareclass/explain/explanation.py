"""Explanations of scores: contributions of columns, and pulls of landmarks."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Explanation:
    """Contributions of columns to the scores of n rows.

    Attributes
    ----------
    score : ndarray of shape (n,)
    contributions : ndarray of shape (n, n_columns)
        By how much each column raises the score of a row, against a typical cell in its place;
        below 0 it lowers it.
    columns : list of str
        Names of features, columns of a table, or groups.
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
        """Return the k columns that raise each row's score most, the strongest first: (n, k).

        -1 where fewer raise it. Of equal ones the first.

        >>> explanation = Explanation(np.ones(1), np.array([[0.5, -1.0, 2.0]]), ["a", "b", "c"])
        >>> explanation.strongest(3).tolist()
        [[2, 0, -1]]
        """
        return strongest_of(self.contributions, k)


def strongest_of(effects: Floats, k: int) -> NDArray[np.intp]:
    """Return positions of the k largest entries above 0 of each row, -1 where there are fewer."""
    found = np.full((len(effects), k), -1, dtype=np.intp)
    order = np.argsort(-effects, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(effects, order, axis=1)
    found[:, : order.shape[1]] = np.where(values > 0.0, order, -1)
    return found


@dataclass(frozen=True)
class KernelExplanation(Explanation):
    r"""The score of a kernel machine as the sum that it is.

    Attributes
    ----------
    pulls : ndarray of shape (n, n_landmarks)
        :math:`\beta_r k(z_r, x_i)`: their sum over r is the score. Landmarks with a positive
        coefficient, mostly rare rows, pull up; the others pull down.
    landmark_rows : ndarray of shape (n_landmarks,) or None
        The training row that each landmark is; None where landmarks are no rows.
    """

    pulls: Floats = field(kw_only=True)
    landmark_rows: NDArray[np.intp] | None = None

    def nearest(self, k: int) -> NDArray[np.intp]:
        """Return the k landmarks that pull each row up most, strongest first: (n, k), -1 for none.

        See `rareclass.explain.nearest_cases` for the rare rows that are nearest.

        ``landmark_rows[nearest]`` are their rows in the training data.
        """
        return strongest_of(self.pulls, k)
