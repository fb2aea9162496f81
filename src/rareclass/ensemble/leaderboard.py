"""What each member reaches on held-out rows, and its share of the model."""

import numpy as np

from rareclass.ensemble.combined import Combined
from rareclass.metrics import average_precision_interval, roc_auc


def leaderboard(
    combined: Combined, y: np.ndarray, weight: np.ndarray | None
) -> dict[str, np.ndarray]:
    """A column a measure, an entry a member and setting, in order of the objective.

    `y` and `weight` are those of the held-out rows; measures are NaN where none of them is rare.
    """
    rows = []
    for each, share in zip(combined.judged, combined.weights, strict=True):
        auc = precision = low = high = float("nan")
        if y.any():
            auc = roc_auc(y, each.rarity, weight)
            precision, low, high = average_precision_interval(y, each.rarity, weight)
        candidate = each.candidate
        rows.append(
            {
                "member": candidate.member.name,
                "setting": candidate.setting,
                "objective": each.merit,
                "roc_auc": auc,
                "average_precision": precision,
                "average_precision_low": low,
                "average_precision_high": high,
                "seconds": candidate.seconds,
                "weight": float(share),
            }
        )
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
