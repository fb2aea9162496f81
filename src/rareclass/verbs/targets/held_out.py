"""How well a model ranks rows that it was not trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.metrics import (
    average_precision_interval,
    precision_at_k_interval,
    roc_auc_interval,
)

# Precision among this many top rows is shown as well when there are enough rows.
SECOND_TOP = 100


@dataclass(frozen=True)
class Measure:
    """A measure with its 95 % interval.

    Attributes
    ----------
    name : str
        What is measured.
    value, low, high : float
        The value and its interval.
    """

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """Measures of a ranking on some rows.

    Attributes
    ----------
    measures : list of Measure
        Such as AUC, average precision, precision at k.
    n_rows : float
        Number of rows, copies included.
    n_rare : float or None
        Rare ones of them, where there is a rare class.
    """

    measures: list[Measure]
    n_rows: float
    n_rare: float | None = None

    def rows_text(self, which: str = "") -> str:
        """Return the rows in words, such as 1,200 rows, 24 of them rare."""
        of_them = "" if self.n_rare is None else f", {self.n_rare:,.0f} of them rare"
        return f"{self.n_rows:,.0f} {which}rows{of_them}"

    def as_plain_data(self) -> dict[str, Any]:
        """Return the estimate as dictionaries and numbers."""
        rare = {} if self.n_rare is None else {"n_rare": self.n_rare}
        return {
            "n_rows": self.n_rows,
            **rare,
            "measures": {
                measure.name: {"value": measure.value, "low": measure.low, "high": measure.high}
                for measure in self.measures
            },
        }


def estimate_rare(
    rare: NDArray[np.bool_],
    scores: NDArray[np.float64],
    weight: NDArray[np.float64] | None = None,
) -> Estimate:
    """Return AUC, average precision and precision at k of scores, with 95 % intervals.

    Parameters
    ----------
    rare : ndarray of bool
        Which rows are rare.
    scores : ndarray
        Their scores, higher is rarer.
    weight : ndarray, optional
        How many copies each row stands for.
    """
    counts = np.ones(len(rare)) if weight is None else weight
    n_rows, n_rare = float(counts.sum()), float(counts[rare].sum())
    measures = [
        as_measure("AUC", roc_auc_interval(rare, scores, sample_weight=weight)),
        as_measure(
            "average precision", average_precision_interval(rare, scores, sample_weight=weight)
        ),
    ]
    for k in _tops(n_rows, n_rare):
        interval = precision_at_k_interval(rare, scores, k, sample_weight=weight)
        measures.append(as_measure(f"precision at {k}", interval))
    return Estimate(measures, n_rows, n_rare)


def _tops(n_rows: float, n_rare: float) -> list[int]:
    first = max(1, round(n_rare))
    return sorted({first, SECOND_TOP}) if n_rows >= 10 * SECOND_TOP else [first]


def as_measure(name: str, interval: Sequence[float]) -> Measure:
    """Return an interval (value, low, high) under a name."""
    value, low, high = (float(number) for number in interval)
    return Measure(name, value, low, high)
