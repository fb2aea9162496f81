"""The problems of the MIBC tables: dense sets and groups of texts, cut into 50 : 20 : 30.

The paper's proteins are not public and RCV1 is not in the data folder. In their place:

- dense: the sets of RankRC's Table 3 (`real_sets`), standardised by their training rows, missing
  cells at the mean.
- text: tdt2, sector and newsgroups20, one group of documents against the rest, for the six groups
  with the most documents (of equal ones those whose label sorts first as text). tdt2 holds counts
  of words and newsgroups20 becomes counts of those that occur in at least two texts; both are made
  TF-IDF by the document frequencies of the training documents. sector comes as TF-IDF. Documents
  have unit length.

The splits are random and stratified. On text the paper has 1,000 negatives to a positive: the
positives of the training and of the validation part are thinned to that, though to no fewer than
two and one. That leaves 4 to 9 to train with and 1 to 4 to choose with, as these sets are much
smaller than RCV1. The test part keeps all its positives: the AUC does not depend on their share,
and three of them would measure nothing.
"""

import bz2
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.model_selection import train_test_split

from benchmarks.paper_tables import paper, real_sets
from benchmarks.paper_tables.protocol import Rows, Standardiser

TRAIN_SHARE, VALIDATION_SHARE = 0.5, 0.2
NEGATIVES_TO_A_POSITIVE = 1000
LEAST_TRAINING, LEAST_VALIDATION = 2, 1
GROUPS = 6
TEXTS = {
    "tdt2": "tdt2.svmlight.bz2",
    "sector": "sector.svmlight.bz2",
    "newsgroups20": "newsgroups20.parquet",
}
_WEIGHTED = ("sector",)  # comes as TF-IDF


class Parts(NamedTuple):
    """One split of one problem."""

    train: Rows
    validation: Rows
    test: Rows


class Documents(NamedTuple):
    """All documents of a set and the group of each."""

    X: sparse.csr_array
    group: np.ndarray


def dense_names() -> list[str]:
    """The dense sets that can be read, in the order of RankRC's Table 3."""
    return [name for name in paper.set_names() if name in real_sets.SETS]


def is_there(name: str, folder: Path) -> bool:
    """Whether the data folder holds a dense set or a set of texts."""
    return (folder / TEXTS[name]).is_file() if name in TEXTS else real_sets.is_there(name, folder)


def problems(name: str, folder: Path, groups: int = GROUPS) -> list[str]:
    """The problems of a set: itself, or "tdt2 1", "tdt2 2", .. for its largest groups."""
    if name not in TEXTS:
        return [name]
    return [f"{name} {group}" for group in largest_groups(documents(name, folder).group, groups)]


def largest_groups(group: np.ndarray, count: int) -> list[str]:
    """The groups with the most documents; of equal ones those that sort first."""
    names, sizes = np.unique(group, return_counts=True)
    return [str(names[k]) for k in np.argsort(-sizes, kind="stable")[:count]]


# All methods are run on a split before the next one is made.
@lru_cache(maxsize=1)
def parts(problem: str, folder: Path, number: int) -> Parts:
    """Split `number` of a problem, scaled."""
    name, _, group = problem.partition(" ")
    if name not in TEXTS:
        X, y = real_sets.load(name, folder)
        chosen = split(y, number)
        return _scaled(X, y, chosen, Standardiser.of(X[chosen[0]]))
    X, groups = documents(name, folder)
    y = (groups == group).astype(np.int64)
    train, validation, test = split(y, number)
    rng = np.random.default_rng(number)
    train = thinned(train, y, LEAST_TRAINING, rng)
    validation = thinned(validation, y, LEAST_VALIDATION, rng)
    weigh = (lambda Z: Z) if name in _WEIGHTED else TfidfTransformer().fit(X[train]).transform
    return _scaled(X, y, (train, validation, test), weigh)


def split(y: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the training, validation and test part, each with its share of positives."""
    train, rest = train_test_split(
        np.arange(len(y)), train_size=TRAIN_SHARE, stratify=y, random_state=number
    )
    share = VALIDATION_SHARE / (1.0 - TRAIN_SHARE)
    validation, test = train_test_split(
        rest, train_size=share, stratify=y[rest], random_state=number
    )
    return train, validation, test


def thinned(rows: np.ndarray, y: np.ndarray, least: int, rng: np.random.Generator) -> np.ndarray:
    """Rows with one positive to 1,000 negatives, but `least` of them."""
    positive, negative = rows[y[rows] == 1], rows[y[rows] == 0]
    wanted = max(least, round(len(negative) / NEGATIVES_TO_A_POSITIVE))
    return np.sort(np.concatenate([negative, rng.permutation(positive)[:wanted]]))


@cache
def documents(name: str, folder: Path) -> Documents:
    """All documents of a set, as its file has them; texts become counts of words."""
    path = folder / TEXTS[name]
    if path.suffix == ".parquet":
        table = pl.read_parquet(path)
        words = CountVectorizer(min_df=2, dtype=np.float64)
        counts = words.fit_transform(table["text"].to_list())
        return Documents(narrow(counts), table["group"].cast(pl.String).to_numpy())
    with bz2.open(path) as lines:
        X, label = load_svmlight_file(lines)
    return Documents(narrow(X), label.astype(np.int64).astype(str))


def narrow(X: Any) -> sparse.csr_array:
    """The same rows with 32-bit indices, which liblinear needs."""
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sparse.csr_array((X.data, indices, indptr), shape=X.shape)


def _scaled(
    X: Any, y: np.ndarray, chosen: tuple[np.ndarray, ...], scale: Callable[[Any], Any]
) -> Parts:
    return Parts(*(Rows(scale(X[rows]), y[rows]) for rows in chosen))
