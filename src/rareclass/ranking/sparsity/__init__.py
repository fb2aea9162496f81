"""Sparse landmark sets: a penalty on the absolute coefficients of the landmarks."""

from rareclass.ranking.sparsity.certificate import duality_gap, largest_lam
from rareclass.ranking.sparsity.path import default_lams, solve_paths
from rareclass.ranking.sparsity.unit_norm import unit_norm

__all__ = ["default_lams", "duality_gap", "largest_lam", "solve_paths", "unit_norm"]
