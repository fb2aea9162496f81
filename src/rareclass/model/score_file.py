"""``rareclass score``: a table of any size to a file, a database table or a folder of scores."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import lru_cache, wraps
from itertools import islice
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError, name_hint
from rareclass.files import check_not_input, check_not_inside, check_writable, replacing
from rareclass.model.calls import CallBy, Part, calls_by
from rareclass.model.drift import Drift, InputSummary, alert_rate, drift_of, refuse_drift
from rareclass.model.explained import explainer_of, note_on_cases, told_names
from rareclass.model.facts import BallFacts
from rareclass.model.model import Model, ScoredBatch
from rareclass.model.probability_interval import HIGH, LOW, HeldOutInterval
from rareclass.tables.databases.result_table import ResultTable
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import StoredTable, TableFile, TablePlace, open_table

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
    seen: InputSummary
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


def score_rows(
    content: Model, data: TablePlace, out: Path | ResultTable, settings: ScoreSettings
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
    file, seen = open_table(data, settings.separator, one_pass=True), InputSummary()
    scorer = Scorer(content, settings)
    scorer.check_id(file, out)
    with replacing(out) as temporary:
        n_called = scorer.write(file, temporary, seen)
        outcome = scorer.outcome(n_called, seen, str(data))
    return outcome


class Scorer:
    """A model that writes scores of tables, and says what came of it."""

    def __init__(self, content: Model, settings: ScoreSettings) -> None:
        self._content, self._settings = content, settings
        with content.naming_file():
            explain = None if settings.explain is None else explainer_of(content, settings.explain)
            self._interval = content.probability_interval if settings.interval else None
        self._explains = explain is not None
        call_by = CallBy(settings.top, settings.threshold)
        self._calls = calls_by(content.decision, call_by, explain and self._trusted(explain))

    def _trusted(self, function: Callable[P, pl.DataFrame]) -> Callable[P, pl.DataFrame]:
        """What is worked out by parts of the model; see `Model.naming_file`."""

        @wraps(function)
        def trusted(*args: P.args, **kwargs: P.kwargs) -> pl.DataFrame:
            with self._content.naming_file():
                return function(*args, **kwargs)

        return trusted

    def check_id(self, file: TableFile | SvmlightFile, out: Path | ResultTable) -> None:
        """Raise `InputError` where the column to carry over cannot stand in `out`."""
        content, settings = self._content, self._settings
        if settings.id_column is None:
            return
        reasons = [] if settings.explain is None else told_names(content, settings.explain)
        sure = [_SURE] if isinstance(content.facts.method, BallFacts) else []
        ours = (*_OURS, *sure, *_level_columns(content), content.decision.column, *reasons)
        _check_id(file, settings.id_column, out, ours)

    def write(
        self, file: TableFile | SvmlightFile, path: Any, seen: InputSummary
    ) -> NDArray[np.intp]:
        """Score a table into a new file; how many rows were called each code.

        Rows are counted from those that were `seen` before on, which is filled on the way.
        """
        batches = self._content.score_batches(file, self._settings.id_column, seen, self._explains)
        columns_of = self._trusted(_columns)
        parts = (
            Part(columns_of(self._content, each, seen, self._interval), each.rows)
            for each in batches
        )
        return self._calls.write(parts, path)

    def outcome(self, n_called: NDArray[np.intp], seen: InputSummary, data: str) -> Scoring:
        """What came of rows that were scored.

        Raises `InputError` where there are none, and, where ``strict``, where they are unlike those
        of training.
        """
        if not seen.n_rows:
            raise InputError(
                f"{data} has no rows.", "Give a file with rows.", ErrorKind.TOO_FEW_ROWS
            )
        rate, calls = None, self._calls
        if calls.threshold is not None:
            alerts = int(n_called[1])
            rate = alert_rate(self._content.held_out, calls.threshold, alerts, seen.n_rows)
        drift = drift_of(seen, rate)
        if self._settings.strict:
            refuse_drift(drift, data)
        names = self._content.classes
        named = {name: int(n) for name, n in zip(names, n_called, strict=True)}
        notes = note_on_cases(self._content) if self._explains else []
        sentence = calls.sentence(n_called)
        return Scoring(seen.n_rows, named, calls.threshold, sentence, seen, drift, notes)


def _columns(
    content: Model,
    batch: ScoredBatch,
    seen: InputSummary,
    interval: HeldOutInterval | None,
) -> pl.DataFrame:
    """The columns of some rows that do not depend on what they are called."""
    last = seen.n_rows + 1
    rows = pl.Series("row", np.arange(last - len(batch.scores), last))
    named = score_columns(content, batch.scores, interval)
    return pl.DataFrame([rows if batch.kept is None else batch.kept, *named])


def score_columns(
    model: Model, scores: NDArray[np.float64], interval: HeldOutInterval | None = None
) -> list[pl.Series]:
    """Return the columns of some scores: score, probabilities, sureness, bounds, percentile.

    Probabilities, of the rare class or of each level, stand where the model has a calibration;
    ``sure`` for a hunt of which a case was held out; bounds where an `interval` is given.
    """
    columns = [pl.Series("score", scores)]
    probability = None if model.rare_calibration is None else model.rare_calibration(scores)
    if probability is not None:
        columns.append(pl.Series("probability", probability))
    sure = model.sure(scores)
    if sure is not None:
        columns.append(pl.Series(_SURE, sure))
    names = _level_columns(model)
    if names and model.level_calibration is not None:
        columns += map(pl.Series, names, model.level_calibration(scores).T)
    if interval is not None:
        low, high = interval(scores, probability)
        columns += [pl.Series(LOW, low), pl.Series(HIGH, high)]
    return [*columns, pl.Series("percentile", model.percentiles(scores))]


def _level_columns(model: Model) -> list[str]:
    """Return names of columns with probabilities of levels; none where there are too many."""
    if model.level_calibration is None or len(model.classes) > _MOST_LEVELS:
        return []
    return [f"probability_{name}" for name in model.classes]


def check_score_path(out: Path | ResultTable, data: TablePlace) -> None:
    """Raise `InputError` when scores of `data` cannot be written to `out`."""
    if isinstance(out, ResultTable):
        out.check()
        return
    if out.suffix.lower() not in SCORE_SUFFIXES:
        raise InputError(
            f"--out {out}: the name must end in .csv or .parquet, which decides the format.",
            "",
            ErrorKind.SETTING,
        )
    check_not_input(out, "--out", {"the file to be scored": data})
    check_not_inside(out, "--out", data)
    check_writable(out)


def _check_id(
    file: TableFile | SvmlightFile, id_column: str, out: Path | ResultTable, ours: tuple[str, ...]
) -> None:
    if isinstance(file, SvmlightFile):
        raise InputError("--id: an svmlight file has no named columns.", "", ErrorKind.UNSUPPORTED)
    if id_column not in file.columns:
        raise InputError(
            f"--id: there is no column {id_column!r}.",
            name_hint(id_column, file.columns),
            ErrorKind.MISSING_COLUMN,
        )
    if id_column in ours:
        raise InputError(
            f"--id {id_column}: a column of the scores has that name.", "", ErrorKind.COLUMN_NAMES
        )
    if out.suffix.lower() == ".csv":
        for first in islice(file.batches([id_column], batch_rows=1), 1):
            dtype = first[id_column].dtype
            if dtype.is_nested() or dtype in _NOT_IN_CSV:
                raise InputError(
                    f"--id {id_column}: cells of type {dtype} cannot be written to a CSV file.",
                    "Write .parquet instead, or choose another column.",
                    ErrorKind.CELL,
                )


# Stretches for each worker, so that they can be shared out anew when one is lost, and the most
# rows of one, unless a row group has more: a worker holds them once more while it works.
_A_WORKER = 4
_MOST_ROWS = 1_000_000


def stretches_for(file: Any, client: Any) -> list[tuple[int, int]]:
    """First row and the one after the last of each stretch, for the workers of a client.

    Raises `InputError` for what is no table of Parquet.
    """
    if not isinstance(file, StoredTable):
        raise InputError(
            f"--dask: {file.path} is no table of Parquet, which workers read in pieces.",
            "Write it as Parquet.",
            ErrorKind.CONNECTION,
        )
    n_wanted = _A_WORKER * max(1, len(client.nthreads()))
    return file.stretches(min(_MOST_ROWS, -(-file.estimate_rows() // n_wanted)))


def name_for_workers(path: Any) -> str:
    """The whole name of a file or folder, wherever a worker was started."""
    return str(path.resolve() if isinstance(path, Path) else path)


@lru_cache(maxsize=4)
def opened(name: str) -> StoredTable:
    """The table, on a worker: a folder may have thousands of footers, which are read once."""
    table = open_table(name)
    assert isinstance(table, StoredTable)
    return table


_MOST_REMOVALS, _BETWEEN_REMOVALS = 100, 0.05


def score_on_workers(
    content: Model, data: TablePlace, out: Path, settings: ScoreSettings, client: Any
) -> Scoring:
    """Score a table of Parquet into a folder of Parquet files, one a stretch, in row order.

    Columns are those of `score_rows`. The folder appears when all of its files are written:
    workers write into a hidden one beside it.

    Raises `InputError` as `score_rows` does; for a table of another format, and for `top`, which
    no worker knows alone.
    """
    if settings.top is not None:
        raise InputError(
            "--top: no worker knows which rows are the highest of all.",
            "Leave it out, and give --threshold, or score without --dask.",
            ErrorKind.CONNECTION,
        )
    file = open_table(data, settings.separator)
    stretches = stretches_for(file, client)
    scorer = Scorer(content, settings)
    scorer.check_id(file, out / "part.parquet")
    waiting = out.with_name(f".{out.name}.parts")
    _remove(waiting)
    waiting.mkdir()
    try:
        name = name_for_workers(file.path)
        found = _scored_parts(content, settings, name, stretches, waiting.resolve(), client)
        n_called = np.sum([called for called, _ in found], axis=0)
        seen = found[0][1].joined([each for _, each in found[1:]]) if found else InputSummary()
        outcome = scorer.outcome(n_called, seen, str(data))
        _put(waiting, out)
    finally:
        _remove(waiting)
    return outcome


def check_score_folder(out: Path, data: TablePlace, overwrite: bool) -> None:
    """Raise `InputError` when scores of `data` cannot be written to a folder `out`.

    One that is there is replaced if asked to, and if it holds nothing but files of scores.
    """
    if out.suffix or (out.exists() and not out.is_dir()):
        raise InputError(
            f"--out {out}: with --dask scores are a folder of Parquet files.",
            "Give a name without a suffix.",
            ErrorKind.COMBINATION,
        )
    check_not_input(out, "--out", {"the file to be scored": data})
    check_not_inside(out, "--out", data)
    check_writable(out.parent / f".{out.name}.parts.parquet")
    there = [each.name for each in out.iterdir()] if out.is_dir() else []
    others = [name for name in there if not fnmatch(name, "part-*.parquet")]
    if others:
        raise InputError(
            f"--out {out} is a folder with {others[0]!r} in it, which is no file of scores.",
            "Give the name of a folder that is not there yet.",
            ErrorKind.EXISTING_FILE,
        )
    if there and not overwrite:
        raise InputError(
            f"--out {out} exists already.",
            "Give another name, or --overwrite to replace it.",
            ErrorKind.EXISTING_FILE,
        )


def _scored_parts(
    content: Model,
    settings: ScoreSettings,
    name: str,
    stretches: list[tuple[int, int]],
    folder: Path,
    client: Any,
) -> list[tuple[NDArray[np.intp], InputSummary]]:
    from dask import delayed

    model, score = delayed(content, pure=False), delayed(_score_stretch, pure=False)
    tasks = [
        score(model, settings, name, stretch, str(folder / f"part-{k:05}.parquet"))
        for k, stretch in enumerate(stretches)
    ]
    futures = client.compute(tasks)
    try:
        return list(client.gather(futures))
    except BaseException:
        if client.status == "running":
            client.cancel(futures)
        raise


def _remove(folder: Path) -> None:
    """Remove a folder into which tasks that cannot be stopped may still be writing.

    Once it is gone none of them makes it again.
    """
    for _ in range(_MOST_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_BETWEEN_REMOVALS)


def _put(waiting: Path, out: Path) -> None:
    """The finished folder in its place, and one that was there before away."""
    old = out.with_name(f".{out.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.rename(old)
    waiting.rename(out)
    shutil.rmtree(old, ignore_errors=True)


def _score_stretch(
    content: Model, settings: ScoreSettings, name: str, stretch: tuple[int, int], out: str
) -> tuple[NDArray[np.intp], InputSummary]:
    """Score one stretch, on a worker; a task that is run again writes the same file again."""
    start, stop = stretch
    seen = InputSummary(n_rows=start)
    with replacing(Path(out)) as temporary:
        n_called = Scorer(content, settings).write(
            opened(name).stretch(start, stop), temporary, seen
        )
    return n_called, replace(seen, n_rows=seen.n_rows - start)
