"""A table of Parquet in stretches that workers read for themselves, by the name it has here."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from rareclass.errors import InputError
from rareclass.tables.table_file import StoredTable, open_table

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
