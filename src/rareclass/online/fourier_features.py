"""Random Fourier features: sums of waves in which a linear learner is a smooth curve."""

from typing import NamedTuple, Self

import numpy as np

from rareclass.online._fourier_features_jit import wave_rows

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
        """With more features: rows that are 0 there have the waves of before."""
        more = rng.standard_normal((n_features - len(self.frequencies), len(self.phases)))
        return self._replace(frequencies=np.vstack([self.frequencies, self.deviation * more]))

    def apply(self, X: np.ndarray) -> np.ndarray:
        """The waves of rows, shape (n_rows, D)."""
        waves: np.ndarray = wave_rows(X, self.frequencies, self.phases)
        return waves

    def raises(self, row: np.ndarray, usual: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """By how much ``coef . waves`` falls where a feature alone becomes as usual."""
        known, size = len(row), np.sqrt(2.0 / max(len(coef), 1))
        frequencies = self.frequencies[:known]
        angles = 2.0 * np.pi * (np.arcsinh(row) @ frequencies + self.phases)
        less = 2.0 * np.pi * (np.arcsinh(row) - np.arcsinh(usual))[:, None] * frequencies
        raised: np.ndarray = size * (np.cos(angles) - np.cos(angles - less)) @ coef
        return raised
