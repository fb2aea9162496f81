"""The Hessian among a few unknowns, as one question to the majority rows."""

from typing import Any, ClassVar

import numpy as np

from rareclass.kernels.expansion import KernelExpansion, pull_back
from rareclass.ranking.problem import Evaluation, RankingProblem
from rareclass.rows import Block, Rows


class ActiveHessian:
    r"""Second derivatives of a problem among some of its unknowns: one pass for all of them.

    Column b is the curvature along unknown b, which changes the scores by the kernel function
    :math:`\phi_b` of its landmark. A block works out the change of the slopes of its rows for
    every b, and pulls it back to the unknowns of interest alone.

    The problem is in coordinates that are one for a landmark: its whitener has one entry a column
    at most. `active` are the unknowns of interest, increasing; a loss's own come after the
    coordinates.

    The answer is an ndarray of shape (n_active, n_active). Cost: O(n_active (n_active + log m+))
    a row, and n_active rare-side sums a block.
    """

    n_sums: ClassVar[int] = 2

    def __init__(self, problem: RankingProblem, at: Evaluation, active: np.ndarray) -> None:
        self.problem, self.at = problem, at
        weights = active[active < problem.rank]
        self.landmarks = np.abs(problem.whitener[:, weights]).argmax(axis=0)
        self.sizes = problem.whitener[self.landmarks, weights]
        levels = np.eye(problem.loss.n_levels)[active[active >= problem.rank] - problem.rank]
        self.rare_features = self._features(problem.rare_kernel)
        n_rare = len(problem.rare_weight)
        none = np.zeros(problem.loss.n_levels)
        self.rare_values = [*self.rare_features.T, *np.zeros((len(levels), n_rare))]
        self.levels = active[active >= problem.rank] - problem.rank
        self.prefixes = [
            problem.loss.rare_direction(at.rare, values, level)
            for values, level in zip(
                self.rare_values, [*[none] * len(weights), *levels], strict=True
            )
        ]
        # A question needs a function of its own; this one has no use for it.
        self.coefficients = np.zeros(problem.expansion.n_landmarks)

    @property
    def rows(self) -> Rows:
        """The majority rows asked."""
        return self.problem.rows

    @property
    def expansion(self) -> KernelExpansion:
        """Kernel and landmarks."""
        return self.problem.expansion

    def of_block(self, block: Block, K: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, tuple]:
        """Slopes pulled back to the coordinates of interest; rare-side sums of every unknown."""
        p = self.problem
        zone, weight = p.zone(block, self.at, K), p.block_weight(block)
        features = self._features(K)
        by_row = np.empty((len(features), len(self.prefixes)), order="F")
        still = np.zeros(len(features))
        sums: list[np.ndarray] = []
        for b, prefix in enumerate(self.prefixes):
            direction = features[:, b] if b < features.shape[1] else still
            by_row[:, b], more = p.loss.curvature(self.at.rare, prefix, zone, direction, weight)
            sums.append(more)
        return still, (features.T @ by_row, np.array(sums))

    def finish(self, pull: np.ndarray, of_majority: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Add the rare side."""
        p, n = self.problem, len(self.prefixes)
        H = np.zeros((n, n))
        H[: len(of_majority)] = of_majority
        for b, prefix in enumerate(self.prefixes):
            terms: Any = p.loss.finish_curvature(self.at.rare, prefix, self.rare_values[b], sums[b])
            H[: len(of_majority), b] += pull_back(self.rare_features, terms.gradient)
            H[len(of_majority) :, b] = terms.levels[self.levels]
        return (0.5 * p.scale) * (H + H.T)

    def _features(self, K: np.ndarray) -> np.ndarray:
        """The functions of the landmarks of interest, a column each."""
        columns = K[:, self.landmarks].astype(np.float64, order="F", copy=False)
        return np.asfortranarray(columns * self.sizes)
