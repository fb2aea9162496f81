"""Alerts of a stream: which rows, why, and the file that they are written to."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.streams import Encoded, Feature
from rareclass.errors import InputError
from rareclass.model.beside import check_days
from rareclass.remote import path_of
from rareclass.stream.alert_budget import AlertBudget
from rareclass.stream.arrivals import Arrivals
from rareclass.stream.days import NO_DAY, days_of_cells
from rareclass.stream.growing_file import GrowingFile
from rareclass.stream.moving_threshold import Decided, MovingThreshold
from rareclass.stream.reasons import Reason, Weights, reasons_of
from rareclass.tables.databases.address import Query
from rareclass.tables.raw_cells import is_empty, writable

N_REASONS = 3
FIELDS = ("row", "id", "time", "score", "place", "recent", "threshold", "file", "line")
# The raises of a row's features, of the row and weights.
Raises = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
SUFFIXES = (".csv", ".jsonl", ".ndjson")


class Alerts:
    """Raises alerts within a budget and appends them to a file.

    The file has a row an alert: ``row`` (number in the stream, from 1), ``id`` and ``time`` as
    given, ``score``, its ``place`` among the last ``recent`` scores (1: higher than all), the
    ``threshold`` in force, ``file`` and ``line``, and the reasons: columns that raised the score
    most. JSON lines have those as a list of column, value and raises, CSV as text.

    `time_column` gives the day of each row; None where the budget is in rows.
    """

    def __init__(
        self, path: Path, budget: AlertBudget, time_column: str | None = None, length: int = 0
    ) -> None:
        self.time_column = time_column
        self.count = 0
        self.threshold = MovingThreshold(budget)
        self.weights = Weights()
        self._file = GrowingFile(path, length)
        self._is_csv = path.suffix.lower() == ".csv"

    @property
    def path(self) -> Path:
        """Where they are written."""
        return self._file.path

    def take(
        self,
        arrivals: Arrivals,
        encoded: Encoded,
        scores: NDArray[np.float64],
        features: tuple[Feature, ...],
        raises: Raises,
    ) -> int:
        """Decide on the rows of a batch, write the alerts, and return how many there are.

        `scores` are of the rows with cells of their own, `features` those of the encoder, and
        `raises` says what each of them does to the score of a row by the weights of a look.
        """
        days = None if self.threshold.budget.rows is not None else self._days(arrivals)
        decided = self.threshold.decide(scores, days)
        found = np.flatnonzero(decided.is_alert)
        if len(found):
            columns = [feature.column for feature in features]
            rows = [
                self._row(row, arrivals, decided, scores)
                | {"reasons": self._reasons(row, arrivals, encoded.X, columns, raises)}
                for row in found.tolist()
            ]
            self._write(rows)
        self.weights.forget()
        return len(found)

    def _days(self, arrivals: Arrivals) -> NDArray[np.int64]:
        cells = arrivals.rows.columns.get(self.time_column or "")
        if cells is None:
            return np.full(arrivals.rows.n_rows, NO_DAY)
        return days_of_cells(cells)

    def _row(
        self, row: int, arrivals: Arrivals, decided: Decided, scores: NDArray[np.float64]
    ) -> dict[str, Any]:
        times = arrivals.rows.columns.get(self.time_column or "")
        return {
            "row": int(arrivals.numbers[arrivals.places[row]]),
            "id": arrivals.ids[row],
            "time": None if times is None else _plain(times[row]),
            "score": float(scores[row]),
            "place": int(decided.places[row]),
            "recent": int(decided.recent[row]),
            "threshold": float(decided.thresholds[row]),
            "file": arrivals.rows.file,
            "line": int(arrivals.rows.lines[row]),
        }

    def _reasons(
        self,
        row: int,
        arrivals: Arrivals,
        X: NDArray[np.float64],
        columns: list[str],
        raises: Raises,
    ) -> list[Reason]:
        weights = self.weights.at(int(arrivals.numbers[arrivals.places[row]]))
        cells = arrivals.rows.columns
        own = {name: _plain(cells[name][row]) for name in dict.fromkeys(columns)}
        return reasons_of(raises(X[row], weights), columns, own, N_REASONS)

    def _write(self, rows: list[dict[str, Any]]) -> None:
        if not self._is_csv:
            lines = [
                json.dumps(row | {"reasons": [each._asdict() for each in row["reasons"]]},
                           ensure_ascii=False)
                for row in rows
            ]  # fmt: skip
            self._file.add("".join(line + "\n" for line in lines))
        else:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            if not self._file.length:
                writer.writerow([*FIELDS, *(f"reason_{k + 1}" for k in range(N_REASONS))])
            for row in rows:
                said = [f"{each.column} = {_shown(each.value)} ({each.raises:+.3g})"
                        for each in row["reasons"]]  # fmt: skip
                cells = [*(row[name] for name in FIELDS), *said, *[""] * (N_REASONS - len(said))]
                writer.writerow(cells)
            self._file.add(writable(text.getvalue()))
        self.count += len(rows)

    def sync(self) -> None:
        """Flush to disk, before a checkpoint counts on it."""
        self._file.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def to_state(self) -> dict[str, Any]:
        """Return what `from_state` needs: arrays and values that JSON can write."""
        return {
            "count": self.count,
            "length": self._file.length,
            "threshold": self.threshold.to_state(),
            "weights": self.weights.to_state(),
        }

    @classmethod
    def from_state(cls, path: Path, time_column: str | None, state: dict[str, Any]) -> "Alerts":
        """Open the file again as it was when `to_state` was called."""
        threshold = MovingThreshold.from_state(state["threshold"])
        alerts = cls(path, threshold.budget, time_column, int(state["length"]))
        alerts.count = int(state["count"])
        alerts.threshold = threshold
        alerts.weights = Weights.from_state(state["weights"])
        return alerts


def check_alert_options(
    source: str | Query, path: Path | None, budget: str | None, time_column: str | None
) -> AlertBudget | None:
    """The budget that was given; raises `InputError` where options of alerts contradict."""
    if path is None:
        for option, given in (("--alert-budget", budget), ("--time", time_column)):
            if given is not None:
                raise InputError(
                    f"{option} is about alerts, and none are asked for.",
                    "Name a file for them with --alerts.",
                )
        return None
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"--alerts {path}: the suffix does not say which format it is.",
            "Give a name that ends in .jsonl or .csv.",
        )
    is_folder = isinstance(source, str) and path_of(source).is_dir()
    if is_folder and path_of(str(source)).resolve() in path.resolve().parents:
        raise InputError(
            f"--alerts {path} lies in the folder that the rows come from, and would be read again.",
            "Give a file elsewhere.",
        )
    parsed = None if budget is None else AlertBudget.parse(budget)
    if parsed is not None and parsed.rows is None and time_column is None:
        raise InputError(
            f"--alert-budget {budget} needs the day of each row.",
            "Name the column of dates with --time, or give a budget in rows, such as 50/10000.",
        )
    return parsed


def new_alerts(path: Path, budget: AlertBudget, time_column: str | None) -> Alerts:
    """Alerts in a file that is not there yet, or is empty.

    Raises `InputError` where it holds something, or cannot be made.
    """
    if path.exists() and path.is_file() and path.stat().st_size:
        raise InputError(
            f"--alerts {path} is there already, and was not begun by this stream.",
            "Give another name, or remove it.",
        )
    return Alerts(path, budget, time_column)


def check_times(cells: NDArray[Any] | None, lines: NDArray[np.int64], column: str) -> None:
    """Raise `InputError` where a cell of the first rows is no time, or they count seconds."""
    if cells is None:
        return
    days = days_of_cells(cells)
    for row in np.flatnonzero(days == NO_DAY).tolist():
        cell = _plain(cells[row])
        if not is_empty(cell):
            raise InputError(
                f"Line {lines[row]}: column {column!r}: {cell!r} is no time.",
                "Give --time a column of dates, such as 2026-03-01 or 2026-03-01T12:00.",
            )
    known = days != NO_DAY
    if all(_is_number(cell) for cell in cells[known].tolist()):
        check_days(days[known], f"--time {column}")


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _plain(cell: Any) -> Any:
    """A cell as JSON can write it."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, float) and cell != cell:
        return None
    return cell if cell is None or isinstance(cell, (str, int, float, bool)) else str(cell)


def _shown(value: Any) -> str:
    if value is None:
        return "(empty)"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
