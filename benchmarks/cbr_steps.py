"""The two steps of diagonal CBR side by side on streams: `python -m benchmarks.cbr_steps`.

Streams of `benchmarks.stream_mixture`, each row scored before it is learned: CBR with a diagonal
covariance behind the asinh of standardised columns, balanced classes or none, and every C of
`SIZES`; and the mixture that `rareclass stream` begins with, its two CBR with
either step. Both steps run one after the other on each stream: rows a second can be compared.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone

from benchmarks import record, stream_mixture
from benchmarks.paper_tables.study import print_table
from rareclass.metrics import average_precision, roc_auc
from rareclass.online import CBR, OnlineMixture
from rareclass.online.mixture import default_members

KINDS = ("printed", "exact")
SIZES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
MOST_ROWS = 200_000
HEADER = ["learner", *(f"{m}, {k}" for m in ("AUC", "average precision", "rows/s") for k in KINDS)]


def learners(X: np.ndarray, kind: str) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Name, learner and its rows."""
    bent = np.arcsinh(X)
    for weight, C in product((None, "balanced"), SIZES):
        name = f"CBR, C = {C:g}, {weight or 'no'} weights"
        model = CBR(C, covariance="diagonal", class_weight=weight, diagonal_step=kind)
        yield name, model, bent
    members = [
        (front, clone(member).set_params(diagonal_step=kind) if isinstance(member, CBR) else member)
        for front, member in default_members()
    ]
    yield "mixture", OnlineMixture(members, random_state=0), X


def measure(name: str, most: int) -> list[dict[str, Any]]:
    """All learners with both steps on one stream."""
    stream = stream_mixture.read(name, most)
    cells = []
    for kind in KINDS:
        for learner, model, X in learners(stream.X, kind):
            begun = model.start(X.shape[1], [False, True])
            start = time.process_time()
            scores = begun.test_then_train(X, stream.rare)
            seconds = time.process_time() - start
            cells.append({
                "set": name, "rows": len(X), "learner": learner, "step": kind,
                "auc": roc_auc(stream.rare, scores),
                "ap": average_precision(stream.rare, scores),
                "rows_per_s": len(X) / seconds,
            })  # fmt: skip
    return cells


def lines(cells: list[dict[str, Any]]) -> list[list[str]]:
    """Means over the streams, a line for each learner."""
    table = pl.DataFrame(cells).drop("set")
    found = table.group_by("learner", "step", maintain_order=True)
    means = {(r["learner"], r["step"]): r for r in found.mean().iter_rows(named=True)}
    return [
        [
            name,
            *(f"{means[name, kind][m]:.4f}" for m in ("auc", "ap") for kind in KINDS),
            *(f"{means[name, kind]['rows_per_s']:,.0f}" for kind in KINDS),
        ]
        for name in dict.fromkeys(cell["learner"] for cell in cells)
    ]


def objective(kind: str, C: float, draws: int = 500, seed: int = 0) -> float:
    """Mean of the paper's (6) after one step: for a pair whose other row is 0, of five features.

    mu and z are normal, G uniform in [1, 4], eta = .7; the pairs are those that take a step.
    """
    rng, phi, values = np.random.default_rng(seed), NormalDist().inv_cdf(0.7), []
    while len(values) < draws:
        mu, z, G = rng.normal(size=5), rng.normal(size=5), rng.uniform(1.0, 4.0, 5)
        if phi * np.sqrt(z**2 @ (1.0 / G)) <= mu @ z:
            continue
        model = CBR(C, covariance="diagonal", diagonal_step=kind).start(5, [0, 1])
        model.partial_fit(np.zeros((1, 5)), [0])
        model.state_ = model.state_._replace(mean=mu.copy(), precision=G.copy())
        after = model.partial_fit(z[None], [1]).state_
        ratio, moved = G / after.precision, after.mean - mu
        divergence = 0.5 * np.sum(ratio - 1.0 - np.log(ratio) + moved**2 * G)
        loss = phi * np.sqrt(z**2 @ (1.0 / after.precision)) - after.mean @ z
        values.append(divergence + C * max(0.0, loss))
    return float(np.mean(values))


def objectives() -> list[list[str]]:
    """(6) after either step, and their ratio, for several C."""
    rows = []
    for C in (1 / 64, 1 / 4, 1.0, 8.0, 64.0):
        printed, exact = (objective(kind, C) for kind in KINDS)
        rows.append([f"{C:g}", f"{printed:.3g}", f"{exact:.3g}", f"{printed / exact:.6g}"])
    return rows


def main(argv: list[str]) -> None:
    """Measure, print the means, store every cell as it comes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cbr_steps", description=__doc__)
    parser.add_argument(
        "--sets", type=lambda text: text.split(","), default=list(stream_mixture.SETS)
    )
    parser.add_argument("--rows", type=int, default=MOST_ROWS, help="of a stream, at most")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--objective", action="store_true", help="print (6) after a step, no more")
    options = parser.parse_args(argv)
    if options.objective:
        print_table(["C", "printed", "exact", "ratio"], objectives())
        return
    cells: list[dict[str, Any]] = []
    for name in options.sets:
        cells += measure(name, options.rows)
        record.write("cbr_steps", {"cells": cells}, options.json)
        print(f"{name} done", file=sys.stderr, flush=True)
    print_table(HEADER, lines(cells))


if __name__ == "__main__":
    main(sys.argv[1:])
