"""Maps of a row for the members of a mixture: itself, its asinh, ranks of its values, waves."""

from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from rareclass.online._mixture_jit import rank_rows, wave_rows
from rareclass.online.ranker import SparseRows, sparse_rows

# Waves, and the deviation of their frequencies times the root of the columns: chosen on five
# streams of 6 to 17 columns (docs/decisions/0039).
WAVES, SPREAD = 256, 2.0


class FourierFeatures(NamedTuple):
    r"""Waves ``sqrt(2 / D) cos(2 pi (asinh(x) F + b))`` of rows x, with F and b drawn once.

    2 pi F is normal with the deviation ``2 / sqrt(d)``, b uniform: products of two rows' waves are,
    in the mean, the Gaussian kernel ``exp(-2 ||asinh(x) - asinh(x')||^2 / d)`` (Rahimi and Recht,
    "Random Features for Large-Scale Kernel Machines", NIPS 2007). d is the width of the first row,
    in which a column of categories has one feature; those born later are drawn as the first ones.
    They are kept and not drawn again: a checkpoint outlives the generator. O(d D) a row.
    """

    frequencies: np.ndarray  # shape (n_features, D): F
    phases: np.ndarray  # shape (D,): b, in turns
    deviation: np.ndarray  # shape (1,): of the frequencies

    @classmethod
    def drawn(cls, n_features: int, n_waves: int, rng: np.random.Generator) -> Self:
        """Waves over as many features; none at all where `n_waves` is 0."""
        deviation = np.array([SPREAD / (2.0 * np.pi * np.sqrt(n_features))])
        phases = rng.random(n_waves)
        return cls(np.zeros((0, n_waves)), phases, deviation).grown(n_features, rng)

    def grown(self, n_features: int, rng: np.random.Generator) -> Self:
        """Return waves over more features: rows that are 0 there have the waves of before."""
        more = rng.standard_normal((n_features - len(self.frequencies), len(self.phases)))
        return self._replace(frequencies=np.vstack([self.frequencies, self.deviation * more]))

    def apply(self, X: np.ndarray) -> np.ndarray:
        """The waves of rows, shape (n_rows, D)."""
        waves: np.ndarray = wave_rows(X, self.frequencies, self.phases)
        return waves

    def raises(self, row: np.ndarray, usual: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Fall of ``coef . waves`` where a feature alone becomes as usual."""
        known, size = len(row), np.sqrt(2.0 / max(len(coef), 1))
        frequencies = self.frequencies[:known]
        angles = 2.0 * np.pi * (np.arcsinh(row) @ frequencies + self.phases)
        less = 2.0 * np.pi * (np.arcsinh(row) - np.arcsinh(usual))[:, None] * frequencies
        raised: np.ndarray = size * (np.cos(angles) - np.cos(angles - less)) @ coef
        return raised


MAPS = ("linear", "asinh", "ranks", "fourier")
# Rows whose values give the ranks, and places that a column is spread over.
ROWS, KNOTS = 1000, 16


class Ranks(NamedTuple):
    """Values of a thousand rows, among which the values of the next thousand are ranked.

    A weight of a place goes on meaning the same where a column is scaled anew or drifts. A column
    with two values or fewer in the first thousand rows, or born after them, is no number worth
    ranking: it goes on as it is, in its first place.
    """

    kept: np.ndarray  # shape (n_kept, n_features): the rows since the last thousand
    ordered: np.ndarray  # shape (n_features, ROWS), sorted; (0, ROWS) among the first thousand
    ranked: np.ndarray  # shape (n_features,) or (0,): whether a column is ranked

    @classmethod
    def empty(cls, n_features: int) -> Self:
        """No rows seen."""
        return cls(np.zeros((0, n_features)), np.zeros((0, ROWS)), np.zeros(0, np.int64))

    @property
    def lacking(self) -> int:
        """Rows until the values are replaced."""
        return ROWS - len(self.kept)

    def with_rows(self, X: np.ndarray) -> Self:
        """Take in the next rows, at most as many as are lacking."""
        kept = np.concatenate([self.kept, X])
        if len(kept) < ROWS:
            return self._replace(kept=kept)
        ordered = np.sort(kept.T, axis=1)
        ranked = self.ranked
        if not len(ranked):
            ranked = ((np.diff(ordered, axis=1) > 0).sum(axis=1) > 1).astype(np.int64)
        return self._replace(kept=kept[:0], ordered=ordered, ranked=ranked)

    def grown(self, n_features: int) -> Self:
        """Add columns: 0 before, and never ranked once the first rows have passed."""
        more = ((0, n_features - self.kept.shape[1]), (0, 0))
        grown = self._replace(kept=np.pad(self.kept, more[::-1]))
        if not len(self.ranked):
            return grown
        ranked = np.pad(self.ranked, more[0])
        return grown._replace(ordered=np.pad(self.ordered, more), ranked=ranked)

    def apply(self, X: np.ndarray) -> SparseRows:
        """Rows of ``KNOTS * n_features`` places; all 0 among the first thousand."""
        if not len(self.ranked):
            return SparseRows(np.zeros(len(X) + 1, np.int64), np.zeros(0, np.int64), np.zeros(0))
        return SparseRows(*rank_rows(X, self.ordered, self.ranked, KNOTS))

    def check(self, n_features: int) -> None:
        """Raise `ValueError` where compiled code would leave the arrays, or be misled."""
        known = len(self.ranked)
        if self.kept.shape[1] != n_features or known not in (0, n_features):
            raise ValueError(f"ranks are not of {n_features} features")
        if len(self.ordered) != known or len(self.kept) >= ROWS:
            raise ValueError("the parts of the ranks do not fit each other")
        if (np.diff(self.ordered, axis=1) < 0.0).any():
            raise ValueError("values that ranks go by are not sorted")


def mapped(name: str, X: np.ndarray, ranks: Ranks, waves: FourierFeatures, takes: str) -> Any:
    """Return rows behind a map as a member takes them: a dense array or `SparseRows`."""
    if name == "ranks":
        rows = ranks.apply(X)
        return rows if takes == "sparse" else as_csr(rows, KNOTS * X.shape[1]).toarray()
    if name == "fourier":
        made, (n, d) = waves.apply(X), (len(X), len(waves.phases))
        if takes == "dense":
            return made
        return SparseRows(*_dense_places(n, d), made.ravel())
    seen = np.arcsinh(X) if name == "asinh" else X
    return sparse_rows(seen) if takes == "sparse" else seen


@lru_cache(maxsize=2)
def _dense_places(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Row starts and columns of rows without zeros: the same for every thousand rows."""
    return np.arange(n + 1) * d, np.tile(np.arange(d), n)


def width(name: str, n_features: int) -> int:
    """Number of features that a map makes of `n_features`."""
    return {"ranks": KNOTS * n_features, "fourier": WAVES}.get(name, n_features)


def as_csr(rows: SparseRows, n_features: int) -> Any:
    """The rows as scipy has them."""
    shape = (len(rows.indptr) - 1, n_features)
    return sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=shape)


def expanded(X: np.ndarray, ranks: Ranks) -> np.ndarray:
    """Maps of single columns side by side, shape (n_rows, n_features, 2 + KNOTS): for reasons."""
    ranked = as_csr(ranks.apply(X), KNOTS * X.shape[1]).toarray().reshape(*X.shape, KNOTS)
    return np.concatenate([X[..., None], np.arcsinh(X)[..., None], ranked], axis=2)


def places(name: str) -> slice:
    """Places of a map in the last axis of `expanded`."""
    return {"linear": slice(0, 1), "asinh": slice(1, 2), "ranks": slice(2, 2 + KNOTS)}[name]
