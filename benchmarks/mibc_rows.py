"""The rows that MIBC's speed is measured on: dense ones, texts with 1,000 negatives to a positive.

Texts are made of real documents where newsgroups20 is in the data folder: a new document has the
length of one real document of a group and its words drawn from that and a second one of the same
group, so that word frequencies, lengths and topics are those of the real ones. Then TF-IDF, unit
length. The positives are of one group, the negatives of the others. Without the folder words
follow Zipf's law.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from benchmarks.paper_tables import mibc_sets
from benchmarks.paper_tables.mibc_sets import Rows

POSITIVE_GROUP = "rec.autos"
ZIPF_WORDS, ZIPF_LENGTH = 50_000, 100
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


def text(positives: int, negatives: int, folder: Path | None, seed: int = 0) -> Rows:
    """Sparse TF-IDF rows, 32-bit indices, sorted within a row."""
    if folder is None or not has_texts(folder):
        return _zipf(positives, negatives, seed)
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


def _zipf(positives: int, negatives: int, seed: int) -> Rows:
    """As many of both as asked for: a few more are drawn and left out."""
    rows = positives + negatives
    X, y = _zipf_text(2 * rows, min(0.5, 2.0 * positives / rows), seed)
    kept = np.sort(
        np.concatenate([np.flatnonzero(y == 1)[:positives], np.flatnonzero(y == 0)[:negatives]])
    )
    return Rows(mibc_sets.narrow(X[kept]), y[kept])


def _zipf_text(rows: int, rare_share: float, seed: int) -> Rows:
    """CSR rows of unit length with 100 of 50,000 words, by Zipf's law; 500 words tell."""
    rng = np.random.default_rng(seed)
    y = (rng.random(rows) < rare_share).astype(int)
    share = 1.0 / np.arange(10, ZIPF_WORDS + 10)
    cumulated = np.cumsum(share / share.sum())
    telling = np.random.default_rng(1).choice(ZIPF_WORDS, 500, replace=False)
    words = [
        _distinct_words(rng, cumulated, telling if rare else None, ZIPF_LENGTH) for rare in y == 1
    ]
    indptr = np.arange(0, rows * ZIPF_LENGTH + 1, ZIPF_LENGTH)
    data = rng.gamma(2.0, size=(rows, ZIPF_LENGTH))
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    shape = (rows, ZIPF_WORDS)
    return Rows(sparse.csr_array((data.ravel(), np.concatenate(words), indptr), shape=shape), y)


def _distinct_words(
    rng: np.random.Generator, cumulated: np.ndarray, telling: np.ndarray | None, n: int
) -> np.ndarray:
    """n distinct words; of a rare row one in twenty is among those that tell."""
    drawn = np.searchsorted(cumulated, rng.random(3 * n))
    if telling is not None:
        drawn[: n // 20] = rng.choice(telling, n // 20)
    words = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    while len(words) < n:
        words = np.unique(np.append(words, rng.integers(ZIPF_WORDS)))
    return np.sort(words[:n]).astype(np.int64)


def has_texts(folder: Path | None) -> bool:
    """Whether there are real documents to make texts of."""
    return folder is not None and mibc_sets.is_there("newsgroups20", folder)


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
