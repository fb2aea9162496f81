"""Training rows that workers of a cluster read and encode themselves, each its own stretch."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.encoders import TableEncoder
from rareclass.encoding.training_table import ReadingPlan
from rareclass.model.score_file import name_for_workers, opened, stretches_for
from rareclass.rows import RowSource
from rareclass.tables.table_file import TableFile, batch_rows_for


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
        object.__setattr__(self, "stretches", stretches_for(self.file, self.client))

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

        name = name_for_workers(self.file.path)
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
    plan = replace(plan, file=opened(name).stretch(start, stop))
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
