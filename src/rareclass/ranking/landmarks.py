"""Landmarks: the rows whose kernel functions carry the expansion f(x) = sum_r b_r k(x_r, x)."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class LandmarkRule:
    """Which training rows are landmarks.

    Parameters
    ----------
    rule : "rare", "all", "random", int, or array
        "rare": the rare rows (RankRC, the paper's (7)). "all": every row (kernel RankSVM, (6)).
        "random": as many rows as there are rare ones, drawn from all rows (the paper's RANK-RND).
        An integer: that many rows drawn from all. An array of whole numbers: those rows. A
        matrix: those points themselves, which need not be training rows.
    """

    rule: Any

    def choose(self, rare: np.ndarray, kept: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Indices of the landmark rows, in increasing order.

        Parameters
        ----------
        rare : ndarray of int
            Indices of the rare rows.
        kept : ndarray of int
            Indices of all rows whose weight is not zero, increasing.
        rng : RandomState
            Source of the draw for "random" and integers.

        Raises
        ------
        ValueError
            When the rule names nothing, or rows that are not there.
        """
        rule = self.rule
        if isinstance(rule, str):
            if rule == "rare":
                return rare
            if rule == "all":
                return kept
            if rule == "random":
                return np.sort(rng.choice(kept, size=len(rare), replace=False))
        elif isinstance(rule, (int, np.integer)) and not isinstance(rule, bool):
            if rule < 1:
                raise ValueError(f"landmarks={rule} must be at least 1.")
            return np.sort(rng.choice(kept, size=min(int(rule), len(kept)), replace=False))
        elif np.ndim(rule) == 1 and len(rule):
            return self._chosen(np.asarray(rule), kept)
        raise ValueError(
            f"landmarks={rule!r} is not 'rare', 'all', 'random', a number, an array of row "
            "numbers, or a matrix of points."
        )

    @property
    def points(self) -> Any | None:
        """The matrix of points when the rule is one, else None."""
        return self.rule if np.ndim(self.rule) == 2 else None

    @staticmethod
    def _chosen(rows: np.ndarray, kept: np.ndarray) -> np.ndarray:
        if rows.dtype.kind not in "iu":
            raise ValueError(f"landmarks holds {rows.dtype}; row numbers are whole numbers.")
        missing = np.setdiff1d(rows, kept)
        if len(missing):
            raise ValueError(
                f"landmarks names row {missing[0]}, which is not a training row of weight > 0."
            )
        return np.unique(rows)
