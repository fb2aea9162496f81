"""The columns of new rows beside those of training, counted as batches go by."""

from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from rareclass.metrics.column_drift import population_stability_index
from rareclass.model.model_file import ModelFile
from rareclass.report.summaries.column_drift import ColumnDrift, tenths

# Rows of which copies are counted, at 8 bytes each.
_MOST_HASHED = 20_000_000


class ColumnsNow:
    """Counts empty cells, and cells in the tenths of training where the model file knows these."""

    def __init__(self, content: ModelFile, with_copies: bool = True) -> None:
        self._content = content
        self._with_copies = with_copies  # whether rows are to be remembered, to count copies
        self.n_rows = 0
        self._empty: Counter[str] = Counter()
        self._hashes: list[Any] = []
        statistics = getattr(content.model, "statistics_", None)
        self._edges = {} if statistics is None else _edges(statistics)
        self._words = {} if statistics is None else _words(statistics)
        self._counts = {
            name: np.zeros(len(before)) for name, (_, before) in self._edges.items()
        } | {name: np.zeros(len(before)) for name, (_, before) in self._words.items()}

    def add(self, rows: pl.DataFrame) -> None:
        """Take in typed rows."""
        self.n_rows += rows.height
        if self._with_copies and self.n_rows <= _MOST_HASHED:
            self._hashes.append(rows.hash_rows().to_numpy())
        for column in rows:
            self._empty[column.name] += _n_empty(column)
        for name, (edges, before) in self._edges.items():
            if name in rows.columns:
                values = rows[name].cast(pl.Float64, strict=False).to_numpy()
                values = values[~np.isnan(values)]
                place = np.searchsorted(edges, values, side="right")
                self._counts[name] += np.bincount(place, minlength=len(before))
        for name, (known, before) in self._words.items():
            if name in rows.columns:
                found = rows[name].cast(pl.String).drop_nulls().value_counts()
                words, counts = found.columns
                for word, count in zip(found[words], found[counts], strict=True):
                    self._counts[name][known.get(word, len(before) - 1)] += count

    @property
    def n_copies(self) -> int | None:
        """Rows equal to an earlier one in all of these columns; None where there are too many."""
        if self.n_rows > _MOST_HASHED or not self._hashes:
            return None
        return self.n_rows - len(np.unique(np.concatenate(self._hashes)))

    def found(self, outside: dict[str, float], importances: dict[str, float]) -> list[ColumnDrift]:
        """Every column that the model looks at; `outside` are shares of cells unlike training."""
        told = {each["name"]: each for each in self._content.metadata["columns"]}
        n_before = self._content.metadata.get("n_rows") or 0
        drifts = []
        for column in getattr(self._content.encoder, "columns", ()):
            facts = told.get(column.name, {})
            counts = self._counts.get(column.name)
            index, n_missing = None, facts.get("n_missing")
            n_known = n_before - (n_missing or 0)
            if counts is not None and counts.sum() and n_known:
                _, before = (self._edges | self._words)[column.name]
                index = population_stability_index(counts, n_known * before)
            drifts.append(
                ColumnDrift(
                    column.name,
                    column.kind,
                    column.treatment,
                    None if n_missing is None or not n_before else n_missing / n_before,
                    self._empty[column.name] / self.n_rows if self.n_rows else None,
                    facts.get("n_distinct"),
                    outside.get(column.name, 0.0),
                    index,
                    importances.get(column.name),
                )
            )
        return drifts


def _n_empty(column: pl.Series) -> int:
    nan = int(column.is_nan().sum()) if column.dtype.is_float() else 0
    return column.null_count() + nan


def _edges(statistics: Any) -> dict[str, tuple[Any, Any]]:
    """Of each number column, inner edges of its tenths in training and their shares."""
    known = statistics.summaries
    found = {}
    for place, source in enumerate(statistics.number_sources_[: statistics.n_plain_]):
        span = slice(int(known.starts[place]), int(known.starts[place + 1]))
        edges, shares = tenths(known.knots[span], known.ranks[span])
        if len(edges):
            found[statistics.columns_[source][0]] = (edges, shares)
    return found


def _words(statistics: Any) -> dict[str, tuple[dict[str, int], Any]]:
    """Of each column of words, the place of each of the commonest, and shares; others are last."""
    found = {}
    for place in range(statistics.n_words_):
        name = statistics.columns_[statistics.category_sources_[place]][0]
        known, weights = statistics.known_[place], statistics.level_weights_[place][:-1]
        if not len(weights) or not weights.sum():
            continue
        common = np.argsort(-weights, kind="stable")[:20]
        shares = np.append(weights[common], weights.sum() - weights[common].sum()) / weights.sum()
        found[name] = ({known.name(int(k)): at for at, k in enumerate(common)}, shares)
    return found
