"""A preconditioner for conjugate gradients: the Hessian over a sample of the majority."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from rareclass.ranking.expansion import expand
from rareclass.ranking.newton import Preconditioner
from rareclass.ranking.problem import Evaluation, RankingProblem

# Nanoseconds, measured on two cores: of a flop in a matrix product, of a kernel entry in a pass
# from memory, of a row in a pass, and of a pass whatever its size. Only their ratio is used.
_FLOP, _ENTRY, _ROW, _PASS = 0.02, 1.0, 100.0, 2e6

# Rare rows at a time: their pairs with the sample are formed, 100 MB of them.
_RARE_ROWS = 4096


@dataclass(frozen=True)
class SampledHessian:
    r"""Inverse of the Hessian over some majority rows that have curvature, all rare rows.

    With whitened features F+ of the rare and Fs of s sampled majority rows, out of a that have
    a pair with curvature, and pair curvatures :math:`C_{ij} = w_i w_j \ell''(f_i - f_j)`,

    .. math::

        H_S = \frac{a}{s W_+ W_-} \bigl( F_+' \mathrm{diag}(C 1) F_+ + F_s' \mathrm{diag}(C' 1)
        F_s - F_+' C F_s - F_s' C' F_+ \bigr) + \lambda I .

    Parameters
    ----------
    problem : RankingProblem
        Whose Hessian it is.
    part : RankingProblem or None
        The same problem on a part of the rows, to take the sample from: finding rows with
        curvature then costs no pass of them all. None samples all of them.
    n_sampled : int, default=3000
        Most sampled rows. More is nearer the Hessian and slower to build.

    Notes
    -----
    Cost: O(n_sampled rank (m+ + landmarks + rank)) to build, O(rank^2) to apply. The draw has a
    fixed seed and is made among rows in their order: blocks and threads do not change it.
    """

    problem: RankingProblem
    part: RankingProblem | None = None
    n_sampled: int = 3000

    @property
    def patience(self) -> int:
        """Plain CG iterations that cost about as much as building this."""
        p = self.problem
        n, rank = p.rows.n_rows, p.size
        landmarks, rare = p.expansion.n_landmarks, len(p.rare_weight)
        sampled = min(self.n_sampled, n)
        build = 2.0 * sampled * rank * (landmarks + rare + 1.5 * rank) + rank**3
        one_pass = n * (landmarks * _ENTRY + _ROW) + _PASS
        return int(np.clip(build * _FLOP / one_pass, 3, 60))

    def __call__(self, at: Evaluation) -> Preconditioner | None:
        """The approximate inverse Hessian at a point; None when no row has curvature there."""
        p = self.part or self.problem
        active = np.flatnonzero(p.curved_rows(at))
        if not len(active):
            return None
        chosen = active
        if len(active) > self.n_sampled:
            rng = np.random.default_rng(0)
            chosen = np.sort(rng.choice(active, self.n_sampled, replace=False))
        K = p.expansion.kernel.block(p.rows.take(chosen), p.expansion.landmarks)
        scores, weight = expand(K, at.coefficients), p.majority_weight[chosen]
        scale = p.scale * len(active) / len(chosen)
        H = self._hessian(at, expand(K, p.whitener), scores, weight * scale)
        H[np.diag_indices_from(H)] += p.lam
        try:
            factor = linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            # lam is below the rounding error of H: plain conjugate gradients go on.
            return None
        return lambda r: linalg.cho_solve(factor, r, check_finite=False)

    def _hessian(
        self, at: Evaluation, features: np.ndarray, scores: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        p = self.part or self.problem
        half = np.zeros((p.size, p.size))
        by_sampled = np.zeros(len(scores))
        for start in range(0, len(p.rare_weight), _RARE_ROWS):
            part = slice(start, start + _RARE_ROWS)
            K = p.rare_kernel[part]
            rare_features, rare_scores = expand(K, p.whitener), expand(K, at.coefficients)
            C = p.loss.second_derivative(rare_scores[:, None] - scores[None, :])
            C *= p.rare_weight[part, None]
            C *= weight[None, :]
            by_sampled += C.sum(axis=0)
            # Half of H, so that adding its transpose gives all of it: the crossing term as it
            # is, the two squares by halves.
            half -= (rare_features.T @ C) @ features
            half += 0.5 * (rare_features * C.sum(axis=1)[:, None]).T @ rare_features
        half += 0.5 * (features * by_sampled[:, None]).T @ features
        return half + half.T
