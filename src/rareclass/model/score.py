"""``rareclass score``: from a model and a file of any size to a file of scores."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import InputError, name_hint
from rareclass.files import check_not_input, check_not_inside, check_writable, replacing
from rareclass.model.calls import CallBy, Part, calls_by
from rareclass.model.drift import Drift, alert_rate, drift_of, refuse_drift
from rareclass.model.explained import explainer_of, note_on_cases, told_names
from rareclass.model.model_file import ModelFile
from rareclass.model.probability_interval import HIGH, LOW, HeldOutInterval, held_out_interval
from rareclass.model.scored import ScoredBatch, Seen, scored
from rareclass.model.targets import decision_of
from rareclass.model.targets.target import Decision
from rareclass.tables.databases.result_table import ResultTable
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, TablePlace, open_table

P = ParamSpec("P")

SCORE_SUFFIXES = (".csv", ".parquet", ".pq")
# Names of columns that no identifier may have, besides what the target calls its decision.
_OURS = ("score", "probability", LOW, HIGH, "percentile")
_SURE = "sure"  # of the models of hunts
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
    seen: Seen
    drift: Drift
    notes: list[str] = field(default_factory=list)  # what was asked for and is not there

    def as_plain_data(self) -> dict[str, Any]:
        """Return the outcome as dictionaries and numbers."""
        return {
            "n_rows": self.n_rows,
            "called": self.called,
            "threshold": self.threshold,
            "unseen_values": dict(self.seen.unseen_values),
            "outside_the_range": dict(self.seen.outside),
            "empty_where_none_was": dict(self.seen.emptied),
            "columns_left_out": self.seen.extra_columns,
            **self.drift.as_plain_data(),
        }


@dataclass(frozen=True)
class ScoreSettings:
    """How a file is to be scored."""

    id_column: str | None = None  # carried over to the scores
    separator: str | None = None  # of a CSV file; None finds out
    top: int | None = None  # see `CallBy`
    threshold: float | None = None
    explain: int | None = None  # so many reasons and cases beside rows called rare
    strict: bool = False  # refuse rows that are unlike those of training
    interval: bool = False  # of the probability as well


def score_file(
    content: ModelFile,
    data: TablePlace,
    out: Path,
    id_column: str | None,
    separator: str | None = None,
) -> Scoring:
    """`score_rows` with no settings but these."""
    return score_rows(content, data, out, ScoreSettings(id_column, separator))


def score_rows(
    content: ModelFile, data: TablePlace, out: Path | ResultTable, settings: ScoreSettings
) -> Scoring:
    """Score every row of a file of any size into a new file, row order kept.

    Parquet or CSV by its suffix, or a table of a database in one transaction.
    Columns: the identifier (or ``row``, counted from 1), ``score``
    (higher is rarer, or a higher level), ``probability`` of the rare class where the model has one
    (``probability_LEVEL`` of each level), for the folder of a hunt ``sure`` (`ListOrder.sure`),
    what each row is called (``called_rare``, or ``level``) and ``percentile`` (the share of the
    training majority, or of all training rows where the target has levels, with a lower score, in
    percent). With ``settings.interval`` also ``probability_low`` and ``probability_high``
    (`HeldOutInterval`). With ``settings.explain`` also why rows are called rare (`explainer_of`);
    for others these columns are empty.

    The so many highest rows of ``settings.top`` are known only at the end: rows wait in a temporary
    Parquet file beside `out`, and memory holds as many scores as are asked for.

    Raises `InputError` for anything wrong with the file, naming column, row and value, and, where
    ``settings.strict``, for rows unlike those of training (`refuse_drift`); `out` is not touched
    then.
    """
    check_score_path(out, data)
    file, seen = open_table(data, settings.separator, one_pass=True), Seen()
    scorer = Scorer(content, settings)
    scorer.check_id(file, out)
    with replacing(out) as temporary:
        n_called = scorer.write(file, temporary, seen)
        outcome = scorer.outcome(n_called, seen, str(data))
    return outcome


class Scorer:
    """A model that writes scores of tables, and says what came of it."""

    def __init__(self, content: ModelFile, settings: ScoreSettings) -> None:
        self._content, self._settings = content, settings
        with content.trusted_by_halves():
            self._decision = decision_of(content.model, content.metadata)
            explain = None if settings.explain is None else explainer_of(content, settings.explain)
            self._interval = held_out_interval(content) if settings.interval else None
        self._explains = explain is not None
        call_by = CallBy(settings.top, settings.threshold)
        self._calls = calls_by(self._decision, call_by, explain and self._trusted(explain))

    def _trusted(self, function: Callable[P, pl.DataFrame]) -> Callable[P, pl.DataFrame]:
        """What is worked out by parts of the model; see `ModelFile.trusted_by_halves`."""

        @wraps(function)
        def trusted(*args: P.args, **kwargs: P.kwargs) -> pl.DataFrame:
            with self._content.trusted_by_halves():
                return function(*args, **kwargs)

        return trusted

    def check_id(self, file: TableFile | SvmlightFile, out: Path | ResultTable) -> None:
        """Raise `InputError` where the column to carry over cannot stand in `out`."""
        content, settings = self._content, self._settings
        if settings.id_column is None:
            return
        reasons = [] if settings.explain is None else told_names(content, settings.explain)
        decision = self._decision
        sure = [_SURE] if content.sure else []
        ours = (*_OURS, *sure, *_of_levels(content, decision), decision.column, *reasons)
        _check_id(file, settings.id_column, out, ours)

    def write(self, file: TableFile | SvmlightFile, path: Any, seen: Seen) -> NDArray[np.intp]:
        """Score a table into a new file; how many rows were called each code.

        Rows are counted from those that were `seen` before on, which is filled on the way.
        """
        batches = scored(self._content, file, self._settings.id_column, seen, self._explains)
        columns_of = self._trusted(_columns)
        parts = (
            Part(columns_of(self._content, self._decision, each, seen, self._interval), each.rows)
            for each in batches
        )
        return self._calls.write(parts, path)

    def outcome(self, n_called: NDArray[np.intp], seen: Seen, data: str) -> Scoring:
        """What came of rows that were scored.

        Raises `InputError` where there are none, and, where ``strict``, where they are unlike those
        of training.
        """
        if not seen.n_rows:
            raise InputError(f"{data} has no rows.", "Give a file with rows.")
        rate, calls = None, self._calls
        if calls.threshold is not None:
            alerts = int(n_called[1])
            rate = alert_rate(self._content.held_out, calls.threshold, alerts, seen.n_rows)
        drift = drift_of(seen, rate)
        if self._settings.strict:
            refuse_drift(drift, data)
        names = self._decision.names
        named = {name: int(n) for name, n in zip(names, n_called, strict=True)}
        notes = note_on_cases(self._content) if self._explains else []
        sentence = calls.sentence(n_called)
        return Scoring(seen.n_rows, named, calls.threshold, sentence, seen, drift, notes)


def _columns(
    content: ModelFile,
    decision: Decision,
    batch: ScoredBatch,
    seen: Seen,
    interval: HeldOutInterval | None,
) -> pl.DataFrame:
    """The columns of some rows that do not depend on what they are called."""
    last = seen.n_rows + 1
    rows = pl.Series("row", np.arange(last - len(batch.scores), last))
    named = score_columns(content, decision, batch.scores, interval)
    return pl.DataFrame([rows if batch.kept is None else batch.kept, *named])


def score_columns(
    content: ModelFile,
    decision: Decision,
    scores: NDArray[np.float64],
    interval: HeldOutInterval | None = None,
) -> list[pl.Series]:
    """What is told of scores: they themselves, probabilities where there are some, percentiles.

    Those of a hunt's model have ``sure`` beside them, where a case was held out.

    A percentile is the share of the majority rows of training, in percent, that score less.
    """
    columns = [pl.Series("score", scores)]
    probability = None if content.calibration is None else content.calibration(scores)
    if probability is not None:
        columns.append(pl.Series("probability", probability))
    sure = None if content.sure is None else content.sure(scores)
    if sure is not None:
        columns.append(pl.Series(_SURE, sure))
    names = _of_levels(content, decision)
    if names and content.level_calibration is not None:
        columns += map(pl.Series, names, content.level_calibration(scores).T)
    if interval is not None:
        low, high = interval(scores, probability)
        columns += [pl.Series(LOW, low), pl.Series(HIGH, high)]
    quantiles = np.asarray(content.metadata[decision.quantiles])
    percents = np.linspace(0.0, 100.0, len(quantiles))
    return [*columns, pl.Series("percentile", np.interp(scores, quantiles, percents))]


def _of_levels(content: ModelFile, decision: Decision) -> list[str]:
    """Names of columns with the probabilities of levels, where the model has them, and not many."""
    if content.level_calibration is None or len(decision.names) > _MOST_LEVELS:
        return []
    return [f"probability_{name}" for name in decision.names]


def check_score_path(out: Path | ResultTable, data: TablePlace) -> None:
    """Raise `InputError` when scores of `data` cannot be written to `out`."""
    if isinstance(out, ResultTable):
        out.check()
        return
    if out.suffix.lower() not in SCORE_SUFFIXES:
        raise InputError(
            f"--out {out}: the name must end in .csv or .parquet, which decides the format."
        )
    check_not_input(out, "--out", {"the file to be scored": data})
    check_not_inside(out, "--out", data)
    check_writable(out)


def _check_id(
    file: TableFile | SvmlightFile, id_column: str, out: Path | ResultTable, ours: tuple[str, ...]
) -> None:
    if isinstance(file, SvmlightFile):
        raise InputError("--id: an svmlight file has no named columns.")
    if id_column not in file.columns:
        raise InputError(
            f"--id: there is no column {id_column!r}.", name_hint(id_column, file.columns)
        )
    if id_column in ours:
        raise InputError(f"--id {id_column}: a column of the scores has that name.")
    if out.suffix.lower() == ".csv":
        for first in islice(file.batches([id_column], batch_rows=1), 1):
            dtype = first[id_column].dtype
            if dtype.is_nested() or dtype in _NOT_IN_CSV:
                raise InputError(
                    f"--id {id_column}: cells of type {dtype} cannot be written to a CSV file.",
                    "Write .parquet instead, or choose another column.",
                )
