"""All methods by name, and the choice that every peer goes through."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.ordinal import peers, rankers
from benchmarks.ordinal.choice import Chosen, Task
from rareclass.metrics import mauc

OURS, EVERY, WIDTH, RANDOM, ALL = (
    "OrdinalRankRC",
    "OrdinalRankRC, every rare row",
    "OrdinalRankRC, width chosen",
    "RANK-RND",
    "ordinal RankSVM",
)


@dataclass(frozen=True)
class Method:
    """A way to rank levels.

    Parameters
    ----------
    choose : callable
        `Task` to `Chosen`, or to None where it would be the same as another method.
    most_rows : int or None
        Rows beyond which it is not run here; None for no limit.
    carries : str
        What the size of its model counts.
    """

    choose: Callable[[Task], Chosen | None]
    most_rows: int | None = None
    carries: str = ""


def peer(fit: peers.Fit, candidates: Sequence[Any], has_size: bool = False) -> Any:
    """A chooser: the candidate with the best MAUC on the validation rows, fitted again."""

    def choose(task: Task) -> Chosen:
        X, y = task.X, task.y
        start = time.process_time()
        tried = fit(X[task.fitting], y[task.fitting], candidates, task.seed)
        scores = tried.scores(X[task.validation], range(len(tried.params)))
        values = [mauc(y[task.validation], column) for column in scores.T]
        best = tried.params[int(np.argmax(values))]  # of equals the first
        middle = time.process_time()
        final = fit(X[task.final], y[task.final], [best], task.seed)
        end = time.process_time()
        return Chosen(
            lambda rows: final.scores(rows, [0])[:, 0],
            _text(best),
            middle - start,
            end - middle,
            final.sizes[0] if has_size else None,
            tried.stopped + final.stopped,
        )

    return choose


def _text(candidate: Any) -> str:
    if isinstance(candidate, tuple):
        leaves, trees = candidate
        return f"{trees} trees of {leaves} leaves"
    return f"{candidate:.4g}"


def _lightgbm(**settings: Any) -> Callable[[Task], Chosen]:
    return peer(partial(peers.lightgbm, **settings), peers.TREES)


def _mord(model: str) -> Callable[[Task], Chosen]:
    return peer(partial(peers.mord, model=model), peers.ALPHAS)


METHODS: dict[str, Method] = {
    OURS: Method(rankers.rare, carries="landmarks"),
    EVERY: Method(rankers.every_rare, most_rows=40_000, carries="landmarks"),
    WIDTH: Method(rankers.rare_any_width, most_rows=20_000, carries="landmarks"),
    RANDOM: Method(rankers.random, carries="landmarks"),
    ALL: Method(rankers.everything, most_rows=16_000, carries="landmarks"),
    "KNN": Method(peer(peers.knn, peers.NEIGHBOURS, has_size=True), carries="rows kept"),
    "SVR": Method(peer(peers.svr, peers.COSTS, has_size=True), 16_000, "support vectors"),
    "ridge": Method(peer(peers.ridge, peers.RIDGES)),
    "LightGBM regression": Method(_lightgbm(objective="regression")),
    "LightGBM lambdarank": Method(_lightgbm(objective="lambdarank")),
    "LightGBM lambdarank, all pairs": Method(
        _lightgbm(objective="lambdarank", all_pairs=True), most_rows=4_000
    ),
    "LightGBM xendcg": Method(_lightgbm(objective="rank_xendcg")),
    "mord AT": Method(_mord("LogisticAT"), most_rows=16_000),
    "mord IT": Method(_mord("LogisticIT"), most_rows=16_000),
}


def available() -> list[str]:
    """Methods whose library is installed."""
    from importlib.util import find_spec

    needs = {"mord": "mord", "LightGBM": "lightgbm"}
    return [name for name in METHODS if find_spec(needs.get(name.split()[0], "numpy"))]
