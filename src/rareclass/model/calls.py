"""Calls of rows in a file of scores: rare or not, or a level; by thresholds, or the top rows."""

import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError, counted
from rareclass.files import csv_bytes
from rareclass.model.decisions import Decision, RareDecision
from rareclass.model.explained import Explain

_READ_ROWS = 50_000


class Part(NamedTuple):
    """Consecutive rows of a file of scores, before it is known what they are called."""

    columns: pl.DataFrame  # those of the user, the score, ..., the percentile
    rows: Any = None  # what they were scored from, where something is to be said of called rows


@dataclass(frozen=True)
class Calls:
    """Writes rows with what they are called: by the model's decision, or one thing in its place.

    Rows called rare get the columns of `explain` as well. Raises `InputError` where `top` and
    `threshold` contradict each other or the model.
    """

    decision: Decision
    top: int | None = None  # call so many rows of the highest score rare; of equal ones the first
    threshold: float | None = None  # call rows above it rare
    explain: Explain | None = None
    alerts_only: bool = False  # write rows called rare alone, the highest score first
    n_own: int = 1  # columns of the user, which come first

    def __post_init__(self) -> None:
        if self.alerts_only and not isinstance(self.decision, RareDecision):
            raise InputError(
                "--alerts-only is for models of a rare class, and this model is for ordered "
                "levels.",
                "Leave it out, and sort the scores.",
                ErrorKind.UNSUPPORTED,
            )
        if self.top is None and self.threshold is None:
            return
        if self.top is not None and self.threshold is not None:
            raise InputError(
                "--top and --threshold both set the rows called rare.",
                "Give one of them.",
                ErrorKind.COMBINATION,
            )
        option = "--threshold" if self.top is None else "--top"
        if not isinstance(self.decision, RareDecision):
            raise InputError(
                f"{option} is for models of a rare class, and this model is for ordered levels.",
                "Leave it out: a row's level is between the model's thresholds.",
                ErrorKind.UNSUPPORTED,
            )
        if self.top is not None and self.top < 1:
            raise InputError(
                f"--top {self.top} is not a number of rows.", "Give 1 or more.", ErrorKind.SETTING
            )
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise InputError(
                f"--threshold {self.threshold} is not a score.",
                "Give a finite number.",
                ErrorKind.SETTING,
            )

    @property
    def threshold_in_force(self) -> float | None:
        """Score above which rows are called rare; None for levels and for `top`."""
        if self.threshold is not None:
            return self.threshold
        if self.top is not None or not isinstance(self.decision, RareDecision):
            return None
        return float(self.decision.thresholds[0])

    def write(self, parts: Iterable[Part], path: Path) -> NDArray[np.intp]:
        """Write rows as CSV or Parquet, and return how many were called each code.

        Of alerts only, these are held in memory, to be sorted. The so many highest of all rows are
        known at the end: until then rows wait in a nameless file in the folder of `path`.
        """
        n_called = np.zeros(self.decision.n_codes, dtype=np.intp)
        frames = self._above(parts, n_called)
        if self.top is not None:
            frames = self._highest(parts, self.top, path.parent, n_called)
        with closing(frames):
            if self.alerts_only:
                called = [frame.filter(pl.col(self.decision.column)) for frame in frames]
                by_score = pl.concat(called).sort("score", descending=True, maintain_order=True)
                _write_frames([by_score], path, self.n_own)
            else:
                _write_frames(frames, path, self.n_own)
        return n_called

    def _above(
        self, parts: Iterable[Part], n_called: NDArray[np.intp]
    ) -> Generator[pl.DataFrame, None, None]:
        """Call rows by their own scores, so that every part is written as it comes."""
        for columns, rows in parts:
            scores = columns["score"].to_numpy()
            called = self.decision.decide(scores)
            if self.threshold is not None:
                called = (scores > self.threshold).astype(np.intp)
            told = self.explain and self.explain(rows.filter(pl.Series(called == 1)))
            n_called += np.bincount(called, minlength=len(n_called))
            yield self._with_calls(columns, called, told)

    def _highest(
        self, parts: Iterable[Part], top: int, folder: Path, n_called: NDArray[np.intp]
    ) -> Generator[pl.DataFrame, None, None]:
        best = _Best(top)

        def seen() -> Iterator[pl.DataFrame]:
            for columns, rows in parts:
                best.add(columns["score"].to_numpy(), rows)
                yield columns

        # Without a name: nothing stays of it, however the process ends.
        with tempfile.TemporaryFile(dir=folder) as waiting:
            _write_parquet(seen(), waiting)
            n_called[:] = best.n_seen - len(best.places), len(best.places)
            if not best.n_seen:
                return
            order = np.argsort(best.places)
            places, told = best.places[order], None
            if self.explain is not None and best.rows is not None:
                told = self.explain(best.rows[order])
            first = 0
            with pq.ParquetFile(waiting) as file:
                for batch in file.iter_batches(_READ_ROWS):
                    begin, end = np.searchsorted(places, [first, first + batch.num_rows])
                    called = np.zeros(batch.num_rows, dtype=np.intp)
                    called[places[begin:end] - first] = 1
                    own = None if told is None else told[begin:end]
                    yield self._with_calls(pl.DataFrame(pl.from_arrow(batch)), called, own)
                    first += batch.num_rows

    def _with_calls(
        self, columns: pl.DataFrame, called: NDArray[np.intp], told: pl.DataFrame | None
    ) -> pl.DataFrame:
        """Put the calls before the percentile; `told` has a row for each row called rare."""
        frame = columns.insert_column(columns.width - 1, self.decision.cells(called))
        if told is None:
            return frame
        places = np.where(called == 1, np.cumsum(called == 1) - 1, -1)
        index = pl.Series(places).replace(-1, None)
        return frame.hstack([column.gather(index) for column in told])

    def sentence(self, n_called: NDArray[np.intp]) -> str:
        """Say how many rows were called what."""
        if self.top is None and self.threshold is None:
            return self.decision.sentence(n_called)
        n_rows, n_rare = int(n_called.sum()), int(n_called[1])
        scored = f"Scored {counted(n_rows, 'row')}"
        if self.threshold is not None:
            return (
                f"{scored}; {n_rare:,} ({n_rare / n_rows:.2%}) {'is' if n_rare == 1 else 'are'} "
                f"above {self.threshold:g} and called rare."
            )
        if n_rare == n_rows:
            return f"{scored}; all are among the {self.top:,} highest."
        return f"{scored}; the {n_rare:,} highest are called rare."


def _write_frames(frames: Iterable[pl.DataFrame], path: Path, n_own: int) -> None:
    """Write rows as CSV or Parquet, by the suffix; Parquet has the types of the first rows.

    The first `n_own` columns are the user's; truth values of ours are 1 and 0 in CSV.
    """
    if path.suffix.lower() == ".csv":
        with path.open("wb") as file:
            for number, frame in enumerate(frames):
                ours = [name for name in frame.columns[n_own:] if frame[name].dtype == pl.Boolean]
                frame = frame.with_columns(pl.col(ours).cast(pl.Int8))
                file.write(csv_bytes(frame, include_header=not number))
    else:
        _write_parquet(frames, path)


def _write_parquet(frames: Iterable[pl.DataFrame], file: Path | IO[bytes]) -> None:
    writer: pq.ParquetWriter | None = None
    try:
        for frame in frames:
            table: pa.Table = frame.to_arrow()
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()


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
