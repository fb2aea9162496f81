"""The tables that methods are measured on: made once, kept as arrays in a scratch folder.

A name says what a set is: ``simulated-1000000x40-1000`` has that many rows, features and rare rows;
``kdd``, ``cod_rna``, ``donors`` and ``unsw`` are real ones, and ``kdd-50000`` is a part with that
many training rows. Training and held-out rows are float32, standardised by the training rows.

- simulated: the generator of the paper's study with overlap 0.75 and centres of that dimension;
  held-out rows are drawn with another seed and hold the same share of rare ones.
- kdd: KDD Cup 99 as `paper_tables.intrusion` prepares it (distinct rows; U2R and R2L rare; held out
  is the file of the later weeks).
- cod_rna: rare rows thinned to 1 percent of all. donors and unsw (backdoor attacks of UNSW-NB15) as
  they come. 30 percent of the rows are held out. Copies of rows stay in, so that some held-out
  rows are copies of training rows: the same ones for every method.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.model_selection import train_test_split

from benchmarks import record
from benchmarks.cells import Cell
from benchmarks.paper_tables import intrusion
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.simulated import mixture_centres, rare_mixture
from benchmarks.tabular.search import at_most
from benchmarks.tabular.sets import thinned

OVERLAP = 0.75
HELD_OUT_ROWS = 500_000
HELD_OUT_SHARE = 0.3
THINNED_SHARE = 0.01
_FILES = {"cod_rna": "cod_rna", "donors": "donors", "unsw": "unsw_nb15_backdoor"}
_SIMULATED = re.compile(r"simulated-(\d+)x(\d+)-(\d+)(?:-test(\d+))?$")
_PART = re.compile(r"([a-z0-9_]+)-(\d+)$")


class DataSet(NamedTuple):
    """Training and held-out rows; y is 1 for rare rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def simulated_name(rows: int, features: int, rare: int, held_out: int | None = None) -> str:
    """The name of a simulated set; by default as many rows are held out, up to 500,000."""
    end = "" if held_out is None else f"-test{held_out}"
    return f"simulated-{rows}x{features}-{rare}{end}"


def is_available(name: str) -> bool:
    """Whether the set can be made: simulated ones always, real ones where their file is."""
    folder = data_folder()
    if _SIMULATED.match(name):
        return True
    base = _base(name)[0]
    if folder is None:
        return False
    if base in _FILES:
        return (folder / f"{_FILES[base]}.parquet").is_file()
    return base == "kdd" and intrusion.is_there(folder)


def preparation(name: str, scratch: Path) -> Cell:
    """What makes the set in the scratch folder, if it is not there yet."""
    arguments = {"name": name, "scratch": str(scratch)}
    return Cell(f"make {name}", "benchmarks.data_sets:make", arguments)


def make(name: str, scratch: str, threads: int = 1, limit: float = 0.0) -> dict[str, Any]:
    """Build the set and store its arrays; the file ``done`` comes last.

    Raises
    ------
    ValueError
        When there is no set of that name.
    """
    done = _path(name, Path(scratch), "done")
    if done.is_file():
        return {}
    data = build(name)
    for field, array in zip(DataSet._fields, data, strict=True):
        path = _path(name, Path(scratch), f"{field}.npy")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array)
    record.replace_file(done, b"")
    return {}


def read(name: str, scratch: str | Path) -> DataSet:
    """The arrays of a prepared set: training rows in memory, held-out rows still on disk."""
    X, y, X_test, y_test = (_path(name, Path(scratch), f"{f}.npy") for f in DataSet._fields)
    held_out = (np.load(path, mmap_mode="r") for path in (X_test, y_test))
    return DataSet(np.load(X), np.load(y), *held_out)


def build(name: str) -> DataSet:
    """The set from its source."""
    match = _SIMULATED.match(name)
    if match:
        rows, features, rare, held_out = (k and int(k) for k in match.groups())
        return simulated(rows, features, rare, held_out or min(rows, HELD_OUT_ROWS))
    base, n_rows = _base(name)
    folder = data_folder()
    if folder is None or base not in SOURCES:
        raise ValueError(
            f"no data set {name!r}: there are simulated-ROWSxFEATURES-RARE and "
            f"{', '.join(SOURCES)} (in the folder that RARECLASS_DATA names)."
        )
    data = SOURCES[base](folder)
    return data if n_rows is None else part(data, n_rows)


def simulated(n_rows: int, n_features: int, n_rare: int, n_held_out: int) -> DataSet:
    """The study's mixture; standardised by the training rows."""
    centres = mixture_centres(n_features=n_features)
    parts = []
    for seed, size in ((0, n_rows), (1, n_held_out)):
        X, y = rare_mixture(size, n_rare / n_rows, OVERLAP, centres, random_state=seed)
        parts += [X.astype(np.float32), y]
    return standardised(*parts)


def standardised(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> DataSet:
    """Zero mean and unit variance on the training rows; float32, and one byte a label."""
    mean = X.mean(axis=0, dtype=np.float64)
    scale = X.std(axis=0, dtype=np.float64)
    scale[scale == 0.0] = 1.0
    for rows in (X, X_test):
        rows -= mean.astype(rows.dtype)
        rows /= scale.astype(rows.dtype)
    arrays = (X.astype(np.float32), X_test.astype(np.float32))
    return DataSet(arrays[0], y.astype(np.int8), arrays[1], y_test.astype(np.int8))


def part(data: DataSet, n_rows: int) -> DataSet:
    """A part with `n_rows` training rows and the same share of rare ones; all held-out rows."""
    X, y = at_most(data.X, data.y, n_rows, seed=0)
    return data._replace(X=X, y=y)


def _split(X: np.ndarray, y: np.ndarray) -> DataSet:
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=HELD_OUT_SHARE, stratify=y, random_state=0
    )
    return standardised(X, y, X_test, y_test)


def _plain_file(name: str) -> Callable[[Path], DataSet]:
    def load(folder: Path) -> DataSet:
        return _split(*_read(folder, name))

    return load


def _read(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    table = pl.read_parquet(folder / f"{_FILES[name]}.parquet")
    X = table.drop("target").cast(pl.Float64).to_numpy()
    return np.array(X), table["target"].to_numpy().astype(np.int64)


def _thinned_cod_rna(folder: Path) -> DataSet:
    return _split(*thinned(*_read(folder, "cod_rna"), THINNED_SHARE))


def _kdd(folder: Path) -> DataSet:
    train, test = intrusion.load(folder)
    X, (X_test,) = intrusion.features(train, [test], seed=0, dtype=np.float32)
    return DataSet(X, train.rare.astype(np.int8), X_test, test.rare.astype(np.int8))


SOURCES: dict[str, Callable[[Path], DataSet]] = {
    "kdd": _kdd,
    "cod_rna": _thinned_cod_rna,
    "donors": _plain_file("donors"),
    "unsw": _plain_file("unsw"),
}


def _base(name: str) -> tuple[str, int | None]:
    """kdd-50000 is ("kdd", 50000), kdd is ("kdd", None)."""
    match = _PART.match(name)
    return (match[1], int(match[2])) if match else (name, None)


def _path(name: str, scratch: Path, file: str) -> Path:
    return scratch / name / file
