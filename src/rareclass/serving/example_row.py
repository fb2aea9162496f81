"""A row that a model takes, and words that its columns know: for the OpenAPI and the form."""

import datetime as dt
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rareclass.model.model_file import ModelFile
from rareclass.tables.columns import Column

# Words of a column that a form offers.
MOST_CHOICES = 50
# Of dates that a model does not remember, and of what it would say it is: as good as any.
_DAY = dt.datetime(2024, 1, 1)


def example_of(content: ModelFile, choices: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A plain cell for each column: the median of numbers, the first of the known words."""
    typical = _medians(content)
    return {
        column.name: _cell(column, typical.get(column.name), choices.get(column.name, ()))
        for column in content.encoder.columns
    }


def choices_of(content: ModelFile) -> dict[str, list[str]]:
    """The words that columns of words knew in training, the commonest first where that is known.

    Of columns with more than `MOST_CHOICES` those; text has none.
    """
    statistics = getattr(content.model, "statistics_", None)
    if statistics is not None and hasattr(statistics, "known_"):
        return _of_statistics(statistics)
    vectorizer = getattr(_table_encoder(content), "vectorizer_", None)
    found = {}
    for name, encoder in getattr(vectorizer, "transformers_", {}).items():
        categories = getattr(encoder, "categories_", None)
        if categories is not None:
            found[name] = [word for word in categories[0] if isinstance(word, str)]
    for column, words in getattr(content.encoder, "known_words", {}).items():
        found[column] = words
    return {name: words[:MOST_CHOICES] for name, words in found.items()}


def _of_statistics(statistics: Any) -> dict[str, list[str]]:
    found = {}
    for place in range(statistics.n_words_):
        name = statistics.columns_[statistics.category_sources_[place]][0]
        known, weights = statistics.known_[place], statistics.level_weights_[place][:-1]
        common = np.argsort(-weights, kind="stable")[:MOST_CHOICES]
        found[name] = [known.name(int(level)) for level in common]
    return found


def _medians(content: ModelFile) -> dict[str, float]:
    """Medians of number columns, where the model has them."""
    statistics = getattr(content.model, "statistics_", None)
    if statistics is not None and hasattr(statistics, "number_summaries_"):
        sources = statistics.number_sources_[: statistics.n_plain_]
        names = [statistics.columns_[source][0] for source in sources]
        return dict(zip(names, statistics.summaries.median.tolist(), strict=False))
    encoder = _table_encoder(content)
    # Dates stand among the numbers as total seconds.
    names = [each.name for each in encoder.columns if each.reads_as != "string"]
    bounded = getattr(encoder, "bounded_", None)
    centre = getattr(encoder, "centre_", None)
    if bounded is not None and hasattr(bounded, "knots_"):
        starts = bounded.starts_
        middles = [bounded.knots_[(a + b) // 2] for a, b in pairwise(starts)]
        return dict(zip(names, map(float, middles), strict=False))
    return {} if centre is None else dict(zip(names, centre.tolist(), strict=False))


def _table_encoder(content: ModelFile) -> Any:
    """The encoder, or the one inside that of a hunt."""
    return getattr(content.encoder, "encoder_", content.encoder)


def _cell(column: Column, typical: float | None, choices: Sequence[str]) -> Any:
    if column.reads_as == "date":
        return _DAY.strftime(_plain_format(column.date_format))
    if column.reads_as == "number" or column.kind == "number":
        return 0.0 if typical is None or not np.isfinite(typical) else float(f"{typical:.6g}")
    return choices[0] if choices else None


def _plain_format(date_format: str | None) -> str:
    """A format of polars as one of Python: without fractions of a second, in UTC."""
    plain = date_format or "%Y-%m-%dT%H:%M:%S"
    return plain.replace("%.f", "").replace("%z", "+0000")
