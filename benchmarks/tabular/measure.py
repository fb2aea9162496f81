"""One method on splits of one set: fit, score, measures. It runs in a process of its own."""

import json
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from benchmarks import other_work, record
from benchmarks.cells import time_limit
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.tabular import estimates, sets
from benchmarks.tabular.learners import LEARNERS, Learner, Settings
from benchmarks.tabular.search import search
from benchmarks.tabular.spaces import SPACES, TUNED
from rareclass.metrics import interval, precision_at_k

PARTS = 10  # of the test rows, where there is one split
WARM_UP_ROWS, WARM_UP_SECONDS = 200, 1.0


class Fitted(NamedTuple):
    """A fitted method.

    Attributes
    ----------
    scores : callable
        Of a table.
    probabilities : callable or None
        Likewise, where the method has any.
    details : dict
        What was chosen.
    """

    scores: Callable[[pl.DataFrame], np.ndarray]
    probabilities: Callable[[pl.DataFrame], np.ndarray] | None
    details: dict[str, Any]


def splits(
    set_name: str, method: str, numbers: Sequence[int], budget: float, threads: int, limit: float
) -> dict[str, Any]:
    """Measure the splits; each outcome is a line on standard output as soon as it is there.

    A split that takes longer than `limit` seconds ends the process; one that fails is an outcome,
    and the next is tried.
    """
    rows = None
    for number in numbers:
        start = other_work.now()
        with time_limit(limit):
            try:
                if rows is None:
                    rows = sets.load(set_name, data_folder())
                    warm_up(method, rows)
                outcome = {"status": "ok", **one_split(rows, method, number, budget)}
            except Exception as error:
                traceback.print_exc()
                outcome = {"status": "failed", "message": f"{type(error).__name__}: {error}"[:300]}
        end = other_work.now()
        outcome["process_seconds"] = end.wall - start.wall
        outcome["cores_of_others"] = other_work.cores_of_others(start, end)
        print(json.dumps({"split": number, **outcome}, default=record.plain), flush=True)
    return {}


def warm_up(method: str, rows: sets.Rows) -> None:
    """A fit on a few rows of both classes, so that what is compiled or loaded late is there.

    That it fails is no matter: what is wrong will show on all rows. A process that each fit starts
    anew has loaded its library before the fit.
    """
    if LEARNERS[method.removesuffix(TUNED)].is_apart:
        return
    few = WARM_UP_ROWS // 2
    index = np.concatenate([np.flatnonzero(rows.y == label)[:few] for label in (0, 1)])
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a tiny fit may well not converge
        frame, y = rows.part(index)
        fit(method.removesuffix(TUNED), frame, y, 0, WARM_UP_SECONDS).scores(frame)


def one_split(rows: sets.Rows, method: str, number: int, budget: float) -> dict[str, Any]:
    """Measures and seconds of a method on one split."""
    train, test = sets.split(rows, number)
    frame, y = rows.part(train)
    held, y_held = rows.part(test)
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        fitted = fit(method, frame, y, number, budget)
        fit_seconds = time.perf_counter() - start
        start = time.perf_counter()
        scores = np.asarray(fitted.scores(held), dtype=np.float64)
        score_seconds = time.perf_counter() - start
        chances = None if fitted.probabilities is None else fitted.probabilities(held)
    outcome = {
        "seconds": fit_seconds,
        "score_seconds": score_seconds,
        "rows": len(y),
        "rare": int(y.sum()),
        "test_rows": len(y_held),
        "test_rare": int(y_held.sum()),
        **measures(y_held, scores),
        **fitted.details,
        "warnings": sorted({str(warning.message)[:100] for warning in caught})[:3],
    }
    if chances is not None:
        outcome["log_loss"] = float(log_loss(y_held, np.asarray(chances, dtype=np.float64)))
    if estimates.ESTIMATE in outcome:
        outcome[estimates.ON_TEST_ROWS] = list(interval("average_precision", y_held, scores))
    if rows.n_train is not None:
        outcome["parts"] = parts(y_held, scores)
    return outcome


def fit(method: str, frame: pl.DataFrame, y: np.ndarray, seed: int, budget: float) -> Fitted:
    """Choose settings where the method is a tuned one, prepare, fit."""
    name = method.removesuffix(TUNED)
    learner = LEARNERS[name]
    if learner.has_budget:
        return fit_with({"time_budget": budget}, learner, frame, y, seed)
    if not method.endswith(TUNED):
        return fit_with({}, learner, frame, y, seed)
    start = time.perf_counter()
    choice = search(learner, SPACES[name], frame, y, seed, budget)
    details = {
        "chosen": _text(choice.settings),
        "inner": choice.score,
        "candidates": choice.candidates,
        "search_seconds": time.perf_counter() - start,
    }
    return fit_with(choice.settings, learner, frame, y, seed)._replace(details=details)


def fit_with(
    settings: Settings, learner: Learner, frame: pl.DataFrame, y: np.ndarray, seed: int
) -> Fitted:
    """Prepare and fit."""
    frame, y = all_rare(frame, y, learner.most_rows, seed)
    preparation = learner.prepare()
    X = preparation.fit_transform(frame)
    model = learner.build(settings, X, y, seed).fit(X, y)

    def scores(held: pl.DataFrame) -> np.ndarray:
        return learner.scores(model, preparation.transform(held))

    def probabilities(held: pl.DataFrame) -> np.ndarray:
        return model.predict_proba(preparation.transform(held))[:, 1]

    has_any = hasattr(model, "predict_proba")
    return Fitted(scores, probabilities if has_any else None, learner.details(model, y))


def all_rare(
    frame: pl.DataFrame, y: np.ndarray, most: int | None, seed: int
) -> tuple[pl.DataFrame, np.ndarray]:
    """At most so many rows: all rare ones, unless they are over half, and some of the others."""
    if most is None or len(y) <= most:
        return frame, y
    rng = np.random.default_rng(seed)
    rare = rng.permutation(np.flatnonzero(y == 1))[: most // 2]
    others = rng.permutation(np.flatnonzero(y == 0))[: most - len(rare)]
    kept = np.sort(np.concatenate([rare, others]))
    return frame[kept], y[kept]


def measures(y: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """AUC, average precision, and precision of as many alerts as there are rare rows."""
    return {
        "auc": float(roc_auc_score(y, scores)),
        "average_precision": float(average_precision_score(y, scores)),
        "precision": float(precision_at_k(y, scores, int(y.sum()))),
    }


def parts(y: np.ndarray, scores: np.ndarray) -> dict[str, list[float]]:
    """The measures on disjoint stratified parts of the test rows."""
    folds = StratifiedKFold(PARTS, shuffle=True, random_state=0)
    found = [measures(y[part], scores[part]) for _, part in folds.split(y, y)]
    return {name: [one[name] for one in found] for name in found[0]}


def _text(settings: dict[str, Any]) -> str:
    words = (f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in settings.items())
    return ", ".join(words) or "defaults"
