"""The rows that MIBC's speed is measured on: dense ones, texts with 1,000 negatives to a positive.

Texts are made of the real documents of newsgroups20: a new document has the length of one real
document of a group and its words drawn from that and a second one of the same group, so that word
frequencies, lengths and topics are those of the real ones. Then TF-IDF, unit length. The positives
are of one group, the negatives of the others.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from benchmarks.paper_tables import mibc_sets
from benchmarks.paper_tables.mibc_sets import Rows

POSITIVE_GROUP = "rec.autos"
_CHUNK = 10_000


class Words(NamedTuple):
    """Documents as the words they are made of: document k has ``word[start[k]:start[k + 1]]``."""

    word: np.ndarray
    start: np.ndarray


def dense(features: int, positives: int, negatives: int, seed: int = 0) -> Rows:
    """Two normal classes that overlap, with covariances of different shape, unit variances.

    Features share a tenth as many hidden causes; the classes' causes differ.
    """
    rng = np.random.default_rng(seed)
    causes = max(features // 10, 1)

    def drawn(rows: int) -> np.ndarray:
        loadings = rng.normal(size=(causes, features))
        X = rng.normal(size=(rows, causes)) @ loadings + rng.normal(size=(rows, features))
        return X / np.sqrt((loadings**2).sum(axis=0) + 1.0)

    shift = 0.03 * rng.normal(size=features)
    y = np.repeat([0, 1], [negatives, positives])
    order = rng.permutation(len(y))
    X = np.vstack([drawn(negatives), drawn(positives) + shift])
    return Rows(np.ascontiguousarray(X[order]), y[order])


def text(positives: int, negatives: int, folder: Path, seed: int = 0) -> Rows:
    """Sparse TF-IDF rows, 32-bit indices, sorted within a row."""
    counts, group = mibc_sets.documents("newsgroups20", folder)
    words = as_words(counts)
    rng = np.random.default_rng(seed)
    is_positive = group == POSITIVE_GROUP
    made = [
        mixed(words, group, np.flatnonzero(rows), many, counts.shape[1], rng)
        for rows, many in ((~is_positive, negatives), (is_positive, positives))
    ]
    y = np.repeat([0, 1], [negatives, positives])
    order = rng.permutation(len(y))
    X = TfidfTransformer().fit_transform(sparse.vstack(made, format="csr")[order])
    X.sort_indices()
    return Rows(mibc_sets.narrow(X), y[order])


def as_words(counts: sparse.csr_array) -> Words:
    """Every word as often as it is counted."""
    times = counts.data.astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(times)])
    return Words(np.repeat(counts.indices, times), ends[counts.indptr])


def mixed(
    words: Words,
    group: np.ndarray,
    documents: np.ndarray,
    count: int,
    n_words: int,
    rng: np.random.Generator,
) -> sparse.csr_array:
    """`count` new documents, each of two of these documents that are of one group."""
    length = np.diff(words.start)
    documents = documents[length[documents] > 0]
    documents = documents[np.argsort(group[documents], kind="stable")]
    _, first, size = np.unique(group[documents], return_index=True, return_counts=True)
    chosen = rng.integers(len(documents), size=count)
    own = np.searchsorted(first, chosen, side="right") - 1
    partner = first[own] + rng.integers(size[own])
    pair = np.column_stack([documents[chosen], documents[partner]])
    parts = []
    for begin in range(0, count, _CHUNK):
        two = pair[begin : begin + _CHUNK]
        row = np.repeat(np.arange(len(two)), length[two[:, 0]])
        source = two[row, rng.integers(2, size=len(row))]
        drawn = words.word[words.start[source] + rng.integers(length[source])]
        ones = np.ones(len(row))
        parts.append(sparse.csr_array((ones, (row, drawn)), shape=(len(two), n_words)))
    return sparse.vstack(parts, format="csr")
