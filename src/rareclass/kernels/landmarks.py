"""Landmarks: the rows whose kernel functions carry the expansion f(x) = sum_r b_r k(x_r, x)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.kernels.kernels import Kernel, Matrix
from rareclass.kernels.pivoted_cholesky import pivoted_cholesky
from rareclass.machine import size_text
from rareclass.parameters import is_whole
from rareclass.rows.equal_rows import canonical, equal_rows, order_of_values

_COUNTED = ("rare", "rare+majority")
_SELECTIONS = ("kmeans++", "pivoted_cholesky")
# k-means++ looks at all rows for each one that it takes: of more than so many for each some are
# drawn, which spread out as well.
_ROWS_A_CENTRE = 10


@dataclass(frozen=True)
class LandmarkRule:
    """Which training rows are landmarks.

    "rare": the rare rows (RankRC, the paper's (7)). ("rare", k): at most k of them, spread out by
    k-means++ (among 10 k, drawn, where there are more); ("rare", k, "pivoted_cholesky"): those that
    span the others best under the kernel.
    ("rare+majority", k): the rare rows and k majority rows drawn at random (Corollary 4 of the
    bounds paper: more landmarks, nearer to RankSVM). "all": every row (kernel RankSVM, (6)).
    "random": as many rows as there are rare ones, drawn from all rows (the paper's RANK-RND). An
    integer: that many rows drawn from all. An array of whole numbers: those rows. A matrix: those
    points themselves, which need not be training rows.
    """

    rule: Any

    def choose(
        self,
        rare: np.ndarray,
        kept: Callable[[], np.ndarray],
        take: Callable[[np.ndarray], Matrix],
        rng: np.random.RandomState,
        kernel: Kernel,
    ) -> np.ndarray:
        """Indices of the landmark rows, in increasing order.

        `rare` are those of the rare rows; `kept` gives those of all rows whose weight is not zero,
        increasing, and `take` the rows of an array of indices. `rng` draws for "random" and
        integers; `kernel` is for pivoted Cholesky.

        Raises `ValueError` when the rule names nothing, or rows that are not there.
        """
        rule = self.rule
        if isinstance(rule, str):
            if rule == "rare":
                return rare
            if rule == "all":
                return kept()
            if rule == "random":
                return np.sort(rng.choice(kept(), size=len(rare), replace=False))
        elif isinstance(rule, tuple):
            return self._counted(rare, kept, take, rng, kernel)
        elif isinstance(rule, (int, np.integer)) and not isinstance(rule, bool):
            if rule < 1:
                raise ValueError(f"landmarks={rule} must be at least 1.")
            rows = kept()
            return np.sort(rng.choice(rows, size=min(int(rule), len(rows)), replace=False))
        elif np.ndim(rule) == 1 and len(rule):
            return self._chosen(np.asarray(rule), kept())
        raise ValueError(
            f"landmarks={rule!r} is not 'rare', 'all', 'random', ('rare', k), "
            "('rare+majority', k), a number, an array of row numbers, or a matrix of points."
        )

    def _counted(
        self,
        rare: np.ndarray,
        kept: Callable[[], np.ndarray],
        take: Callable[[np.ndarray], Matrix],
        rng: np.random.RandomState,
        kernel: Kernel,
    ) -> np.ndarray:
        """("rare", k), ("rare", k, selection) and ("rare+majority", k)."""
        name, k, selection = self._parsed()
        if name == "rare+majority":
            majority = np.setdiff1d(kept(), rare, assume_unique=True)
            drawn = rng.choice(majority, size=min(k, len(majority)), replace=False)
            return np.sort(np.concatenate([rare, drawn]))
        if len(rare) <= k:
            return rare
        if selection == "pivoted_cholesky":
            return rare[np.sort(pivoted_cholesky(kernel, take(rare), k))]
        from sklearn.cluster import kmeans_plusplus

        if len(rare) > _ROWS_A_CENTRE * k:
            rare = np.sort(rng.choice(rare, size=_ROWS_A_CENTRE * k, replace=False))
        return rare[np.unique(kmeans_plusplus(take(rare), k, random_state=rng)[1])]

    def check_memory(self, n_rare: int, memory: int) -> None:
        """Refuse pivoted Cholesky when its factor, 8 bytes an entry, is larger than `memory`."""
        if not (isinstance(self.rule, tuple) and self._parsed()[2] == "pivoted_cholesky"):
            return
        k = self._parsed()[1]
        if 8 * n_rare * k > memory:
            raise ValueError(
                f"landmarks={self.rule!r}: the factor of {n_rare:,} rare rows takes "
                f"{size_text(8 * n_rare * k)}, memory= allows {size_text(memory)}. Allow more, or "
                f"pass ('rare', {k}), which picks by k-means++."
            )

    def _parsed(self) -> tuple[str, int, str]:
        name, k, selection = (*self.rule, "kmeans++", None, None)[:3]
        if (
            len(self.rule) > (3 if name == "rare" else 2)
            or name not in _COUNTED
            or selection not in _SELECTIONS
            or not is_whole(k)
        ):
            raise ValueError(
                f"landmarks={self.rule!r} is not ('rare', k), ('rare', k, 'pivoted_cholesky') or "
                "('rare+majority', k) with k a whole number of at least 1."
            )
        return name, int(k), selection

    @property
    def points(self) -> Any | None:
        """The matrix of points when the rule is one, else None."""
        is_matrix = not isinstance(self.rule, (str, tuple)) and np.ndim(self.rule) == 2
        return self.rule if is_matrix or sparse.issparse(self.rule) else None

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


class Landmarks(NamedTuple):
    """Distinct points, and the training rows that sit on them.

    Equal rows have one kernel function between them, so they are one landmark. Points are in
    an order of their own values: it does not depend on the order of the rows or on copies.
    """

    points: Matrix  # shape (n_landmarks, n_features)
    rows: np.ndarray | None  # the chosen training rows; None when the points are not training rows
    point_of: np.ndarray | None  # for each of `rows`, its point

    def usable(self, held_out: np.ndarray) -> np.ndarray:
        """Which points still have a row that is not held out: bool, shape (n_landmarks,)."""
        n_points = self.points.shape[0]
        if self.rows is None or self.point_of is None:
            return np.ones(n_points, dtype=bool)
        return np.bincount(self.point_of, ~held_out[self.rows], minlength=n_points) > 0

    @property
    def first_rows(self) -> np.ndarray | None:
        """One training row for each point: the first."""
        if self.rows is None or self.point_of is None:
            return None
        return self.rows[np.unique(self.point_of, return_index=True)[1]]


def distinct_landmarks(candidates: Matrix, rows: np.ndarray | None) -> Landmarks:
    """Merge equal candidates: O(n log n) comparisons of rows.

    `rows` are the training rows that they are, if they are any.
    """
    candidates = canonical(candidates)
    first, group = equal_rows(candidates)
    order = order_of_values(candidates[first])
    return Landmarks(candidates[first[order]], rows, np.argsort(order)[group])
