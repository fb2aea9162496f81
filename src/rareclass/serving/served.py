"""What the service asks of a model, and a `rareclass` model that answers."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.training_table import read_as_trained
from rareclass.errors import InputError
from rareclass.model.explained import explainer_of
from rareclass.model.model_file import ModelFile
from rareclass.model.score import score_columns
from rareclass.model.scored import check_scores
from rareclass.model.targets import decision_of
from rareclass.serving.example_row import choices_of, example_of
from rareclass.serving.input_drift import InputDrift
from rareclass.tables.columns import Column

# Percentiles of the majority between whose scores new ones are counted.
_SCORE_PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9)


class Answers(NamedTuple):
    """What a model says of rows."""

    called: NDArray[np.intp]  # the place of each row's class among `classes`
    columns: pl.DataFrame  # score, probability, decision, percentile: as they are answered


class Served(Protocol):
    """A model that can be served: it takes rows with the types of `columns`."""

    target: str
    columns: Sequence[Column]
    classes: Sequence[str]  # the rest and the rare class, or levels from the lowest on
    example: Mapping[str, Any]  # a row that it takes
    choices: Mapping[str, Sequence[str]]  # the commonest words of columns that hold words
    score_edges: NDArray[np.float64]  # increasing: what its scores are counted between
    facts: Mapping[str, Any]  # plain data of it, for whoever asks

    def answer(self, rows: pl.DataFrame) -> Answers:
        """Score typed rows."""
        ...

    def reasons(self, rows: pl.DataFrame, k: int) -> list[list[dict[str, Any]]]:
        """For each row up to k columns that raise its score, the strongest first.

        Raises `InputError` where the model has no reasons.
        """
        ...

    def drift(self) -> InputDrift | None:
        """What is to be told of rows beside those of training; None where nothing is known."""
        ...


class ServedModel:
    """A model file, or the folder of a stream or a hunt, as the service asks for it.

    Raises `InputError` for a model of svmlight rows, which have no named columns. A row is scored
    in one thread: it is requests that share the cores.
    """

    def __init__(self, content: ModelFile) -> None:
        if content.metadata["format"] == "svmlight":
            raise InputError(
                "A model of svmlight rows cannot be served: they have no named columns.",
                "Fit on a CSV, Parquet or JSON lines file, or score files: rareclass score.",
            )
        if hasattr(content.model, "n_jobs"):
            content.model.n_jobs = 1
        # Whoever asks for scores is not told where the file is.
        self._named, self._content = content, replace(content, file=None)
        self._decision = decision_of(content.model, content.metadata)
        self.target: str = content.metadata["target"]
        self.columns: Sequence[Column] = list(content.encoder.columns)
        self.classes: Sequence[str] = list(self._decision.names)
        self.choices: Mapping[str, Sequence[str]] = choices_of(content)
        self.example: Mapping[str, Any] = example_of(content, self.choices)
        quantiles = np.asarray(content.metadata[self._decision.quantiles])
        percents = np.linspace(0.0, 100.0, len(quantiles))
        self.score_edges = np.unique(np.interp(_SCORE_PERCENTS, percents, quantiles))
        self.facts: Mapping[str, Any] = {
            "target": self.target,
            "classes": self.classes,
            "thresholds": [float(each) for each in self._decision.thresholds],
            "method": content.metadata.get("method"),
            "trained": content.metadata.get("date"),
            "n_rows": content.metadata.get("n_rows"),
            "versions": content.metadata.get("versions"),
        }

    def answer(self, rows: pl.DataFrame) -> Answers:
        """Score typed rows; O(rows x landmarks) for kernel machines."""
        content, scores = self._content, self._scores(self._content, rows)
        called = self._decision.decide(scores)
        *told, percentile = score_columns(content, self._decision, scores)
        decision = pl.Series("decision", [self.classes[k] for k in called.tolist()], pl.String)
        calls = self._decision.cells(called)
        truth = [calls] if calls.dtype == pl.Boolean else []
        return Answers(called, pl.DataFrame([*told, decision, *truth, percentile]))

    def _scores(self, content: ModelFile, rows: pl.DataFrame) -> NDArray[np.float64]:
        encoder = copy(content.encoder)  # that of a stream counts the rows it has seen
        with content.trusted_by_halves():
            scores: NDArray[np.float64] = content.model.score_samples(encoder.transform(rows))
        check_scores(content, scores, rows.height, rows.height)
        return scores

    def reasons(self, rows: pl.DataFrame, k: int) -> list[list[dict[str, Any]]]:
        """See `Served.reasons`; the time of a scoring for each column and row."""
        try:
            explain = explainer_of(self._content, k)
        except InputError as error:
            raise InputError(
                "This model gives no reasons: it is of levels, or the balls of a hunt.",
                "Ask without them.",
            ) from error
        told = explain(rows)
        names = ("reason", "value", "effect")
        places = [[f"{name}_{place + 1}" for name in names] for place in range(k)]
        return [
            [
                {"column": row[reason], "value": row[value], "effect": row[effect]}
                for reason, value, effect in places
                if row[reason] is not None
            ]
            for row in told.iter_rows(named=True)
        ]

    def drift(self) -> InputDrift | None:
        """A new count of rows beside those of training."""
        return InputDrift(self._content)

    def check(self) -> None:
        """Score the example row, alone and with others.

        Raises `InputError` where the model cannot, or gives what is no number.
        """
        cells = {name: [cell] * 3 for name, cell in self.example.items()}
        typed = read_as_trained(pl.DataFrame(cells), self.columns, 1)
        for rows in (typed.head(1), typed):
            self._scores(self._named, rows)
            self.answer(rows)
