"""Streams for the online learners' benchmarks: real rows, and rows made block by block."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.paper_tables import cbr_sets
from benchmarks.paper_tables.cbr_protocol import scaler

COVTYPE_ROWS = 581_012
_COVTYPE_NUMBERS, _COVTYPE_AREAS, _COVTYPE_SOILS = 10, 4, 40
TEXT_WORDS, TEXT_LENGTH = 50_000, 100


class Stream(NamedTuple):
    """Rows in their order, and 1 where a row is rare."""

    X: Any
    y: np.ndarray


def cod_rna(folder: Path, rare_share: float | None = None) -> Stream:
    """cod_rna in a random order, features in [-1, 1]; the positive rows thinned to a share."""
    X, y = cbr_sets.load("cod_rna", folder)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    if rare_share is not None:
        rest = order[y[order] == 0]
        n_rare = round(len(rest) * rare_share / (1.0 - rare_share))
        order = rng.permutation(np.append(rest, order[y[order] == 1][:n_rare]))
    return Stream(scaler(X, "range")(X)[order], y[order])


def mixture(rows: int, features: int = 8, rare_share: float = 0.01, seed: int = 0) -> Stream:
    """Two normal classes with one covariance; an ideal ranker has an AUC of 0.92 (d' = 2)."""
    rng = np.random.default_rng(seed)
    shape = np.random.default_rng(1).normal(size=(features, features)) / np.sqrt(features)
    y = (rng.random(rows) < rare_share).astype(int)
    shift = np.full(features, 2.0 / np.sqrt(features))
    return Stream((rng.normal(size=(rows, features)) + y[:, None] * shift) @ shape, y)


def like_covtype(rows: int = COVTYPE_ROWS, seed: int = 0) -> Stream:
    """10 numbers, 1 of 4 areas and 1 of 40 soils as indicators, 54 features in [-1, 1].

    As covtype has them, half of the rows positive. The classes overlap: a linear ranker reaches
    an AUC of 0.83 or so, which is what it reaches on covtype.
    """
    rng = np.random.default_rng(seed)
    fixed = np.random.default_rng(1)
    X = np.full((rows, _COVTYPE_NUMBERS + _COVTYPE_AREAS + _COVTYPE_SOILS), -1.0)
    X[:, :_COVTYPE_NUMBERS] = np.clip(0.4 * rng.normal(size=(rows, _COVTYPE_NUMBERS)), -1.0, 1.0)
    row = np.arange(rows)
    for first, many in (
        (_COVTYPE_NUMBERS, _COVTYPE_AREAS),
        (_COVTYPE_NUMBERS + _COVTYPE_AREAS, _COVTYPE_SOILS),
    ):
        share = fixed.dirichlet(np.ones(many))
        X[row, first + rng.choice(many, size=rows, p=share)] = 1.0
    weights = fixed.normal(size=X.shape[1])
    score = X @ weights
    score = (score - score.mean()) / score.std()
    y = (score + 0.6 * rng.logistic(size=rows) > 0.0).astype(int)
    return Stream(X, y)


def text(rows: int, rare_share: float = 0.05, seed: int = 0) -> Stream:
    """CSR rows of unit length with 100 of 50,000 words, by Zipf's law; 500 words tell."""
    rng = np.random.default_rng(seed)
    y = (rng.random(rows) < rare_share).astype(int)
    share = 1.0 / np.arange(10, TEXT_WORDS + 10)
    cumulated = np.cumsum(share / share.sum())
    telling = np.random.default_rng(1).choice(TEXT_WORDS, 500, replace=False)
    words = [
        _distinct_words(rng, cumulated, telling if rare else None, TEXT_LENGTH) for rare in y == 1
    ]
    indptr = np.arange(0, rows * TEXT_LENGTH + 1, TEXT_LENGTH)
    data = rng.gamma(2.0, size=(rows, TEXT_LENGTH))
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    shape = (rows, TEXT_WORDS)
    return Stream(sparse.csr_array((data.ravel(), np.concatenate(words), indptr), shape=shape), y)


def _distinct_words(
    rng: np.random.Generator, cumulated: np.ndarray, telling: np.ndarray | None, n: int
) -> np.ndarray:
    """n distinct words; of a rare row one in twenty is among those that tell."""
    drawn = np.searchsorted(cumulated, rng.random(3 * n))
    if telling is not None:
        drawn[: n // 20] = rng.choice(telling, n // 20)
    words = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    while len(words) < n:
        words = np.unique(np.append(words, rng.integers(TEXT_WORDS)))
    return np.sort(words[:n]).astype(np.int64)


def blocks(rows: int, block: int, features: int = 8) -> Iterator[Stream]:
    """`mixture` block by block, never whole."""
    for number, first in enumerate(range(0, rows, block)):
        yield mixture(min(block, rows - first), features, seed=number)
