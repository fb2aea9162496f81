"""Training rows that workers of a cluster read and encode themselves, each its own stretch."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.tables import TableEncoder
from rareclass.encoding.training_table import ReadingPlan
from rareclass.errors import InputError
from rareclass.rows import RowSource
from rareclass.tables.table_file import StoredTable, TableFile, batch_rows_for, open_table

# Stretches for each worker, so that they can be shared out anew when one is lost, and the most
# rows of one, which a worker holds once more while it encodes them.
_STRETCHES_A_WORKER = 4
_MOST_ROWS = 1_000_000


@dataclass(frozen=True)
class RowsElsewhere:
    """A table of Parquet that workers can read by the name that it has here.

    Raises `InputError` for a table of another format.
    """

    client: Any
    file: TableFile
    plan: ReadingPlan  # how its cells were read here
    stretches: list[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.file, StoredTable):
            raise InputError(
                f"--dask: {self.file.path} is no table of Parquet, which workers read in pieces.",
                "Write it as Parquet.",
            )
        n_wanted = _STRETCHES_A_WORKER * max(1, len(self.client.nthreads()))
        most = min(_MOST_ROWS, -(-self.file.estimate_rows() // n_wanted))
        object.__setattr__(self, "stretches", self.file.stretches(most))

    def encoded(
        self,
        encoder: TableEncoder,
        columns: list[str],
        rows: NDArray[np.int64],
        sample: NDArray[np.int64],
        sampled: NDArray[Any],
    ) -> RowSource:
        """The chosen rows of the table, encoded where they will be learned from.

        `rows` are row numbers that never fall; those at the places `sample` are written as in
        `sampled`, which the encoder's fit gave.
        """
        from dask import delayed

        from rareclass.rows.dask import from_dask  # needs an extra

        path = self.file.path
        name = str(path.resolve() if isinstance(path, Path) else path)
        plan = replace(self.plan, file=cast(Any, None))  # it is opened anew there
        fitted, read_as = delayed(encoder, pure=False), delayed(plan, pure=False)
        encode = delayed(_encoded, pure=False)
        parts = []
        for start, stop in self.stretches:
            first, end = np.searchsorted(rows, [start, stop])
            if first == end:
                continue
            begin, last = np.searchsorted(sample, [first, end])
            chosen, places = rows[first:end] - start, sample[begin:last] - first
            parts.append(
                encode(
                    fitted, read_as, (name, start, stop), columns, chosen, places,
                    sampled[begin:last],
                )
            )  # fmt: skip
        return from_dask(parts, dtype=sampled.dtype, client=self.client).source


def _encoded(
    encoder: TableEncoder,
    plan: ReadingPlan,
    stretch: tuple[str, int, int],
    columns: list[str],
    chosen: NDArray[np.int64],
    places: NDArray[np.int64],
    sampled: NDArray[Any],
) -> NDArray[Any]:
    """One stretch, on a worker."""
    name, start, stop = stretch
    plan = replace(plan, file=_opened(name).stretch(start, stop))
    X = np.empty((len(chosen), sampled.shape[1]), sampled.dtype)
    n_before = n_done = 0
    for frame, _ in plan.typed_batches(batch_rows_for(len(plan.names))):
        end = n_done + int(np.searchsorted(chosen[n_done:], n_before + frame.height))
        if end > n_done:
            wanted = frame.select(columns)[chosen[n_done:end] - n_before]
            X[n_done:end] = encoder.transform(wanted)
        n_before, n_done = n_before + frame.height, end
    X[places] = sampled
    return X


@lru_cache(maxsize=4)
def _opened(name: str) -> StoredTable:
    """A folder may have thousands of footers: they are read once in a process."""
    table = open_table(name)
    assert isinstance(table, StoredTable)
    return table
