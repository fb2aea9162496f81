"""Pairs put aside by bounds, or all worked out: `python -m benchmarks.cbr_forms`.

CBR with a full covariance has one compiled loop with two ways through a row (docs/decisions/0011).
Both are timed side by side, in turns, on generated streams of several widths and difficulties,
with buffers 50 + 50: working out every pair, putting pairs aside by their bounds, and switching
between them by the share of pairs that took steps. They give the same weights to rounding: checked
here on every stream. Seconds are the processor's: other programs may be at work beside it. Goals,
where more than half of the pairs step: 400,000 rows a second at 8 features and 60,000 at 54.
"""

import argparse
import sys
import time
from statistics import NormalDist

import numpy as np

from benchmarks import record
from benchmarks.paper_tables.study import print_table
from rareclass.metrics import roc_auc
from rareclass.online import CBR, _cbr_full_jit, cbr

CAPACITY = 50
PHI = NormalDist().inv_cdf(0.7)
FORMS = {"all pairs": -1.0, "by bounds": 2.0, "switching": cbr._BUSY}
# Rare share and distance between the classes, in deviations.
STREAMS = {
    "easy, 1 % rare": (0.01, 2.0),
    "easy, 36 % rare": (0.36, 2.0),
    "medium, 1 % rare": (0.01, 1.0),
    "medium, 36 % rare": (0.36, 1.0),
    "hard, 36 % rare": (0.36, 0.4),
    "hardly any signal, 36 % rare": (0.36, 0.1),
}


def stream(n: int, d: int, share: float, distance: float) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussian classes with unit covariance, `distance` apart."""
    rng = np.random.default_rng(d)
    sign = np.where(rng.random(n) < share, 1, -1).astype(np.int8)
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    X = rng.normal(size=(n, d)) + distance * np.outer(sign > 0, direction)
    return X, sign


def run(X: np.ndarray, sign: np.ndarray, busy: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Processor seconds, final weights and scores of one run of the loop."""
    model = CBR(buffer_size=CAPACITY).start(X.shape[1], [0, 1])
    state = model.state_
    slot = cbr.slots("fifo", CAPACITY, state.buffers.seen, sign, state.rng)
    scores, step = np.empty(len(X)), np.ones(len(X))
    covariance = cbr._wide(state.covariance)
    begin = time.process_time()
    _cbr_full_jit.learn(
        X, sign, step, slot, state.mean, covariance,
        state.buffers.rows, state.buffers.seen, state.bound, state.share, 1.0, PHI, busy, scores,
    )  # fmt: skip
    return time.process_time() - begin, state.mean, scores


def compare(n: int, d: int, share: float, distance: float, repeats: int) -> dict[str, object]:
    """The fastest of several turns of each form."""
    X, sign = stream(n, d, share, distance)
    fastest = dict.fromkeys(FORMS, np.inf)
    means, scores = {}, np.empty(0)
    for _ in range(repeats):
        for name, busy in FORMS.items():
            seconds, means[name], scores = run(X, sign, busy)
            fastest[name] = min(fastest[name], seconds)
    for mean in means.values():
        most = 1e-9 * abs(means["all pairs"]).max()
        if not np.allclose(mean, means["all pairs"], rtol=0.0, atol=most):
            raise AssertionError(f"the forms differ at d = {d}")
    return {
        "auc": roc_auc(sign > 0, scores),
        "rows_per_second": {name: n / seconds for name, seconds in fastest.items()},
    }


def main(argv: list[str]) -> None:
    """Time, print, store."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cbr_forms", description=__doc__)
    parser.add_argument("--features", type=int, nargs="*", default=[2, 8, 20, 54, 100, 200])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--work", type=float, default=2e8, help="rows times features squared")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(argv)
    cells, lines = [], []
    run(*stream(100, 2, 0.5, 1.0), busy=0.4)  # compiles
    for d in options.features:
        n = int(np.clip(options.work / d**2 / 2, 1000, 20_000))
        for name, (share, distance) in STREAMS.items():
            cell = compare(n, d, share, distance, options.repeats)
            cells.append({"features": d, "stream": name, "rows": n, **cell})
            rates = cell["rows_per_second"]
            figures = [f"{rates[form]:,.0f}" for form in FORMS]
            ratio = f"{rates['switching'] / rates['all pairs']:.2f}"
            lines.append([f"d = {d}, {name}", f"{cell['auc']:.3f}", *figures, ratio])
    print_table(["stream", "AUC", *(f"{f}, rows/s" for f in FORMS), "ratio"], lines)
    record.write("cbr_forms", {"busy": cbr._BUSY, "cells": cells}, options.json)


if __name__ == "__main__":
    main(sys.argv[1:])
