"""The ordered targets that the data folder holds, and the generated days in hospital.

Levels are whole numbers in their order. Ends with a handful of rows are put together, so that every
level has rows in each part of a split:

- wine: quality of white wines, 3 to 9 as it is (5 rows at 9). Most frequent: 6, inside the order.
  937 of its 4,898 rows are copies of others: one test row in four has a copy among the training
  rows, with the same quality, and what remembers rows gains by that.
- wine_distinct: the same without copies.
- abalone: rings (age), everything up to 4 as 4 and from 16 on as 16: 13 levels of 73 rows or more,
  none of which is the bulk of the rows. Sex gives three indicators.
- living: the standard of living of the contraceptive survey, 1 to 4, from its other eight answers.
  Its contraceptive methods have no order (none, long-term, short-term), and the file has them as
  long-term or not.
- children: children ever born in the same survey, from 8 on as 8, from the other eight answers.
- credit: how often a borrower was 30 to 59 days late, from 4 on as 4; 84 percent never were. The
  269 rows with the codes 96 and 98 are left out, and so is the label, which came later.
  Utilisation, debt ratio and income are taken as log(1 + x), for all methods.
- days: `benchmarks.hospital_days`, 0 to 15.

Missing cells become the mean of the training rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from benchmarks.hospital_days import hospital_days
from benchmarks.paper_tables.real_sets import encode

DAYS_SEED = 0
_CREDIT_TARGET = "NumberOfTime30-59DaysPastDueNotWorse"
_CREDIT_SKEWED = ("RevolvingUtilizationOfUnsecuredLines", "DebtRatio", "MonthlyIncome")
_CREDIT_CODE = 96  # and 98: no counts


class Rows(NamedTuple):
    """Features (NaN where missing, not scaled) and levels 0, 1, .., in their order."""

    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class OrdinalSet:
    """One ordered target.

    Parameters
    ----------
    title : str
        What is ranked.
    file : str
        Name of the file in the data folder; empty for a generated set.
    load : callable
        Folder to rows.
    """

    title: str
    file: str
    load: Callable[[Path], Rows]


def is_there(name: str, folder: Path | None) -> bool:
    """Whether the set can be made."""
    file = SETS[name].file
    return not file or (folder is not None and (folder / f"{file}.parquet").is_file())


def load(name: str, folder: Path | None) -> Rows:
    """Rows of a set by name."""
    return SETS[name].load(folder or Path())


def _codes(levels: np.ndarray) -> np.ndarray:
    """Whole numbers as positions among the levels that occur."""
    return np.unique(levels, return_inverse=True)[1]


def _wine(folder: Path) -> Rows:
    table = pl.read_parquet(folder / "wine_quality.parquet")
    return Rows(encode(table.drop("quality", "target"), ()), _codes(table["quality"].to_numpy()))


def _distinct_wine(folder: Path) -> Rows:
    X, y = _wine(folder)
    first = np.sort(np.unique(X, axis=0, return_index=True)[1])
    return Rows(X[first], y[first])


def _abalone(folder: Path) -> Rows:
    table = pl.read_parquet(folder / "abalone.parquet")
    rings = table["rings"].to_numpy().clip(4, 16)
    return Rows(encode(table.drop("rings", "target"), ("sex",)), _codes(rings))


def _living(folder: Path) -> Rows:
    table = pl.read_parquet(folder / "contraceptive_method.parquet")
    return Rows(encode(table.drop("x007"), ()), _codes(table["x007"].to_numpy()))


def _children(folder: Path) -> Rows:
    table = pl.read_parquet(folder / "contraceptive_method.parquet")
    return Rows(encode(table.drop("x003"), ()), _codes(table["x003"].to_numpy().clip(0, 8)))


def _credit(folder: Path) -> Rows:
    table = pl.read_parquet(folder / "give_me_some_credit.parquet")
    table = table.filter(pl.col(_CREDIT_TARGET) < _CREDIT_CODE)
    features = table.drop(_CREDIT_TARGET, "target").with_columns(
        pl.col(name).log1p() for name in _CREDIT_SKEWED
    )
    return Rows(encode(features, ()), _codes(table[_CREDIT_TARGET].to_numpy().clip(0, 4)))


def _days(folder: Path) -> Rows:
    X, y = hospital_days(random_state=DAYS_SEED)
    return Rows(X, y)


SETS: dict[str, OrdinalSet] = {
    "wine": OrdinalSet("quality of wines", "wine_quality", _wine),
    "wine_distinct": OrdinalSet("quality of distinct wines", "wine_quality", _distinct_wine),
    "abalone": OrdinalSet("rings of abalones", "abalone", _abalone),
    "living": OrdinalSet("standard of living", "contraceptive_method", _living),
    "children": OrdinalSet("children ever born", "contraceptive_method", _children),
    "credit": OrdinalSet("times late with a payment", "give_me_some_credit", _credit),
    "days": OrdinalSet("days in hospital (generated)", "", _days),
}
