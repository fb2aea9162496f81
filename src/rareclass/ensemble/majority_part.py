"""A part of the majority that stands for all of it."""

import numpy as np


def thinned(
    is_rare: np.ndarray, weight: np.ndarray | None, n_majority: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of all rare rows and of `n_majority` others, and the weights that make up.

    The others are drawn alike; what is left of them weighs together what all did.
    """
    rng = np.random.default_rng(seed)
    majority = np.flatnonzero(~is_rare)
    chosen = rng.choice(majority, n_majority, replace=False)
    rows = np.sort(np.concatenate([np.flatnonzero(is_rare), chosen]))
    all_weights = np.ones(len(is_rare)) if weight is None else weight
    weights = all_weights[rows].copy()
    weights[~is_rare[rows]] *= all_weights[majority].sum() / all_weights[chosen].sum()
    return rows, weights
