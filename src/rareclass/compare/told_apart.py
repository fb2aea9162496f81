"""P-values of many against the best of them, which was found on the same rows."""

from collections.abc import Sequence
from math import comb

import numpy as np


def adjusted_for_the_choice(p_values: Sequence[float]) -> list[float]:
    """P-values of the best of m rankings against each other one, as if all pairs had been tested.

    The best is the best of these rows, so that any pair of the m might have been the one that is
    furthest apart. This is Holm's correction over all ``m (m - 1) / 2`` pairs in the sharper form
    that Shaffer (1986, "Modified sequentially rejective multiple test procedures", JASA 81) gave
    it: once r of them differ from the best, a pair of the best and another can be equal together
    with at most ``max(C(m - r, 2) + C(r, 2), 1 + C(m - 2, 2))`` pairs, C(n, 2) the pairs of n; of
    all pairs for r = 0. The chance that any pair that is equally good is told apart stays below
    the level at which the adjusted p-values are read.

    `p_values` has one for each ranking but the best; O(m log m) time.

    Examples
    --------
    >>> adjusted_for_the_choice([0.04])
    [0.04]
    >>> adjusted_for_the_choice([0.5, 0.01])
    [0.5, 0.03]
    """
    m = len(p_values) + 1
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for r, place in enumerate(np.argsort(p_values, kind="stable")):
        equal = max(comb(m - r, 2) + comb(r, 2), 1 + comb(m - 2, 2)) if r else comb(m, 2)
        highest = max(highest, min(1.0, equal * float(p_values[place])))
        adjusted[place] = highest
    return adjusted
