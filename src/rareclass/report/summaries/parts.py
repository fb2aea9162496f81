"""Measures of the parts of the rows: by day or by group, which do worse."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.decide.rules.exact_bounds import chance_of_at_most, exact_interval
from rareclass.metrics import Interval, roc_auc_interval
from rareclass.report.summaries.threshold_table import LEVEL


@dataclass(frozen=True)
class PartOfRows:
    """The rows of one day or group at the model's threshold."""

    name: str
    n_rows: int
    n_rare: int
    alerts: int
    hits: int
    precision: Interval
    recall: Interval
    auc: Interval | None  # None where there are not both classes

    @property
    def missed(self) -> int:
        """Rare rows at or below the threshold."""
        return self.n_rare - self.hits


@dataclass(frozen=True)
class Parts:
    """All parts, and which of them do worse than chance explains.

    Attributes
    ----------
    by : str
        The column.
    parts : tuple of PartOfRows
        In the order of days; of groups those that miss most rare rows first.
    n_parts : int
        All that there are; `parts` may be fewer.
    n_tested : int
        Those of all that have a rare row.
    recall : Interval
        Of all rows together.
    """

    by: str
    parts: tuple[PartOfRows, ...]
    n_parts: int
    n_tested: int
    recall: Interval

    @property
    def worse(self) -> tuple[PartOfRows, ...]:
        """Parts that find fewer of their rare rows than chance explains, the worst first.

        By the exact binomial test of their recall against that of all rows, at 5 % after Holm's
        correction over all parts that have a rare row.
        """
        tested = [each for each in self.parts if each.n_rare]
        chances = [
            float(chance_of_at_most(each.hits, each.n_rare, self.recall.value)) for each in tested
        ]
        found = []
        for rank, place in enumerate(np.argsort(chances, kind="stable")):
            if chances[place] * (self.n_tested - rank) >= 1.0 - LEVEL:
                break
            found.append(tested[place])
        return tuple(sorted(found, key=lambda each: each.recall.value))

    @classmethod
    def of(
        cls,
        by: str,
        names: Sequence[Any] | NDArray[Any],
        y: ArrayLike,
        scores: ArrayLike,
        threshold: float,
        *,
        most: int = 400,
        in_order: bool = False,
    ) -> Self:
        """Measure each part.

        Parameters
        ----------
        by : str
        names : sequence of n
            The part of each row.
        y, scores : array-like of shape (n,)
        threshold : float
        most : int
            Parts that are kept: the last ones in order, or those that miss most.
        in_order : bool
            Whether parts follow each other, as days do.
        """
        rare, value = np.asarray(y) == 1, np.asarray(scores, float)
        found, codes = np.unique(np.asarray(names), return_inverse=True)
        called = value > threshold
        counts = [
            np.bincount(codes, each, len(found)) for each in (None, rare, called, called & rare)
        ]
        order = np.lexsort((np.arange(len(found)), -counts[0], counts[3] - counts[1]))
        chosen = np.arange(len(found))[-most:] if in_order else order[:most]
        by_part = np.argsort(codes, kind="stable")
        ends = np.append(0, np.cumsum(counts[0])).astype(np.int64)
        parts = []
        for k in chosen:
            n_rows, n_rare, alerts, hits = (int(each[k]) for each in counts)
            rows = by_part[ends[k] : ends[k + 1]]
            both = 0 < n_rare < n_rows
            auc = roc_auc_interval(rare[rows], value[rows], level=LEVEL) if both else None
            precision = exact_interval(hits, alerts, LEVEL)
            recall = exact_interval(hits, n_rare, LEVEL)
            name = str(found[k])
            parts.append(PartOfRows(name, n_rows, n_rare, alerts, hits, precision, recall, auc))
        whole = exact_interval(int((called & rare).sum()), int(rare.sum()), LEVEL)
        return cls(by, tuple(parts), len(found), int((counts[1] > 0).sum()), whole)
