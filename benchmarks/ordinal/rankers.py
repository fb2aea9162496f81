"""OrdinalRankRC with the rare levels' rows, random rows or all rows as landmarks.

lam (and the width, where it is chosen too) is chosen by the library's own OrdinalRankRCCV with the
one split that every method gets.
"""

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.ordinal.choice import Chosen, Task
from rareclass import OrdinalRankRC, OrdinalRankRCCV
from rareclass.metrics import mauc
from rareclass.ranking.rankrc import fit_along_lam

_BLOCK = 1024
MEMORY = "10GiB"  # for the kernel, as in the paper
WIDTHS = (0.25, 0.5, 1.0, 2.0)  # of the mean width


def rare(task: Task) -> Chosen:
    """OrdinalRankRC: rows of all levels but the most frequent one carry the model."""
    return _choose(task, _rare(task), (1.0,))


def rare_any_width(task: Task) -> Chosen:
    """The same with the width chosen among a quarter to twice the mean width."""
    return _choose(task, _rare(task), WIDTHS)


def every_rare(task: Task) -> Chosen | None:
    """All rows of the rare levels, where the protocol lets `rare` have some of them only."""
    return None if task.landmarks is None else _choose(task, "rare", (1.0,))


def random(task: Task) -> Chosen:
    """RANK-RND: as many random rows."""
    return _choose(task, "random" if task.landmarks is None else task.landmarks, (1.0,))


def everything(task: Task) -> Chosen:
    """Ordinal RankSVM, problem (47): every row.

    Not by OrdinalRankRCCV, which factorises the kernel of the validation rows as well: of 7,374
    rows and 10,000 to choose on that takes 13 times as long. Where the final rows are those of
    the candidates, the chosen one is not fitted again.
    """
    own = {"landmarks": "all", "memory": MEMORY, "n_jobs": 1, "verbose": False}
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        models = [OrdinalRankRC(lam=lam, width=_mean_width(task), **own) for lam in task.lams]
        fit_along_lam(models, task.X[task.fitting], task.y[task.fitting])
        X, y = task.X[task.validation], task.y[task.validation]
        values = [mauc(y, column) for column in _scores(models, X).T]
        best = models[int(np.argmax(values))]  # of equals the largest lam
        middle = time.process_time()
        if not np.array_equal(task.final, task.fitting):
            best.fit(task.X[task.final], task.y[task.final])
        end = time.process_time()
    parameter, size = f"lam 2^{np.log2(best.lam):.0f}", int(np.count_nonzero(best.dual_coef_))
    scores = best.score_samples
    return Chosen(scores, parameter, middle - start, end - middle, size, len(caught))


def _scores(models: Sequence[OrdinalRankRC], X: np.ndarray) -> np.ndarray:
    """Scores of rows by models of the same landmarks, a column a model."""
    first = models[0]
    coef = np.column_stack([model.dual_coef_ for model in models])
    blocks = [
        rbf_kernel(X[at : at + _BLOCK], first.landmarks_, gamma=first.width_**-2.0) @ coef
        for at in range(0, len(X), _BLOCK)
    ]
    return np.concatenate(blocks)


def _mean_width(task: Task) -> float:
    return float(np.sqrt(2.0 * task.X[task.fitting].var(axis=0, dtype=np.float64).sum()))


def _rare(task: Task) -> Any:
    return "rare" if task.landmarks is None else ("rare", task.landmarks)


def _choose(task: Task, landmarks: Any, widths: Sequence[float]) -> Chosen:
    """lam and width by MAUC on the validation rows, then a fit on the final rows."""
    own = {
        "landmarks": landmarks,
        "memory": MEMORY,
        "random_state": task.seed,
        "n_jobs": 1,
        "verbose": False,
    }
    mean_width = _mean_width(task)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        searches = [
            OrdinalRankRCCV(
                lams=task.lams,
                cv=[(task.fitting, task.validation)],
                refit=False,
                width=factor * mean_width,
                **own,
            ).fit(task.X, task.y)
            for factor in widths
        ]
        best = max(range(len(widths)), key=lambda k: searches[k].best_score_)
        lam = searches[best].best_lam_
        middle = time.process_time()
        model = OrdinalRankRC(lam=lam, width=widths[best] * mean_width, **own)
        model.fit(task.X[task.final], task.y[task.final])
        end = time.process_time()
    parameter = f"lam 2^{np.log2(lam):.0f}"
    if len(widths) > 1:
        parameter += f", width x {widths[best]:g}"
    size = int(np.count_nonzero(model.dual_coef_))
    return Chosen(model.score_samples, parameter, middle - start, end - middle, size, len(caught))
