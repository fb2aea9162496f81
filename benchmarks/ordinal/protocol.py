"""How methods are measured: random splits of small sets, growing parts of the large one.

Small sets: a third of the rows is for testing, stratified by level (at most `TEST_ROWS`, and at
most `TRAIN_ROWS` of the others for learning). A quarter of the learning rows judges the candidates;
the chosen one then learns from all of them.

Growing parts, the paper's section 5: 5 to 75 percent of the rows are for learning, of the others
half judge the candidates and half are for testing (at most `HELD_OUT` of either, drawn at random).
The chosen candidate has learned from the learning rows only.

Features are standardised by the learning rows. All methods see the same rows and one thread.
Seconds are CPU seconds, for the machine may do other work: its load is stored with each fit.
"""

import os
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split
from threadpoolctl import threadpool_limits

from benchmarks.ordinal.choice import Task
from benchmarks.ordinal.methods import METHODS
from benchmarks.ordinal.sets import Rows
from benchmarks.paper_tables.protocol import LAMS, Standardiser
from rareclass.metrics import mauc, vus

TEST_SHARE, VALIDATION_SHARE = 1 / 3, 1 / 4
TRAIN_ROWS, TEST_ROWS = 6_000, 20_000
PERCENTS = (5.0, 10.0, 25.0, 50.0, 75.0)
HELD_OUT = (10_000, 30_000)  # validation, test
PARTS, LEAST_PARTS = 20, 10  # of the test rows, for paired tests where there is one split
DAYS_LANDMARKS = 2_000
# From this many percent on, kernel rankers choose lam from four around what the smaller parts chose
# from the paper's sixteen, 2^-10 and 2^-12: four share a pass of the kernel.
LARGE_PERCENT, LARGE_LAMS = 50.0, tuple(2.0 ** np.arange(-10, -17, -2))


class Part(NamedTuple):
    """One split: what to learn from, what is kept for the test, whether it is the only one."""

    task: Task
    X_test: np.ndarray
    y_test: np.ndarray
    is_only: bool = False


def one_split(rows: Rows, seed: int) -> Part:
    """The split with this seed."""
    every = np.arange(len(rows.y))
    train, test = train_test_split(every, test_size=TEST_SHARE, stratify=rows.y, random_state=seed)
    train, test = (_at_most(part, n, seed) for part, n in ((train, TRAIN_ROWS), (test, TEST_ROWS)))
    X, X_test = _standardised(rows.X, train, test)
    y = rows.y[train]
    validation = _some(y, VALIDATION_SHARE, seed)
    fitting = np.setdiff1d(np.arange(len(y)), validation)
    task = Task(X, y, fitting, validation, np.arange(len(y)), seed)
    return Part(task, X_test, rows.y[test])


def growing(rows: Rows, percent: float, seed: int = 0) -> Part:
    """The paper's design at one size."""
    every = np.random.default_rng(seed).permutation(len(rows.y))
    n_train = round(len(every) * percent / 100.0)
    train, rest = every[:n_train], every[n_train:]
    half = len(rest) // 2
    validation, test = rest[:half][: HELD_OUT[0]], rest[half:][: HELD_OUT[1]]
    learning = np.concatenate([train, validation])
    standardise = Standardiser.of(rows.X[train])
    dtype = rows.X.dtype
    fitting = np.arange(n_train)
    n_held = n_train - np.bincount(rows.y[train]).max()
    task = Task(
        standardise(rows.X[learning]).astype(dtype),
        rows.y[learning],
        fitting,
        np.arange(n_train, len(learning)),
        fitting,
        seed,
        DAYS_LANDMARKS if n_held > DAYS_LANDMARKS else None,
        LARGE_LAMS if percent >= LARGE_PERCENT else tuple(LAMS),
    )
    return Part(task, standardise(rows.X[test]).astype(dtype), rows.y[test], is_only=seed == 0)


def measure(part: Part, name: str) -> dict[str, Any] | None:
    """Test MAUC and VUS, seconds and size of a method; None where it is not run on these rows."""
    method = METHODS[name]
    n_rows = len(part.task.final)
    if method.most_rows is not None and n_rows > method.most_rows:
        return None
    with threadpool_limits(1):
        chosen = method.choose(part.task)
        if chosen is None:
            return None
        scores = np.asarray(chosen.scores(part.X_test), dtype=np.float64)
    return {
        "method": name,
        "rows": n_rows,
        "mauc": mauc(part.y_test, scores),
        "vus": vus(part.y_test, scores),
        "parts": part_values(part.y_test, scores) if part.is_only else [],
        "choice_seconds": chosen.choice_seconds,
        "fit_seconds": chosen.fit_seconds,
        "parameter": chosen.parameter,
        "size": chosen.size,
        "stopped": chosen.stopped,
        "load": os.getloadavg()[0],
    }


def part_values(y: np.ndarray, scores: np.ndarray) -> list[float]:
    """MAUC of disjoint random parts of the test rows, stratified: independent, so comparable."""
    counts = np.bincount(y)
    n_parts = min(PARTS, int(counts[counts > 0].min()))  # each has rows of every level
    if n_parts < LEAST_PARTS:
        return []
    folds = StratifiedKFold(n_parts, shuffle=True, random_state=0)
    return [mauc(y[part], scores[part]) for _, part in folds.split(y, y)]


def _standardised(X: np.ndarray, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
    standardise = Standardiser.of(X[train])
    return standardise(X[train]), standardise(X[test])


def _at_most(rows: np.ndarray, most: int, seed: int) -> np.ndarray:
    if len(rows) <= most:
        return rows
    return np.random.default_rng(seed).choice(rows, most, replace=False)


def _some(y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """A share of the rows of every level, rounded: a level of one row is not among them."""
    rng = np.random.default_rng(seed)
    chosen = []
    for level in np.unique(y):
        rows = np.flatnonzero(y == level)
        chosen.append(rng.permutation(rows)[: round(share * len(rows))])
    return np.sort(np.concatenate(chosen))
