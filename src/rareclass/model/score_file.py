"""``rareclass score``: a table of any size to a file of scores."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.decide.calibration.calibration import Calibration, LevelCalibration
from rareclass.errors import ErrorKind, InputError
from rareclass.files import check_not_input, check_not_inside, check_writable, replacing
from rareclass.model.calls import Calls, Part
from rareclass.model.drift import Drift, InputSummary, alert_rate, drift_of, refuse_drift
from rareclass.model.explained import explainer_of, note_on_cases, told_names
from rareclass.model.facts import HuntFacts
from rareclass.model.model import Model
from rareclass.model.table_scorer import ScoredBatch
from rareclass.model.threshold import in_step
from rareclass.tables.cells import type_name
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, TablePlace, named_columns, no_rows, open_table

SCORE_SUFFIXES = (".csv", ".parquet", ".pq")
# Names of columns that no identifier may have, besides what the target calls its decision.
_OURS = ("score", "probability", "percentile")
_SURE = "sure"  # of the models of hunts
_LIKELY, _CALLED = "likely_class", "called_class"  # of several rare classes
# Levels that get a column of probabilities each.
_MOST_LEVELS = 20
_NOT_IN_CSV = (pl.Binary, pl.Duration, pl.Object)


@dataclass(frozen=True)
class Scoring:
    """The outcome of scoring a file."""

    n_rows: int
    called: dict[str, int]  # rows of each class or level
    threshold: float | None  # score above which a row is called rare; None where none decides
    sentence: str  # how many rows were called what
    seen: InputSummary
    drift: Drift
    notes: list[str] = field(default_factory=list)  # what was asked for and is not there

    def as_plain_data(self) -> dict[str, Any]:
        """Return the outcome as dictionaries and numbers."""
        return {
            "n_rows": self.n_rows,
            "called": self.called,
            "threshold": self.threshold,
            **self.seen.as_plain_data(),
            "columns_left_out": self.seen.extra_columns,
            **self.drift.as_plain_data(),
        }


@dataclass(frozen=True)
class ScoreSettings:
    """Settings of scoring a file."""

    id_columns: tuple[str, ...] = ()  # carried over to the scores
    separator: str | None = None  # of a CSV file; None finds out
    top: int | None = None  # this and the next: see `Calls`
    threshold: float | None = None
    explain: int | None = None  # so many reasons and cases beside rows called rare
    strict: bool = False  # refuse rows that are unlike those of training
    alerts_only: bool = False  # write rows called rare alone, the highest score first


def score_rows(content: Model, data: TablePlace, out: Path, settings: ScoreSettings) -> Scoring:
    """Score every row of a file of any size into a new file, row order kept.

    Parquet or CSV by its suffix. Columns: those to be carried over (or ``row``, counted from 1),
    those of `score_columns`, before the last of them what each row is called (``called_rare``, or
    ``level``) and, with ``settings.explain``, why rows are called rare (`explainer_of`), empty for
    others. With ``settings.alerts_only`` there are rows called rare alone, the highest score first.

    With ``settings.top`` memory holds as many scores as are asked for (`Calls.write`).

    Raises `InputError` for anything wrong with the file, naming column, row and value, and, where
    ``settings.strict``, for rows unlike those of training (`refuse_drift`); `out` is not touched
    then.
    """
    check_score_path(out, data)
    file, seen = open_table(data, settings.separator, one_pass=True), InputSummary()
    scorer = Scorer(content, settings)
    scorer.check_id(file, out)
    with replacing(out) as temporary:
        n_called = scorer.write(file, temporary, seen)
        return scorer.outcome(n_called, seen, str(data))


class Scorer:
    """A model that writes scores of tables, and says what came of it."""

    def __init__(self, content: Model, settings: ScoreSettings) -> None:
        if settings.threshold is not None:
            named = f"score > {settings.threshold:g}"
            content = in_step(content.with_thresholds(settings.threshold), named)
        self._content, self._settings, explain = content, settings, None
        with content.naming_file():
            if settings.explain is not None:
                explain = content.naming_file()(explainer_of(content, settings.explain))
        self._calls = Calls(
            content.decision,
            settings.top,
            settings.threshold,
            explain,
            settings.alerts_only,
            max(len(settings.id_columns), 1),
        )

    def check_id(self, file: TableFile | SvmlightFile, out: Path) -> None:
        """Raise `InputError` where the columns to carry over cannot stand in `out`."""
        for name in self._settings.id_columns:
            self._check_id(name, file, out)

    def _check_id(self, name: str, file: TableFile | SvmlightFile, out: Path) -> None:
        content, settings = self._content, self._settings
        file = named_columns(file, [name], "--id")
        reasons = [] if settings.explain is None else told_names(content, settings.explain)
        sure = [_SURE] if isinstance(content.facts.method, HuntFacts) else []
        sure += [_LIKELY, _CALLED] if content.rare_classes else []
        if name in (*_OURS, *sure, *_level_columns(content), content.decision.column, *reasons):
            raise InputError(
                f"--id {name}: a column of the scores has that name.", "", ErrorKind.COLUMN_NAMES
            )
        for first in islice(file.batches([name], batch_rows=1), 1):
            dtype = first[name].dtype
            no_csv = dtype.is_nested() or dtype in _NOT_IN_CSV
            if type_name(dtype) != str(dtype) or (out.suffix.lower() == ".csv" and no_csv):
                raise InputError(
                    f"--id {name}: cells of type {type_name(dtype)} cannot be written to "
                    f"{out.suffix or out}.",
                    "Choose a column of words, numbers or times; .parquet holds lists and bytes.",
                    ErrorKind.CELL,
                    column=name,
                )

    def write(
        self, file: TableFile | SvmlightFile, path: Path, seen: InputSummary
    ) -> NDArray[np.intp]:
        """Score a table into a new file; return how many rows were called each code.

        Rows are counted from those that were `seen` before on, which is filled on the way.
        """
        settings, with_rows = self._settings, self._calls.explain is not None
        batches = self._content.score_batches(file, settings.id_columns, seen, with_rows)
        return self._calls.write(self._parts(batches, seen), path)

    def _parts(self, batches: Iterator[ScoredBatch], seen: InputSummary) -> Iterator[Part]:
        """Yield the columns of rows that do not depend on what they are called."""
        for scores, kept, rows, classes in batches:
            with self._content.naming_file():
                columns = score_columns(self._content, scores, classes)
            own = kept.get_columns()
            if not own:
                last = seen.n_rows + 1
                own = [pl.Series("row", np.arange(last - len(scores), last))]
            yield Part(pl.DataFrame([*own, *columns]), rows)

    def outcome(self, n_called: NDArray[np.intp], seen: InputSummary, data: str) -> Scoring:
        """Return what came of rows that were scored.

        Raises `InputError` where there are none, and, where ``strict``, where they are unlike those
        of training.
        """
        if not seen.n_rows:
            raise no_rows(data)
        content, calls = self._content, self._calls
        rate, threshold = None, calls.threshold_in_force
        if threshold is not None:
            rate = alert_rate(content.held_out, threshold, int(n_called[1]), seen.n_rows)
        drift = drift_of(seen, rate)
        if self._settings.strict:
            refuse_drift(drift, data)
        named = {name: int(n) for name, n in zip(content.decision.names, n_called, strict=True)}
        notes = note_on_cases(content) if calls.explain is not None else []
        sentence = calls.sentence(n_called)
        return Scoring(seen.n_rows, named, threshold, sentence, seen, drift, notes)


def score_columns(
    model: Model,
    scores: NDArray[np.float64],
    classes: NDArray[np.float64] | None = None,
) -> list[pl.Series]:
    """Return the columns of some scores, in the order of a file of scores.

    ``score`` (higher is rarer, or a higher level); ``probability`` of the rare class, or
    ``probability_LEVEL`` of each level, where the model has a calibration; ``sure`` for a hunt of
    which a case was held out (`ListOrder.sure`); for several rare `classes` a
    ``probability_CLASS`` of each, ``likely_class``, the most probable of them, and
    ``called_class``, by the thresholds of the classes; ``percentile`` (the share of the training
    majority, or of all training rows where the target has levels, with a lower score, in percent).
    """
    columns = [pl.Series("score", scores)]
    if isinstance(model.calibration, Calibration):
        columns.append(pl.Series("probability", model.calibration(scores)))
    if isinstance(model.facts.method, HuntFacts):
        sure = model.estimator.sure(scores)  # type: ignore[attr-defined]
        columns += [] if sure is None else [pl.Series(_SURE, sure)]
    if isinstance(model.calibration, LevelCalibration) and (names := _level_columns(model)):
        columns += map(pl.Series, names, model.calibration(scores).T)
    if classes is not None:
        stated = model.stated_classes(scores, classes)
        columns += map(pl.Series, _level_columns(model), stated.T)
        of_place = pl.Series(model.rare_classes, dtype=pl.String)
        columns.append(of_place.gather(classes.argmax(axis=1)).alias(_LIKELY))
        called = pl.Series(model.called_class(classes)).replace(-1, None)
        columns.append(of_place.gather(called).alias(_CALLED))
    return [*columns, pl.Series("percentile", model.percentiles(scores))]


def _level_columns(model: Model) -> list[str]:
    """Return names of columns with probabilities of levels, or of several rare classes.

    Of too many levels there are none.
    """
    if model.rare_classes:
        return [f"probability_{name}" for name in model.rare_classes]
    if not isinstance(model.calibration, LevelCalibration) or len(model.classes) > _MOST_LEVELS:
        return []
    return [f"probability_{name}" for name in model.classes]


def check_score_path(out: Path, data: TablePlace) -> None:
    """Raise `InputError` when scores of `data` cannot be written to `out`."""
    if out.suffix.lower() not in SCORE_SUFFIXES:
        raise InputError(
            f"--out {out}: the name must end in .csv or .parquet, which decides the format.",
            "",
            ErrorKind.SETTING,
        )
    check_not_input(out, "--out", {"the file to be scored": data})
    check_not_inside(out, "--out", data)
    check_writable(out)
