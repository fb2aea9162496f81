"""Training rows that workers of a cluster read and encode themselves, each its own stretch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.encoders import TableEncoder
from rareclass.encoding.training_table import ReadingPlan
from rareclass.errors import ErrorKind, InputError, needed_for
from rareclass.model.score_folder import name_for_workers, opened, stretches_for
from rareclass.rows import RowSource
from rareclass.tables.table_file import TableFile, batch_rows_for

# Seconds that are waited for a scheduler to answer.
_PATIENCE = 5


@contextmanager
def dask_client(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address such as tcp://10.0.0.1:8786.

    For "local" a worker a core is started on this machine, and stopped at the end.

    Raises `InputError` where Dask is not installed, on what is no address, and where nobody
    answers.
    """
    with needed_for("--dask", "rareclass[dask]"):
        from distributed import Client, LocalCluster
    if address == "local":
        with (
            LocalCluster(threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    if "://" not in address:
        raise InputError(
            f"--dask {address} is not the address of a scheduler.",
            "Give one such as tcp://10.0.0.1:8786, or local for workers on this machine.",
            ErrorKind.SETTING,
        )
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise InputError(
            f"--dask {address}: no scheduler answers there ({type(error).__name__}).",
            "Start one with `dask scheduler`, and workers with `dask worker ADDRESS`.",
            ErrorKind.CONNECTION,
        ) from error
    with client:
        yield client


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
