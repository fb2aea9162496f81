"""What rows are called, in a file of scores: by thresholds, or the so many highest."""

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError, counted
from rareclass.model.rare_class import RareDecision
from rareclass.model.target import Decision


class ScoreWriter(Protocol):
    """Takes scored rows a batch at a time."""

    def write(self, frame: pl.DataFrame) -> None:
        """Write the next rows."""
        ...

    def __enter__(self) -> "ScoreWriter": ...

    def __exit__(self, *error: object) -> None: ...


class CsvWriter:
    """Writes CSV; the first column is the user's own, truth values of ours are 1 and 0."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._is_first = True

    def write(self, frame: pl.DataFrame) -> None:
        """Write the next rows."""
        ours = frame.columns[1:]
        flags = [pl.col(name).cast(pl.Int8) for name in ours if frame[name].dtype == pl.Boolean]
        frame.with_columns(flags).write_csv(self._file, include_header=self._is_first)
        self._is_first = False

    def __enter__(self) -> "CsvWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


class ParquetWriter:
    """Writes Parquet, with the types of the first rows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None

    def write(self, frame: pl.DataFrame) -> None:
        """Write the next rows."""
        table: pa.Table = frame.to_arrow()
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table.cast(self._writer.schema))

    def __enter__(self) -> "ParquetWriter":
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()


def score_writer(path: Path) -> ScoreWriter:
    """Return the writer for a file of this name."""
    return CsvWriter(path) if path.suffix.lower() == ".csv" else ParquetWriter(path)


_READ_ROWS = 50_000


class Part(NamedTuple):
    """Consecutive rows of a file of scores, before it is known what they are called."""

    columns: pl.DataFrame  # the identifier, the score, ..., the percentile
    rows: Any = None  # what they were scored from, where something is to be said of called rows


Explain = Callable[[Any], pl.DataFrame]
"""Columns for rows that are called rare, a row each; the same columns for no row."""


@dataclass(frozen=True)
class CallBy:
    """What is called rare in place of the model's own threshold: one of them, or neither."""

    top: int | None = None  # so many rows of the highest score; of equal ones the first
    threshold: float | None = None

    def check(self, decision: Decision) -> None:
        """Raise `InputError` where this contradicts itself or the model."""
        if self == CallBy():
            return
        if self.top is not None and self.threshold is not None:
            raise InputError(
                "--top and --threshold both say what is rare.",
                "Give one of them.",
                ErrorKind.COMBINATION,
            )
        option = "--threshold" if self.top is None else "--top"
        if not isinstance(decision, RareDecision):
            raise InputError(
                f"{option} is for models of a rare class, and this one is of levels.",
                "Leave it out: a row's level is between the model's thresholds.",
                ErrorKind.UNSUPPORTED,
            )
        if self.top is not None and self.top < 1:
            raise InputError(
                f"--top {self.top} is no number of rows.", "Give 1 or more.", ErrorKind.SETTING
            )
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise InputError(
                f"--threshold {self.threshold} is no score.",
                "Give a finite number.",
                ErrorKind.SETTING,
            )


class Calls(Protocol):
    """Writes rows with what they are called."""

    threshold: float | None  # of a rare class, where one decides

    def write(self, parts: Iterable[Part], path: Path) -> NDArray[np.intp]:
        """Write all rows, and return how many were called each code."""
        ...

    def sentence(self, n_called: NDArray[np.intp]) -> str:
        """Say how many rows were called what."""
        ...


def calls_by(decision: Decision, call_by: CallBy, explain: Explain | None = None) -> Calls:
    """Return what calls rows; rows called rare get the columns of `explain` as well.

    Raises `InputError` as `CallBy.check`.
    """
    call_by.check(decision)
    if call_by.top is not None:
        return _Highest(decision, call_by.top, explain)
    return _Above(decision, call_by.threshold, explain)


class _Above:
    """Calls a row by its own score, so that every part is written as it comes."""

    def __init__(
        self, decision: Decision, threshold: float | None, explain: Explain | None
    ) -> None:
        self._decision, self._given, self._explain = decision, threshold, explain
        self.threshold = threshold
        if threshold is None and isinstance(decision, RareDecision):
            self.threshold = float(decision.thresholds[0])

    def write(self, parts: Iterable[Part], path: Path) -> NDArray[np.intp]:
        n_called = np.zeros(self._decision.n_codes, dtype=np.intp)
        with score_writer(path) as writer:
            for part in parts:
                called = self._called(part.columns["score"].to_numpy())
                frame = _with_calls(part.columns, self._decision.cells(called))
                if self._explain is not None:
                    chosen = called == 1
                    told = self._explain(part.rows.filter(pl.Series(chosen)))
                    frame = _with_told(frame, told, chosen)
                writer.write(frame)
                n_called += np.bincount(called, minlength=self._decision.n_codes)
        return n_called

    def _called(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        if self._given is None:
            return self._decision.decide(scores)
        return (scores > self._given).astype(np.intp)

    def sentence(self, n_called: NDArray[np.intp]) -> str:
        if self._given is None:
            return self._decision.sentence(n_called)
        return (
            f"{_scored(n_called)}; {n_called[1]:,} ({n_called[1] / n_called.sum():.2%}) "
            f"{'is' if n_called[1] == 1 else 'are'} above {self._given:g} and called rare."
        )


class _Highest:
    """Calls the so many highest of all rows rare; of equal scores those that come first.

    They are known at the end. Until then rows wait in a Parquet file beside the one to be written.
    """

    threshold: float | None = None

    def __init__(self, decision: Decision, size: int, explain: Explain | None) -> None:
        self._decision, self._size, self._explain = decision, size, explain

    def write(self, parts: Iterable[Part], path: Path) -> NDArray[np.intp]:
        best = _Best(self._size)
        with tempfile.TemporaryDirectory(prefix=".scores-", dir=path.parent) as folder:
            waiting = Path(folder) / "rows.parquet"
            with ParquetWriter(waiting) as writer:
                for part in parts:
                    best.add(part.columns["score"].to_numpy(), part.rows)
                    writer.write(part.columns)
            if best.n_seen:
                self._write_called(waiting, best, path)
        return np.array([best.n_seen - len(best.places), len(best.places)])

    def _write_called(self, waiting: Path, best: "_Best", path: Path) -> None:
        order = np.argsort(best.places)
        places, told = best.places[order], None
        if self._explain is not None and best.rows is not None:
            told = self._explain(best.rows[order])
        first = 0
        with score_writer(path) as writer, pq.ParquetFile(waiting) as file:
            for batch in file.iter_batches(_READ_ROWS):
                frame = pl.DataFrame(pl.from_arrow(batch))
                begin, end = np.searchsorted(places, [first, first + frame.height])
                called = np.zeros(frame.height, dtype=np.intp)
                called[places[begin:end] - first] = 1
                frame = _with_calls(frame, self._decision.cells(called))
                if told is not None:
                    frame = _with_told(frame, told[begin:end], called == 1)
                writer.write(frame)
                first += frame.height

    def sentence(self, n_called: NDArray[np.intp]) -> str:
        if n_called[1] == n_called.sum():
            return f"{_scored(n_called)}; all are among the {self._size:,} highest."
        return f"{_scored(n_called)}; the {n_called[1]:,} highest are called rare."


class _Best:
    """The so many highest scores so far, where they stand, and their rows."""

    def __init__(self, size: int) -> None:
        self._size, self.n_seen = size, 0
        self.scores, self.places = np.empty(0), np.empty(0, dtype=np.intp)
        self.rows: pl.DataFrame | None = None

    def add(self, scores: NDArray[np.float64], rows: pl.DataFrame | None) -> None:
        """Take in the next rows; O(size + rows) memory."""
        is_full = len(self.scores) == self._size
        # A later row of equal score is no better.
        better = np.flatnonzero(scores > self.scores[-1]) if is_full else np.arange(len(scores))
        places = np.concatenate([self.places, self.n_seen + better])
        self.n_seen += len(scores)
        found = np.concatenate([self.scores, scores[better]])
        order = np.lexsort((places, -found))[: self._size]
        self.scores, self.places = found[order], places[order]
        if rows is not None:
            kept = rows[better]
            self.rows = (kept if self.rows is None else pl.concat([self.rows, kept]))[order]


def _with_calls(columns: pl.DataFrame, calls: pl.Series) -> pl.DataFrame:
    """The calls before the last column, the percentile."""
    return columns.insert_column(columns.width - 1, calls)


def _with_told(frame: pl.DataFrame, told: pl.DataFrame, chosen: NDArray[np.bool_]) -> pl.DataFrame:
    """Columns for chosen rows; those of others are empty."""
    places = np.full(len(chosen), -1)
    places[chosen] = np.arange(int(chosen.sum()))
    index = pl.Series(places).replace(-1, None)
    return frame.hstack([column.gather(index) for column in told])


def _scored(n_called: NDArray[np.intp]) -> str:
    return f"Scored {counted(int(n_called.sum()), 'row')}"
