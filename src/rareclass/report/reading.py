"""The rows of a report, read batch by batch: scores, classes, times, groups and costs."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.decide.constraints import check_cost
from rareclass.encoding.target import is_rare
from rareclass.errors import setting
from rareclass.metrics.checked import CheckedMeasures, checked_measures, weights_at
from rareclass.model.drift import InputSummary
from rareclass.model.evaluate import Promises, judge_promises
from rareclass.model.facts import DatedRows, ScoredRows
from rareclass.model.model import Model, labelled_scores, rows_alike
from rareclass.model.threshold import costs_of, dated_rows, known_time
from rareclass.report import ReportOptions
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.reading import read_strings
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, TablePlace, fetch, named_columns, open_table

Floats = NDArray[np.float64]
# Highest rows that are kept, to explain their scores.
MOST_TOP = 100
# Rare rows that are kept whole, the lowest first, to find the ones that resemble them.
MOST_RARE = 5_000


class WholeRows(NamedTuple):
    """Rows kept with all their cells."""

    cells: pl.DataFrame
    places: NDArray[np.int64]  # of each among the labelled rows


@dataclass(frozen=True)
class ReadRows:
    """Scored rows with classes."""

    name: str
    scored: ScoredRows  # those without a class are left out
    dated: DatedRows  # those without a class too, as they may raise alerts
    rows: NDArray[np.int64]  # of each in the file, from 0
    n_unlabelled: int
    seen: InputSummary
    time_column: str | None = None
    groups: NDArray[Any] | None = None  # subgroups to compare
    costs: dict[str, Any] | None = None
    whole: WholeRows | None = None
    ids: list[str] | None = None
    checked: CheckedMeasures | None = None  # where only some rows were checked
    promises: Promises = field(default_factory=Promises)  # where all rows have classes

    @property
    def y(self) -> NDArray[np.bool_]:
        """Mask of the rare rows."""
        return self.scored.y == 1

    @property
    def time(self) -> Any:
        """Times of the rows with a class that have one; None without times."""
        time, rows = self.dated.time, self.dated.rows
        return None if time is None else time[rows.y >= 0]


def read_rows(
    content: Model, data: TablePlace, options: ReportOptions, text: TextSettings = DETECTED
) -> ReadRows:
    """Score the rows of a file and read their classes.

    Raises `InputError` where the model is of levels, a column is missing, all rows are of one
    class, or a cell is no cost or no time.
    """
    rare_labels = content.rare_class.labels
    file, seen = open_table(data, text), content.new_summary()
    of_model = known_time(content)  # looked at without being asked for, as evaluate does
    is_asked = options.time is not None
    if options.time is None and options.journal is None and of_model in file.columns:
        options = replace(options, time=of_model)
    beside = _columns_beside(file, options)
    keeper, checked, labels, measures = RowKeeper(rare_labels), None, None, None
    if options.journal is not None:
        from rareclass.review.estimates import read_checked

        checked, target = read_checked(content, data, options.journal, text), content.rare_class
        names = pl.Series([None, target.rest_label, target.labels[0]], dtype=pl.String)
        labels = names.gather(np.where(checked.rows_that_count(), checked.sample.y, -1) + 1)
    look = keeper.add if file.columns else None
    every = labelled_scores(content, file, str(data), seen, options.target, labels, look)
    rows = every.labelled()
    labelled = np.flatnonzero(every.y >= 0)
    groups = ids = None
    if checked is not None:
        at = every.scores, checked.sample, content.threshold
        rows, measures = rows._replace(weight=weights_at(*at)[labelled]), checked_measures(*at)
    dated = DatedRows(every if checked is None else rows)
    if options.time is not None:
        dated = dated_rows(dated.rows, beside[options.time], is_asked)
    promises = Promises()
    if checked is None:
        dated = dated._replace(alike=rows_alike(content, every))
        promises = judge_promises(content, rows, dated)
    if options.groups is not None:
        groups = read_strings(beside[options.groups][labelled]).fill_null("(empty)").to_numpy()
    if options.id_column is not None:
        ids = beside[options.id_column].cast(pl.String).fill_null("")[labelled].to_list()
    return ReadRows(
        data.name,
        rows,
        dated,
        labelled,
        len(every.y) - len(rows.y) if checked is None else 0,
        seen,
        options.time,
        groups,
        _costs(beside, options, labelled),
        keeper.kept(rows.y == 1, rows.scores, labelled),
        ids,
        measures,
        promises,
    )


class RowKeeper:
    """Keeps the rare rows and the highest rows of each batch, with all their cells."""

    # Rare rows that are held before the lowest of them are known.
    _MOST_HELD = 200_000

    def __init__(self, rare: tuple[str, ...]) -> None:
        self._rare = rare
        self._parts: list[pl.DataFrame] = []
        self._rows: list[NDArray[np.int64]] = []
        self._n_seen = self._n_held = 0

    def add(self, rows: pl.DataFrame, scores: Floats, labels: pl.Series) -> None:
        """Look through a batch; labels are text, null for rows without a class."""
        labelled = np.flatnonzero(labels.is_not_null().to_numpy())
        rare = labelled[is_rare(labels.drop_nulls(), self._rare)]
        if self._n_held > self._MOST_HELD:
            rare = rare[:0]
        top = labelled[np.argsort(-scores[labelled], kind="stable")[:MOST_TOP]]
        chosen = np.union1d(rare, top)
        self._n_held += len(rare)
        self._parts.append(rows[chosen])
        self._rows.append(self._n_seen + chosen)
        self._n_seen += rows.height

    def kept(
        self, y: NDArray[np.bool_], scores: Floats, labelled: NDArray[np.int64]
    ) -> WholeRows | None:
        """Return the highest rows and the rare ones, of these the lowest before others."""
        if not self._parts:
            return None
        held = np.concatenate(self._rows)
        top = np.argsort(-scores, kind="stable")[:MOST_TOP]
        rare = np.flatnonzero(y & np.isin(labelled, held))
        rare = rare[np.argsort(scores[rare], kind="stable")]
        if len(rare) > MOST_RARE:
            spread = np.linspace(0, len(rare) - 1, MOST_RARE // 2).astype(int)
            rare = np.concatenate([rare[: MOST_RARE // 2], rare[spread]])
        places = np.unique(np.concatenate([top, rare]))
        return WholeRows(pl.concat(self._parts)[np.searchsorted(held, labelled[places])], places)


def _columns_beside(file: TableFile | SvmlightFile, options: ReportOptions) -> dict[str, pl.Series]:
    """Columns of time, groups and costs, which the model does not look at."""
    wanted = [("time", options.time), ("groups", options.groups), ("id_column", options.id_column)]
    wanted += [("costs", cost) for cost in (options.costs or {}).values() if isinstance(cost, str)]
    named = {name: option for option, name in wanted if name is not None}
    for name, option in named.items():
        named_columns(file, [name], option)
    return fetch(named_columns(file), list(named)).to_dict() if named else {}


def _costs(
    beside: dict[str, pl.Series], options: ReportOptions, labelled: NDArray[np.int64]
) -> dict[str, Any] | None:
    if not options.costs:
        return None
    costs: dict[str, Any] = {}
    for name, cost in options.costs.items():
        check_cost(name, cost)
        costs[name] = cost
        if isinstance(cost, str):
            given = setting("costs", f"{name}={cost}")
            costs[name] = costs_of(beside[cost][labelled], labelled + 1, given)
    return costs
