"""``rareclass score``: from a model and a file of any size to a file of scores."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from rareclass.atomic_file import check_not_input, check_not_inside, check_writable, replacing
from rareclass.errors import InputError, name_hint
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, open_table
from rareclass.verbs.model_file import ModelFile
from rareclass.verbs.scored import Seen, scored
from rareclass.verbs.targets import decision_of

SCORE_SUFFIXES = (".csv", ".parquet", ".pq")
_NOT_IN_CSV = (pl.Binary, pl.Duration, pl.Object)


@dataclass(frozen=True)
class Scoring:
    """The outcome of scoring a file."""

    n_rows: int
    sentence: str  # how many rows were called what
    seen: Seen


def score_file(
    content: ModelFile,
    data: Path,
    out: Path,
    id_column: str | None,
    separator: str | None = None,
) -> Scoring:
    """Score every row of a file of any size into a new file, row order kept.

    Parquet or CSV by its suffix. Columns: the identifier (or ``row``, counted from 1), ``score``
    (higher is rarer, or a higher level), what each row is called (``called_rare``, or ``level``)
    and ``percentile`` (the share of the training majority, or of all training rows where the
    target has levels, with a lower score, in percent).

    Raises `InputError` for anything wrong with the file, naming column, row and value; `out` is not
    touched then.
    """
    check_score_path(out, data)
    file, seen = open_table(data, separator), Seen()
    decision = decision_of(content.model, content.metadata)
    if id_column is not None:
        _check_id(file, id_column, out, decision.column)
    quantiles = np.asarray(content.metadata[decision.quantiles])
    percents = np.linspace(0.0, 100.0, len(quantiles))
    n_called = np.zeros(decision.n_codes, dtype=np.intp)
    with replacing(out) as temporary, _writer(temporary) as writer:
        first_row = 1
        for batch in scored(content, file, id_column, seen):
            called = decision.decide(batch.scores)
            rows = pl.Series("row", np.arange(first_row, first_row + len(called)))
            writer.write(
                pl.DataFrame(
                    [
                        rows if batch.kept is None else batch.kept,
                        pl.Series("score", batch.scores),
                        decision.cells(called),
                        pl.Series("percentile", np.interp(batch.scores, quantiles, percents)),
                    ]
                )
            )
            n_called += np.bincount(called, minlength=decision.n_codes)
            first_row += len(called)
        if first_row == 1:
            raise InputError(f"{data} has no rows.", "Give a file with rows.")
    return Scoring(first_row - 1, decision.sentence(n_called), seen)


def check_score_path(out: Path, data: Path) -> None:
    """Raise `InputError` when scores of `data` cannot be written to `out`."""
    if out.suffix.lower() not in SCORE_SUFFIXES:
        raise InputError(
            f"--out {out}: the name must end in .csv or .parquet, which decides the format."
        )
    check_not_input(out, "--out", {"the file to be scored": data})
    check_not_inside(out, "--out", data)
    check_writable(out)


def _check_id(file: TableFile | SvmlightFile, id_column: str, out: Path, decided: str) -> None:
    if isinstance(file, SvmlightFile):
        raise InputError("--id: an svmlight file has no named columns.")
    if id_column not in file.columns:
        raise InputError(
            f"--id: there is no column {id_column!r}.", name_hint(id_column, file.columns)
        )
    if id_column in ("score", decided, "percentile"):
        raise InputError(f"--id {id_column}: a column of the scores has that name.")
    if out.suffix.lower() == ".csv":
        for first in islice(file.batches([id_column], batch_rows=1), 1):
            dtype = first[id_column].dtype
            if dtype.is_nested() or dtype in _NOT_IN_CSV:
                raise InputError(
                    f"--id {id_column}: cells of type {dtype} cannot be written to a CSV file.",
                    "Write .parquet instead, or choose another column.",
                )


class _ScoreWriter(Protocol):
    def write(self, frame: pl.DataFrame) -> None: ...

    def __enter__(self) -> "_ScoreWriter": ...

    def __exit__(self, *error: object) -> None: ...


class _CsvWriter:
    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._is_first = True

    def write(self, frame: pl.DataFrame) -> None:
        # The first column is the user's own; truth values of ours are 1 and 0.
        ours = frame.columns[1:]
        flags = [pl.col(name).cast(pl.Int8) for name in ours if frame[name].dtype == pl.Boolean]
        frame.with_columns(flags).write_csv(self._file, include_header=self._is_first)
        self._is_first = False

    def __enter__(self) -> "_CsvWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


class _ParquetWriter:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None

    def write(self, frame: pl.DataFrame) -> None:
        table: pa.Table = frame.to_arrow()
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table.cast(self._writer.schema))

    def __enter__(self) -> "_ParquetWriter":
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()


def _writer(path: Path) -> _ScoreWriter:
    return _CsvWriter(path) if path.suffix.lower() == ".csv" else _ParquetWriter(path)
