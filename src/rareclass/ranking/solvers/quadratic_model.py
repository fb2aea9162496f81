"""The model of a proximal Newton step: a quadratic plus a penalty on absolute values."""

from typing import NamedTuple

import numpy as np
from scipy import linalg

from rareclass.ranking.solvers import _coordinate_descent_jit as jit
from rareclass.ranking.solvers.certificate import violations

_SWEEPS, _ROUNDS = 20, 100


class QuadraticModel(NamedTuple):
    """q(v) = g'(v - w) + (v - w)' H (v - w) / 2 + sum_r t_r |v_r| around a point w."""

    w: np.ndarray  # shape (n,)
    gradient: np.ndarray  # g
    H: np.ndarray  # symmetric, positive definite
    thresholds: np.ndarray  # t, at or above 0

    def decrease(self, v: np.ndarray) -> float:
        """q(w) - q(v)."""
        d = v - self.w
        penalty = float(self.thresholds @ (np.abs(self.w) - np.abs(v)))
        return penalty - float(self.gradient @ d) - 0.5 * float(d @ self.H @ d)

    def minimum(self, wanted: float) -> np.ndarray:
        """The minimum, to violations of its conditions of at most `wanted`.

        Coordinate descent finds which coordinates are zero and the signs of the others; among
        those the minimum is then a linear system, to whose solution a step is made as far as the
        signs hold. Kernel functions of landmarks that lie near each other are so alike that
        coordinate descent alone would take thousands of sweeps.
        """
        v, slope = self.w.copy(), self.gradient.copy()
        for _ in range(_ROUNDS):
            jit._descend(self.H, self.thresholds, v, slope, wanted, _SWEEPS)
            if violations(v, slope, self.thresholds).max(initial=0.0) <= wanted:
                break
            for _ in range(len(v)):
                v, slope, blocked = self._on_face(v, slope)
                if not blocked:
                    break
        return v

    def _on_face(self, v: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """A step to the minimum over points with the signs of v: (v, slope, a sign stopped it)."""
        free = np.flatnonzero((v != 0.0) | (self.thresholds == 0.0))
        residual = -(slope[free] + self.thresholds[free] * np.sign(v[free]))
        try:
            factor = linalg.cho_factor(self.H[np.ix_(free, free)], check_finite=False)
        except linalg.LinAlgError:
            return v, slope, False
        step = linalg.cho_solve(factor, residual, check_finite=False)
        held = self.thresholds[free] > 0.0
        turning = held & (step * v[free] < 0.0)
        lengths = np.full(len(free), np.inf)
        lengths[turning] = -v[free][turning] / step[turning]
        first = int(lengths.argmin()) if len(free) else 0
        length = min(1.0, float(lengths.min(initial=np.inf)))
        moved = v.copy()
        moved[free] += length * step
        if length < 1.0:
            moved[free[first]] = 0.0
        return moved, self.gradient + self.H @ (moved - self.w), length < 1.0
