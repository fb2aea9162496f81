"""The rows of a report: their scores, classes and what stands beside, read batch by batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.target import is_rare, labels_as_text
from rareclass.errors import InputError, name_hint
from rareclass.model.beside import check_days, costs_of, times_of
from rareclass.model.model_file import ModelFile
from rareclass.model.scored import Seen, scored
from rareclass.model.targets import decision_of
from rareclass.model.targets.rare_class import RareDecision
from rareclass.report.columns_now import ColumnsNow
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, TablePlace, open_table

Floats = NDArray[np.float64]
# Highest rows that are kept, to say what raises their scores.
MOST_TOP = 100
# Rare rows that are kept whole, the lowest first, to say what is like what.
MOST_RARE = 5_000


@dataclass(frozen=True)
class Asked:
    """What the report is to be about."""

    target: str | None = None
    time: str | None = None
    groups: str | None = None
    costs: Mapping[str, float | str] | None = None
    n_shown: int = 0  # rows whose cells may be shown
    separator: str | None = None


@dataclass(frozen=True)
class ReadRows:
    """Scored rows with classes."""

    name: str
    y: NDArray[np.bool_]
    scores: Floats
    rows: NDArray[np.int64]  # where each is in the file, from 0; without a class they are left out
    n_unlabelled: int
    seen: Seen
    columns: ColumnsNow | None
    time: Any = None
    groups: NDArray[Any] | None = None
    costs: dict[str, Any] | None = None
    kept: pl.DataFrame | None = None  # typed rows, of `kept_rows`
    kept_rows: NDArray[np.int64] | None = None  # places among the labelled rows


def read_rows(content: ModelFile, data: TablePlace, asked: Asked) -> ReadRows:
    """Score the rows of a file and read their classes.

    Raises `InputError` where the model is of levels, a column is missing, there is one class only,
    costs are no numbers, or times are none.
    """
    decision = check_rare_class(content)
    file, seen = open_table(data, asked.separator), Seen()
    target = asked.target or content.metadata["target"]
    beside = _beside(file, asked)
    columns = None if isinstance(file, SvmlightFile) else ColumnsNow(content)
    keeper = _Keeper(content)
    labels, scores = [], []
    for batch in scored(content, file, target, seen, with_rows=columns is not None):
        assert batch.kept is not None
        labels.append(labels_as_text(batch.kept))
        if columns is not None:
            columns.add(batch.rows)
            keeper.add(batch.rows, batch.scores, labels[-1])
        scores.append(batch.scores)
    if not scores:
        raise InputError(f"{data} has no rows.", "Give a file with rows.")
    codes = decision.codes(pl.concat(labels), str(data))
    every = np.concatenate(scores)
    labelled = np.flatnonzero(codes >= 0)
    y, value = codes[labelled] == 1, every[labelled]
    kept, kept_rows = keeper.found(y, value, labelled)
    return ReadRows(
        data.name,
        y,
        value,
        labelled,
        int((codes < 0).sum()),
        seen,
        columns,
        _time(beside, asked, labelled),
        None if asked.groups is None else _named(beside[asked.groups])[labelled],
        _costs(beside, asked, labelled),
        kept,
        kept_rows,
    )


def check_rare_class(content: ModelFile) -> RareDecision:
    """How the model decides; raises `InputError` where it is of levels."""
    decision = decision_of(content.model, content.metadata)
    if not isinstance(decision, RareDecision):
        raise InputError(
            "A report is of a rare class, and this model is of levels.",
            "rareclass evaluate says how good it is; fit one with --positive LEVEL for a report.",
        )
    return decision


class _Keeper:
    """The rows that more is said of than their counts: rare ones, and the highest of each batch."""

    # Rare rows that are held before it is known which of them are the lowest.
    _MOST_HELD = 200_000

    def __init__(self, content: ModelFile) -> None:
        self._label: str = content.metadata["rare_label"]
        self._known = content.metadata.get("label_counts", ())
        self._parts: list[pl.DataFrame] = []
        self._rows: list[NDArray[np.int64]] = []
        self._n_seen = self._n_held = 0

    def add(self, rows: pl.DataFrame, scores: Floats, labels: pl.Series) -> None:
        """Take in a batch; labels are text, null where there are none."""
        labelled = np.flatnonzero(labels.is_not_null().to_numpy())
        rare = labelled[is_rare(labels.drop_nulls(), self._label, self._known)]
        if self._n_held > self._MOST_HELD:
            rare = rare[:0]
        top = labelled[np.argsort(-scores[labelled], kind="stable")[:MOST_TOP]]
        chosen = np.union1d(rare, top)
        self._n_held += len(rare)
        self._parts.append(rows[chosen])
        self._rows.append(self._n_seen + chosen)
        self._n_seen += rows.height

    def found(
        self, y: NDArray[np.bool_], scores: Floats, labelled: NDArray[np.int64]
    ) -> tuple[pl.DataFrame | None, NDArray[np.int64] | None]:
        """The highest rows and the rare ones, the lowest of these before others."""
        if not self._parts:
            return None, None
        held = np.concatenate(self._rows)
        top = np.argsort(-scores, kind="stable")[:MOST_TOP]
        rare = np.flatnonzero(y & np.isin(labelled, held))
        rare = rare[np.argsort(scores[rare], kind="stable")]
        if len(rare) > MOST_RARE:
            spread = np.linspace(0, len(rare) - 1, MOST_RARE // 2).astype(int)
            rare = np.concatenate([rare[: MOST_RARE // 2], rare[spread]])
        places = np.unique(np.concatenate([top, rare]))
        return pl.concat(self._parts)[np.searchsorted(held, labelled[places])], places


def _beside(file: TableFile | SvmlightFile, asked: Asked) -> dict[str, pl.Series]:
    """Columns that are asked for beside the model's."""
    of_costs = [each for each in (asked.costs or {}).values() if isinstance(each, str)]
    given = [("--time", asked.time), ("--groups", asked.groups)]
    wanted = [(option, name) for option, name in given if name is not None]
    wanted += [("--cost", name) for name in of_costs]
    if not wanted:
        return {}
    if isinstance(file, SvmlightFile):
        raise InputError(
            f"{wanted[0][0]}: {file.path} is an svmlight file, which has no named columns."
        )
    for option, name in wanted:
        if name not in file.columns:
            raise InputError(
                f"{option}: {file.path} has no column {name!r}.", name_hint(name, file.columns)
            )
    names = list(dict.fromkeys(name for _, name in wanted))
    frame = pl.concat(list(file.batches(names)))
    return {name: frame[name] for name in names}


def _time(beside: dict[str, pl.Series], asked: Asked, labelled: NDArray[np.int64]) -> Any:
    if asked.time is None:
        return None
    time = times_of(beside[asked.time][labelled], labelled + 1, "--time")
    check_days(time, f"--time {asked.time}")
    return time


def _named(column: pl.Series) -> NDArray[Any]:
    return column.cast(pl.String).fill_null("(empty)").to_numpy()


def _costs(
    beside: dict[str, pl.Series], asked: Asked, labelled: NDArray[np.int64]
) -> dict[str, Any] | None:
    if not asked.costs:
        return None
    found: dict[str, Any] = {}
    for name, given in asked.costs.items():
        if not isinstance(given, str):
            if not (np.isfinite(given) and given >= 0):
                raise InputError(f"--cost {name}={given:g}: a cost is a number of at least 0.")
            found[name] = given
            continue
        found[name] = costs_of(beside[given][labelled], labelled + 1, f"--cost {name}={given}")
    return found
