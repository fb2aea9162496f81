"""KDD Cup 99 as section 6.3 prepares it: duplicates dropped, 43 features, U2R and R2L rare.

Rows equal in all features and the attack name are kept once: 145,586 training rows with 1,051
rare ones (from the 10 percent file, which holds the paper's own 52 + 999) and 77,291 test rows
(3,128 rare; the paper counts 77,286 rows, which is what equal features and class would leave).

Protocol becomes three indicators. Service and flag become the share of training rows in the
category that are attacks of any kind. On the training rows themselves that share is taken
out-of-fold, so that no row's own label is among its features; a category without training rows
gets the overall share.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.model_selection import StratifiedKFold

from benchmarks.paper_tables.protocol import Standardiser

TRAIN_FILE = "kddcup99_10pct_train.parquet"
TEST_FILE = "kddcup99_test.parquet"
LABELS = ("attack", "target")
PROTOCOLS = ("tcp", "udp", "icmp")
SHARE_COLUMNS = ("service", "flag")
FOLDS = 5


@dataclass(frozen=True)
class Connections:
    """Distinct connections: numbers and protocol indicators, categories, and two labels."""

    numbers: np.ndarray
    categories: np.ndarray  # codes, one column per name in SHARE_COLUMNS
    attack: np.ndarray  # 1 for an attack of any kind
    rare: np.ndarray  # 1 for U2R and R2L

    def rows(self, index: np.ndarray) -> "Connections":
        """These rows only."""
        parts = (self.numbers, self.categories, self.attack, self.rare)
        return Connections(*(part[index] for part in parts))


def is_there(folder: Path) -> bool:
    """Whether the folder holds both files."""
    return (folder / TRAIN_FILE).is_file() and (folder / TEST_FILE).is_file()


def load(folder: Path) -> tuple[Connections, Connections]:
    """Distinct training and test connections, in the order of the files."""
    tables = [
        pl.read_parquet(folder / name).unique(maintain_order=True)
        for name in (TRAIN_FILE, TEST_FILE)
    ]
    kinds = [pl.concat([table[name] for table in tables]).unique().sort() for name in SHARE_COLUMNS]
    train, test = (_connections(table, kinds) for table in tables)
    return train, test


def _connections(table: pl.DataFrame, kinds: list[pl.Series]) -> Connections:
    protocol = [(table["protocol_type"] == name).to_numpy() for name in PROTOCOLS]
    numbers = table.drop(*LABELS, "protocol_type", *SHARE_COLUMNS).cast(pl.Float64).to_numpy()
    codes = [
        np.searchsorted(kind.to_numpy(), table[name].to_numpy())
        for name, kind in zip(SHARE_COLUMNS, kinds, strict=True)
    ]
    return Connections(
        numbers=np.column_stack([numbers, *protocol]).astype(np.float64),
        categories=np.column_stack(codes),
        attack=(table["attack"] != "normal").to_numpy().astype(np.int64),
        rare=table["target"].to_numpy().astype(np.int64),
    )


def features(
    train: Connections, others: list[Connections], seed: int, dtype: type[np.floating]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The 43 standardised features of the training rows and of each other set of rows."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    own = np.empty(train.categories.shape)
    for fit, held in folds.split(train.numbers, train.attack):
        own[held] = _attack_shares(train.rows(fit), train.rows(held))
    X = np.column_stack([train.numbers, own])
    scale = Standardiser.of(X)
    rest = [np.column_stack([rows.numbers, _attack_shares(train, rows)]) for rows in others]
    return scale(X).astype(dtype), [scale(Z).astype(dtype) for Z in rest]


def _attack_shares(known: Connections, rows: Connections) -> np.ndarray:
    """For each category of `rows`, the share of attacks among the `known` rows that have it."""
    overall = known.attack.mean()
    columns = []
    for codes, wanted in zip(known.categories.T, rows.categories.T, strict=True):
        size = int(max(codes.max(), wanted.max(initial=0))) + 1
        count = np.bincount(codes, minlength=size)
        attacks = np.bincount(codes, weights=known.attack, minlength=size)
        share = np.divide(attacks, count, out=np.full(size, overall), where=count > 0)
        columns.append(share[wanted])
    return np.column_stack(columns)
