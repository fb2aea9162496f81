"""Linear scores: coefficient times distance from the typical value, feature by feature."""

import numpy as np

from rareclass.explain.explanation import Explanation, Floats
from rareclass.explain.features import Features


def explain_linear(coef: Floats, rows: Features) -> Explanation:
    """``w_j (x_j - typical_j)`` summed over groups; the score is ``w . typical`` and all these."""
    effects = (rows.X - rows.typical) * coef
    contributions = np.stack([effects[:, group].sum(axis=1) for group in rows.groups], axis=1)
    return Explanation(rows.X @ coef, contributions, rows.columns, float(coef @ rows.typical))
