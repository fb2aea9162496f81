"""Rows whose labels are read: all of them, or a part of them drawn to choose parameters on."""

from dataclasses import dataclass, replace
from typing import Any, Generic, Self

import numpy as np

from rareclass.folds.majority_part import DrawnRows, draw_class
from rareclass.ranking.losses import PairLoss
from rareclass.ranking.preparation import KernelSettings, Kind, Prepared, prepare
from rareclass.ranking.targets import RankingTarget
from rareclass.rows import RowSource


@dataclass(frozen=True, eq=False)
class TrainingRows(Generic[Kind]):
    """Rows, their labels, and the kernel that is asked for: `prepared` works it out.

    ``numbers`` are those that the rows of a part have among all rows.
    """

    settings: KernelSettings
    source: RowSource
    target: Kind
    loss: PairLoss
    width: float
    scales: np.ndarray | None = None
    numbers: np.ndarray | None = None

    def prepared(self, several: bool) -> Prepared[Kind]:
        """The pieces of a ranking problem, for what few passes solve or for `several` solutions."""
        return prepare(
            self.settings, self.source, self.target, self.loss, several, self.width, self.scales
        )

    def with_width(self, width: float) -> Self:
        """The same rows under another width of the kernel."""
        return replace(self, width=width)

    def drawn(self, most: int, seed: Any) -> Self:
        """At most so many of the rows, in memory; all of them where there are no more.

        Rows that are held are drawn where they are more than half of `most`, and the majority
        fills up. Those drawn of either weigh what all of them did, so that shares and
        probabilities are those of all rows.
        """
        labels = self.target.labels
        n_held, n_rest = len(labels.rare), len(labels.majority)
        if n_held + n_rest <= most:
            return self
        rng = np.random.default_rng(seed)
        most_held = max(most // 2, most - n_rest)
        held = draw_class(
            n_held, most_held if n_held > most_held else None, rng, labels.rare_weight
        )
        rest = draw_class(n_rest, most - len(held.rows), rng, labels.majority_weight)
        source, target = some_rows(self.source, self.target, held, rest)
        numbers = np.concatenate([labels.rare[held.rows], labels.majority[rest.rows]])
        return replace(self, source=source, target=target, numbers=numbers)


def some_rows(
    source: RowSource,
    target: Kind,
    held: DrawnRows,
    rest: DrawnRows,
    dtype: Any = None,
) -> tuple[RowSource, Kind]:
    """Some rows in memory, those that are held first, in the order given.

    `held` are drawn among the rows that are held, `rest` among the majority. `dtype` is what values
    are turned into, by default none.
    """
    labels = target.labels
    chosen = np.concatenate([labels.rare[held.rows], labels.majority[rest.rows]])
    in_order = np.argsort(chosen)
    back = np.empty(len(chosen), dtype=np.int64)
    back[in_order] = np.arange(len(chosen))
    X = source.take(chosen[in_order])[back].astype(dtype or source.dtype)
    part: RankingTarget = target.on_part(held.rows, held.weight, rest.weight)
    return RowSource(X.shape, X.dtype, lambda rows: X[rows], source.is_sparse), part  # type: ignore[return-value]
