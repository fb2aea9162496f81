"""RACH as the paper has it: no margin, the solved radius, C1, C2 and width by left-out F1.

`RACHCV` differs in three ways (docs/decisions/0020): a margin, a border by the share of rare
rows, a border moved by left-out rows. None of them is here. The paper names no grid. This one is
C1 of 1, 0.1, 10; C2 of 1, 0.1, 10 over the number of unlabelled rows that Algorithm 1 keeps; widths
of 1, 1/3 and 3 times the mean one: 27 candidates, as many as `RACHCV` has. Three folds where other
methods have five, as with a C2 every fit takes the solver several times as long; the fits of the
search use 50 landmarks and the tolerance of `RACHCV`'s own search.
"""

import warnings
from itertools import product
from typing import Any

import numpy as np

from benchmarks.paper_tables.protocol import gaussian_gamma
from benchmarks.paper_tables.rach_choice import RARE, Task, f1, folds
from rareclass import RACH
from rareclass.estimators.estimator import read_features
from rareclass.hyperball.choice import BallCandidate, CandidateBalls, held_out_choices
from rareclass.hyperball.pool import survey
from rareclass.labels.partial_labels import read_partial_labels

C1S, C2S, WIDTHS = (1.0, 0.1, 10.0), (1.0, 0.1, 10.0), (1.0, 1.0 / 3.0, 3.0)
FOLDS, SEARCH_LANDMARKS = 3, 50
# C1, C2 times the unlabelled rows kept, and the width over the mean one.
Candidate = tuple[float, float, float]
GRID: tuple[Candidate, ...] = tuple(product(C1S, C2S, WIDTHS))


def guess(task: Task, seed: int) -> tuple[np.ndarray, Candidate]:
    """The rows that the ball of the best candidate holds, and the candidate."""
    balls = _balls(task)
    best = int(np.argmax(left_out_f1(task, seed, balls)))
    C1, C2, width, *_ = balls.tried[best]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = RACH(C1=C1, C2=C2, width=width, kernel="gaussian", n_jobs=1).fit(task.X, task.y)
    return (model.transduction_ == RARE).astype(np.int8), GRID[best]


def left_out_f1(task: Task, seed: int, balls: CandidateBalls) -> np.ndarray:
    """F1 of all left-out rows together, a candidate each; zeros with one rare label."""
    left_out = [rows for _, rows in folds(task, seed, FOLDS)]
    if not left_out:
        return np.zeros(len(balls.tried))
    choices = held_out_choices(balls, left_out, by_share=False, learn_radius=False, advance=_quiet)
    return np.array([f1(task.y[one.rows], one.depths >= 0.0) for one in choices])


def _balls(task: Task) -> CandidateBalls:
    """Rows that the filter keeps, and the candidates of the search."""
    model = RACH(kernel="gaussian", n_landmarks=SEARCH_LANDMARKS, n_jobs=1)
    source = read_features(model, task.X, squares=True)
    labels = read_partial_labels(task.y, None, RARE, source.n_rows)
    known = survey(model, source, labels)
    width = gaussian_gamma(task.X) ** -0.5
    n_kept = max(known.pools[0].n_near, 1)
    tried = [BallCandidate(C1, C2 / n_kept, share * width) for C1, C2, share in GRID]
    return CandidateBalls.of(RARE, tried, known, model)


def _quiet(note: Any = "") -> None:
    """No progress is shown."""
