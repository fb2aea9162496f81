"""A preconditioner for conjugate gradients: the Hessian over a sample of the majority."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from rareclass.kernels.expansion import expand
from rareclass.machine import factorising
from rareclass.ranking.losses import PNormPush
from rareclass.ranking.problem import Evaluation, RankingProblem
from rareclass.ranking.solvers.newton import Preconditioner
from rareclass.rows import ArrayRows, Block, Budget, as_source

# Nanoseconds, measured on two cores: of a flop in a matrix product, of a kernel entry in a pass
# from memory, of a row in a pass, and of a pass whatever its size. Only their ratio is used.
_FLOP, _ENTRY, _ROW, _PASS = 0.02, 1.0, 100.0, 2e6

# Majority rows that are sampled: more are nearer the Hessian and slower to build from.
MOST_SAMPLED = 3000
# Rare rows at a time, and blocks of the sample: all pairs of a block with them are formed, 25 MB.
_RARE_ROWS, _SAMPLE_BLOCKS = 4096, 4


@dataclass(frozen=True)
class SampledHessian:
    r"""Inverse of the Hessian over some majority rows that have curvature, all rare rows.

    With whitened features F+ of the rare and Fs of s sampled majority rows, out of a that have
    a pair with curvature, and pair curvatures :math:`C_{ij} = w_i w_j \ell''(f_i - f_j)`,

    .. math::

        H_S = \frac{a}{s W_+ W_-} \bigl( F_+' \mathrm{diag}(C 1) F_+ + F_s' \mathrm{diag}(C' 1)
        F_s - F_+' C F_s - F_s' C' F_+ \bigr) + \lambda I .

    A `PNormPush` adds its curvature in the mean of each sampled row.

    Finding rows with curvature on a part costs no pass of them all.

    Cost: O(n_sampled rank (m+ + landmarks + rank)) to build, O(rank^2) to apply. The draw has a
    fixed seed and is made among rows in their order: blocks and threads do not change it.
    """

    problem: RankingProblem  # whose Hessian it is
    # the same on a part of the rows, to sample from; None samples all
    part: RankingProblem | None = None
    n_sampled: int = MOST_SAMPLED  # at most

    @property
    def patience(self) -> int:
        """Plain CG iterations that cost about as much as building this."""
        p = self.problem
        n, rank = p.rows.n_rows, p.rank
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
        weight = p.majority_weight[chosen] * (p.scale * len(active) / len(chosen))
        sample = ArrayRows(
            as_source(p.rows.take(chosen)),
            weight=weight,
            block_rows=-(-len(chosen) // _SAMPLE_BLOCKS),
            budget=Budget(2**62),
            n_jobs=p.rows.n_threads,
            keeps_arrays=False,
            blocks_a_thread=1,
        )
        # A float32 kernel has no more digits, and its products take half the time.
        whitener = p.whitener.astype(p.rare_kernel.dtype, copy=False)
        H = np.zeros((p.rank, p.rank))
        for start in range(0, len(p.rare_weight), _RARE_ROWS):
            rare = slice(start, min(start + _RARE_ROWS, len(p.rare_weight)))
            features = p.rare_kernel[rare] @ whitener
            half, by_rare = sample.sum(_half_hessian, p, at, whitener, rare, features)
            with factorising(p.rank, p.rows.n_threads):
                by_row = by_rare[:, None].astype(features.dtype)
                H += half + 0.5 * (features * by_row).T @ features
        H += H.T
        if isinstance(p.loss, PNormPush):
            H += sample.sum(_outer_hessian, p, p.loss, at, whitener, p.rare_kernel)[0]
        H[np.diag_indices(p.rank)] += p.lam
        # None where lam is below the rounding error of H: plain conjugate gradients go on.
        with factorising(p.rank, p.rows.n_threads):
            try:
                factor = linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
            except linalg.LinAlgError:
                return None
        return lambda r: linalg.cho_solve(factor, r, check_finite=False)


def _sample(block: Block, p: RankingProblem, at: Evaluation, whitener: Any) -> tuple[Any, Any]:
    """Scores and whitened features of sampled rows, needed once for every stretch of rare rows."""
    names = "scores", "features"
    scores, features = (block.memo.get(name, at.token) for name in names)
    if scores is None or features is None:
        K = p.expansion.matrix(block)
        scores, features = expand(K, at.coefficients), K @ whitener
        for name, values in zip(names, (scores, features), strict=True):
            block.memo.keep(name, at.token, values)
    return scores, features


def _half_hessian(
    block: Block,
    p: RankingProblem,
    at: Evaluation,
    whitener: Any,
    rare: slice,
    rare_features: Any,
) -> tuple[Any, Any]:
    """Terms of pairs of some rare and some sampled rows in H_S - lam I, up to its transpose.

    The crossing term as it is, the square of the sampled rows by half; of the square of the rare
    rows the curvature of each.
    """
    scores, features = _sample(block, p, at, whitener)
    C = p.loss.pair_curvature(at.rare, rare, scores) * block.weight
    by_rare, by_sampled = C.sum(axis=1), C.sum(axis=0)[:, None].astype(features.dtype)
    half = 0.5 * by_sampled * features - C.T.astype(features.dtype) @ rare_features
    return features.T @ half, by_rare


def _outer_hessian(
    block: Block,
    p: RankingProblem,
    loss: PNormPush,
    at: Evaluation,
    whitener: Any,
    rare_kernel: Any,
) -> tuple[Any]:
    """Hessian of the outer function at the sampled rows' own sums."""
    scores, features = _sample(block, p, at, whitener)
    pull = np.zeros_like(features)
    for start in range(0, len(rare_kernel), _RARE_ROWS):
        rare = slice(start, min(start + _RARE_ROWS, len(rare_kernel)))
        slope = loss.pair_slope(at.rare, rare, scores)
        pull += slope.sum(axis=0)[:, None] * features
        pull -= slope.T @ (rare_kernel[rare] @ whitener)
    curvature = loss.row_curvature(at.rare, scores) * block.weight
    return ((pull * curvature[:, None]).T @ pull,)
