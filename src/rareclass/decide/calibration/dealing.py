"""Copies of scored rows dealt out to parts at random, always in the same way."""

from collections.abc import Iterator

import numpy as np

from rareclass.metrics.scored_classes import FloatArray

N_PARTS = 10
_MOST_DEALT = 100_000


def dealt(weight: FloatArray) -> Iterator[FloatArray]:
    """For each of ten parts, the weight of the copies of each level that it is dealt.

    Copies are numbered in the order of scores and dealt by number, whole blocks of neighbours where
    they are very many. At random: of every tenth copy, a part would hold just what the others do.
    """
    running = np.append(0.0, np.cumsum(weight))
    n_blocks = int(min(np.ceil(running[-1]), _MOST_DEALT))
    edges = np.linspace(0.0, max(n_blocks, running[-1]), n_blocks + 1)
    number = np.random.default_rng(0).permutation(np.arange(n_blocks) % N_PARTS)
    for part in range(N_PARTS):
        own = np.append(0.0, np.cumsum(np.where(number == part, np.diff(edges), 0.0)))
        yield np.diff(np.interp(running, edges, own))
