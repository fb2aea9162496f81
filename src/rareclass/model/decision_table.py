"""What comes of calling rows rare: at a threshold, and of the so many highest."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.metrics import Interval, precision_at_k_interval, recall_at_k_interval
from rareclass.metrics.interval import exact_interval

_TOPS = (10, 100)
_LEVEL = 0.95


@dataclass(frozen=True)
class DecisionRow:
    """Rows called rare in one way, and how often that was right, with 95 % intervals.

    Those of a threshold are exact (Clopper-Pearson). Those of the k highest are Wilson's for the
    recall in ``n_rare`` trials, and the same in units of the others, as k and the classes are given
    (`rareclass.metrics.precision_at_k_interval`).
    """

    name: str
    alerts: int
    precision: Interval  # NaN where no row was called
    recall: Interval
    false_positive_rate: Interval

    def as_plain_data(self) -> dict[str, Any]:
        """Return it as dictionaries and numbers; no precision is null."""
        given = asdict(self)
        for name in ("precision", "recall", "false_positive_rate"):
            value, low, high = (float(each) for each in getattr(self, name))
            given[name] = {"value": None if np.isnan(value) else value, "low": low, "high": high}
        return given


def decision_table(
    rare: NDArray[np.bool_], scores: NDArray[np.float64], threshold: float
) -> list[DecisionRow]:
    """The threshold, then the 10, the 100 and as many highest rows as are rare, where there are."""
    tops = sorted({k for k in (*_TOPS, int(rare.sum())) if k < len(rare)})
    return [_above(rare, scores, threshold), *(_highest(rare, scores, k) for k in tops)]


def _above(rare: NDArray[np.bool_], scores: NDArray[np.float64], threshold: float) -> DecisionRow:
    called = scores > threshold
    hits, alerts, n_rare = int((called & rare).sum()), int(called.sum()), int(rare.sum())
    return DecisionRow(
        "threshold",
        alerts,
        exact_interval(hits, alerts, _LEVEL),
        exact_interval(hits, n_rare, _LEVEL),
        exact_interval(alerts - hits, len(rare) - n_rare, _LEVEL),
    )


def _highest(rare: NDArray[np.bool_], scores: NDArray[np.float64], k: int) -> DecisionRow:
    precision = precision_at_k_interval(rare, scores, k, level=_LEVEL)
    n_rest = len(rare) - int(rare.sum())
    value, low, high = precision
    return DecisionRow(
        f"highest {k:,}",
        k,
        precision,
        recall_at_k_interval(rare, scores, k, level=_LEVEL),
        Interval(*(min((1.0 - each) * k / n_rest, 1.0) for each in (value, high, low))),
    )
