"""``rareclass score --dask``: a table of Parquet to a folder of scores, by the workers of Dask."""

from dataclasses import replace
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError
from rareclass.files import (
    check_not_input,
    check_not_inside,
    check_writable,
    replacing,
    replacing_folder,
)
from rareclass.model.drift import InputSummary
from rareclass.model.model import Model
from rareclass.model.score_file import Scorer, ScoreSettings, Scoring
from rareclass.tables.table_file import StoredTable, TablePlace, open_table

# Stretches for each worker, so that they can be shared out anew when one is lost, and the most
# rows of one, unless a row group has more: a worker holds them once more while it works.
_A_WORKER = 4
_MOST_ROWS = 1_000_000


def stretches_for(file: Any, client: Any) -> list[tuple[int, int]]:
    """Return the first row and the one after the last of each stretch, for the workers of a client.

    Raises `InputError` for what is no table of Parquet.
    """
    if not isinstance(file, StoredTable):
        raise InputError(
            f"--dask: {file.path} is not a Parquet table, and workers read only those.",
            "Write it as Parquet.",
            ErrorKind.CONNECTION,
        )
    n_wanted = _A_WORKER * max(1, len(client.nthreads()))
    return file.stretches(min(_MOST_ROWS, -(-file.estimate_rows() // n_wanted)))


def name_for_workers(path: Any) -> str:
    """Return the whole name of a file or folder, wherever a worker was started."""
    return str(path.resolve() if isinstance(path, Path) else path)


@lru_cache(maxsize=4)
def opened(name: str) -> StoredTable:
    """Open the table, on a worker: a folder may have thousands of footers, which are read once."""
    table = open_table(name)
    assert isinstance(table, StoredTable)
    return table


def score_on_workers(
    content: Model, data: TablePlace, out: Path, settings: ScoreSettings, client: Any
) -> Scoring:
    """Score a table of Parquet into a folder of Parquet files, one a stretch, in row order.

    Columns are those of `score_rows`. The folder appears when all of its files are written:
    workers write into a hidden one beside it.

    Raises `InputError` as `score_rows` does; for a table of another format, and for `top`, which
    no worker knows alone.
    """
    if settings.alerts_only:
        raise InputError(
            "--alerts-only: workers write the rows that they score, in their order.",
            "Leave it out, or score without --dask.",
            ErrorKind.COMBINATION,
        )
    if settings.top is not None:
        raise InputError(
            "--top: each worker sees a part of the rows only.",
            "Leave it out, and give --threshold, or score without --dask.",
            ErrorKind.COMBINATION,
        )
    file = open_table(data, settings.separator)
    stretches = stretches_for(file, client)
    scorer = Scorer(content, settings)
    scorer.check_id(file, out / "part.parquet")
    with replacing_folder(out) as folder:
        name = name_for_workers(file.path)
        found = _scored_parts(content, settings, name, stretches, folder, client)
        n_called = np.sum([called for called, _ in found], axis=0)
        seen = found[0][1].joined([each for _, each in found[1:]]) if found else InputSummary()
        return scorer.outcome(n_called, seen, str(data))


def check_score_folder(out: Path, data: TablePlace, overwrite: bool) -> None:
    """Raise `InputError` when scores of `data` cannot be written to a folder `out`.

    One that is there is replaced if asked to, and if it holds nothing but files of scores.
    """
    if out.suffix or (out.exists() and not out.is_dir()):
        raise InputError(
            f"--out {out}: with --dask scores are a folder of Parquet files.",
            "Give a name without a suffix.",
            ErrorKind.COMBINATION,
        )
    check_not_input(out, "--out", {"the file to be scored": data})
    check_not_inside(out, "--out", data)
    check_writable(out.parent / f".{out.name}.parquet")
    there = [each.name for each in out.iterdir()] if out.is_dir() else []
    others = [name for name in there if not fnmatch(name, "part-*.parquet")]
    if others:
        raise InputError(
            f"--out {out} is a folder with {others[0]!r} in it, which is not a file of scores.",
            "Give the name of a folder that is not there yet.",
            ErrorKind.EXISTING_FILE,
        )
    if there and not overwrite:
        raise InputError(
            f"--out {out} exists already.",
            "Give another name, or --overwrite to replace it.",
            ErrorKind.EXISTING_FILE,
        )


def _scored_parts(
    content: Model,
    settings: ScoreSettings,
    name: str,
    stretches: list[tuple[int, int]],
    folder: Path,
    client: Any,
) -> list[tuple[NDArray[np.intp], InputSummary]]:
    from dask import delayed

    model, score = delayed(content, pure=False), delayed(_score_stretch, pure=False)
    tasks = [
        score(model, settings, name, stretch, str(folder / f"part-{k:05}.parquet"))
        for k, stretch in enumerate(stretches)
    ]
    futures = client.compute(tasks)
    try:
        return list(client.gather(futures))
    except BaseException:
        if client.status == "running":
            client.cancel(futures)
        raise


def _score_stretch(
    content: Model, settings: ScoreSettings, name: str, stretch: tuple[int, int], out: str
) -> tuple[NDArray[np.intp], InputSummary]:
    """Score one stretch, on a worker; a task that is run again writes the same file again."""
    start, stop = stretch
    seen = InputSummary(n_rows=start)
    with replacing(Path(out)) as temporary:
        n_called = Scorer(content, settings).write(
            opened(name).stretch(start, stop), temporary, seen
        )
    return n_called, replace(seen, n_rows=seen.n_rows - start)
