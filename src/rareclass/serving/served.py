"""Interface of a model that can be served, and the `rareclass` model that has it."""

import datetime as dt
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.encoders import TypedColumns
from rareclass.encoding.hunt import HuntEncoder
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.training_table import read_as_trained
from rareclass.errors import ErrorKind, InputError
from rareclass.model.explained import explainer_of
from rareclass.model.model import Model
from rareclass.model.score_file import score_columns
from rareclass.serving.monitoring import InputDrift
from rareclass.stream.model import StreamEncoder
from rareclass.tables.columns import Column

# Words of a column that a form offers.
MOST_CHOICES = 50
# Example of a date column: models do not store typical dates.
_DAY = dt.datetime(2024, 1, 1)
# Percentiles of the majority's scores, the edges between which new scores are counted.
_SCORE_PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9)


class RowScores(NamedTuple):
    """Scores of rows, and the classes that they are called."""

    called: NDArray[np.intp]  # index of each row's class in `classes`
    columns: pl.DataFrame  # score, probability, decision, percentile: as in the response


class Served(Protocol):
    """Protocol of a model that can be served; rows have the types of `columns`."""

    target: str
    columns: Sequence[Column]
    classes: Sequence[str]  # majority and rare class, or levels from the lowest on
    example: Mapping[str, Any]  # cells of a valid row
    choices: Mapping[str, Sequence[str]]  # most frequent words of categorical columns
    score_edges: NDArray[np.float64]  # increasing edges for counting scores
    facts: Mapping[str, Any]  # plain data for /model

    def answer(self, rows: pl.DataFrame) -> RowScores:
        """Score typed rows."""
        ...

    def reasons(self, rows: pl.DataFrame, k: int) -> list[list[dict[str, Any]]]:
        """Return for each row up to k columns that raise its score, the strongest first.

        Raises `InputError` where the model has no reasons.
        """
        ...

    def drift(self) -> InputDrift | None:
        """Make a counter of drift from training; None where training is not known."""
        ...


class ServedModel:
    """Model of a file, or of the folder of a stream or a hunt, with the interface of `Served`.

    Raises `InputError` for a model of svmlight rows, which have no named columns. A table is scored
    in one thread, as requests share the cores.
    """

    def __init__(self, content: Model) -> None:
        if content.facts.format == "svmlight":
            raise InputError(
                "A model of svmlight rows cannot be served: they have no named columns.",
                "Fit on a CSV, Parquet or JSON lines file, or score files: rareclass score.",
                ErrorKind.UNSUPPORTED,
            )
        if isinstance(content.encoder, TypedColumns):  # its estimator has threads of its own
            alone = copy(content.estimator).set_params(n_jobs=1)  # type: ignore[attr-defined]
            content = replace(content, estimator=alone)
        # Errors sent to clients do not name the file.
        self._named, self._content = content, replace(content, file=None)
        self.target: str = content.target
        self.columns: Sequence[Column] = list(content.encoder.columns)
        self.classes: Sequence[str] = list(content.classes)
        self.choices: Mapping[str, Sequence[str]] = choices_of(content)
        self.example: Mapping[str, Any] = example_of(content, self.choices)
        quantiles = content.facts.quantiles
        percents = np.linspace(0.0, 100.0, len(quantiles))
        self.score_edges = np.unique(np.interp(_SCORE_PERCENTS, percents, quantiles))
        training = content.facts.training
        self.facts: Mapping[str, Any] = {
            "target": self.target,
            "classes": self.classes,
            "thresholds": [float(each) for each in content.thresholds],
            "method": content.facts.method_name,
            "trained": None if training is None else training.date,
            "n_rows": content.facts.n_rows,
            "versions": None if training is None else training.versions,
        }

    def answer(self, rows: pl.DataFrame) -> RowScores:
        """Score typed rows; O(rows x landmarks) for kernel machines."""
        content, scores = self._content, self._scores(self._content, rows)
        called = content.decision.decide(scores)
        *scored, percentile = score_columns(content, scores)
        decision = pl.Series("decision", [self.classes[k] for k in called.tolist()], pl.String)
        calls = content.decision.cells(called)
        truth = [calls] if calls.dtype == pl.Boolean else []
        return RowScores(called, pl.DataFrame([*scored, decision, *truth, percentile]))

    def _scores(self, content: Model, rows: pl.DataFrame) -> NDArray[np.float64]:
        return content.score_encoded(content.encode(rows))

    def reasons(self, rows: pl.DataFrame, k: int) -> list[list[dict[str, Any]]]:
        """Explain rows; costs a scoring for each column and row."""
        try:
            explain = explainer_of(self._content, k)
        except InputError as error:
            raise InputError(
                "This model gives no reasons: it is of levels, or the balls of a hunt.",
                "Ask without them.",
                ErrorKind.UNSUPPORTED,
            ) from error
        explained = explain(rows)
        names = ("reason", "value", "effect")
        places = [[f"{name}_{place + 1}" for name in names] for place in range(k)]
        return [
            [
                {"column": row[reason], "value": row[value], "effect": row[effect]}
                for reason, value, effect in places
                if row[reason] is not None
            ]
            for row in explained.iter_rows(named=True)
        ]

    def drift(self) -> InputDrift | None:
        """Make a counter of drift from training."""
        return InputDrift(self._content)

    def check(self) -> None:
        """Score the example row, alone and with others.

        Raises `InputError` where the model fails, or gives scores that are no numbers.
        """
        cells = {name: [cell] * 3 for name, cell in self.example.items()}
        typed = read_as_trained(pl.DataFrame(cells), self.columns, 1)
        for rows in (typed.head(1), typed):
            self._scores(self._named, rows)
            self.answer(rows)


def example_of(content: Model, choices: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Make a cell for each column: the median of numbers, the first of the known words."""
    typical = _medians(content)
    return {
        column.name: _cell(column, typical.get(column.name), choices.get(column.name, ()))
        for column in content.encoder.columns
    }


def choices_of(content: Model) -> dict[str, list[str]]:
    """List the words of categorical columns in training, most frequent first where that is known.

    At most `MOST_CHOICES` words a column; text columns have none.
    """
    statistics = content.statistics
    if statistics is not None:
        return _of_statistics(statistics)
    encoder, found = content.encoder, {}
    if isinstance(encoder, StreamEncoder):
        found = encoder.known_words
    elif isinstance(encoder, HuntEncoder):
        found = encoder.choices
    return {name: words[:MOST_CHOICES] for name, words in found.items()}


def _of_statistics(statistics: TableStatistics) -> dict[str, list[str]]:
    found = {}
    for place in range(statistics.n_words_):
        name = statistics.columns_[statistics.category_sources_[place]][0]
        known, weights = statistics.known_[place], statistics.level_weights_[place][:-1]
        common = np.argsort(-weights, kind="stable")[:MOST_CHOICES]
        found[name] = [known.name(int(level)) for level in common]
    return found


def _medians(content: Model) -> dict[str, float]:
    """Medians of number columns, where the model has them."""
    statistics = content.statistics
    if statistics is not None:
        sources = statistics.number_sources_[: statistics.n_plain_]
        names = [statistics.columns_[source][0] for source in sources]
        return dict(zip(names, statistics.summaries.median.tolist(), strict=False))
    return content.encoder.medians if isinstance(content.encoder, HuntEncoder) else {}


def _cell(column: Column, typical: float | None, choices: Sequence[str]) -> Any:
    if column.reads_as == "date":
        return _DAY.strftime(_plain_format(column.date_format))
    if column.reads_as == "number" or column.kind == "number":
        return 0.0 if typical is None or not np.isfinite(typical) else float(f"{typical:.6g}")
    return choices[0] if choices else None


def _plain_format(date_format: str | None) -> str:
    """Format of polars as a format of Python: without fractions of a second, in UTC."""
    plain = date_format or "%Y-%m-%dT%H:%M:%S"
    return plain.replace("%.f", "").replace("%z", "+0000")
