"""What each part of the solver saves: `python -m benchmarks.solver`.

The paper's 16 lams on generated data (`rare_mixture` in 5 and in 40 dimensions), side by side in
one process: passes of the majority and seconds.

- ``plain``: conjugate gradients without a preconditioner, each lam starting the next.
- ``preconditioned``: the same with the sampled Hessian: what the library does below 100 rows for
  each landmark.
- ``from a part``: what it does above: every lam starts from a part of the rows, steps come from the
  part's curvature, all lams in step. ``float32`` is the same on narrower rows.

Then what storing the kernel in float32 costs in accuracy: the minimum found against float64. And
what passes could leave out: the share of rows with a pair in the quadratic part at each solution
(a Hessian product needs no others), and the share that |f(x) - f'(x)| <= |w - w'| sqrt(k(x, x))
proves to lie outside the margin of every rare row, or beyond all of them, all the way from one
solution to the next.
"""

import argparse
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import record
from benchmarks.simulated import mixture_centres, rare_mixture
from rareclass import RankRC, rankrc_path
from rareclass.ranking.problem import solve
from rareclass.ranking.solvers import path as path_module
from rareclass.ranking.solvers.newton import minimize
from rareclass.ranking.solvers.path import solve_paths

LAMS = 2.0 ** np.arange(10, -21, -2)
FEW_TOL, MANY_TOL = 1e-6, 1e-5


def plain_path(X: np.ndarray, y: np.ndarray, tol: float) -> dict[str, Any]:
    """The warm-started path without a preconditioner: passes for each lam, and seconds."""
    start = time.perf_counter()
    problem = RankRC(verbose=False)._prepare(X, y, None).problem(1.0)
    at = problem.evaluate(np.zeros(problem.size))
    reference = float(np.linalg.norm(at.gradient))
    passes = []
    for lam in LAMS:
        here = problem.with_lam(float(lam))
        solution = solve(minimize(here, here.evaluate(at.w), reference, tol, 500))
        passes.append(solution.history[-1].passes)
        at = solution.at
    return {"passes": passes, "seconds": time.perf_counter() - start}


def library_path(
    X: np.ndarray, y: np.ndarray, tol: float, memory: str = "8GiB", parts: bool = True
) -> dict[str, Any]:
    """The path as `rankrc_path` solves it, or one lam after the other without parts."""
    start = time.perf_counter()
    with _no_parts() if not parts else nullcontext():
        models = rankrc_path(X, y, LAMS, tol=tol, memory=memory, verbose=False)
    return {
        "passes": [model.history_[-1].passes for model in models],
        "objective": [model.objective_ for model in models],
        "in_memory": models[0].history_[-1].in_memory,
        "seconds": time.perf_counter() - start,
    }


def dispensable_rows(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Shares of rows that passes along the path could leave out, for every lam."""
    prepared = RankRC(memory="8GiB", verbose=False)._prepare(X, y, None)
    problem = prepared.problem(1.0)
    curved, screened = [], []
    before = np.zeros(problem.size)
    for solution in solve_paths([lambda: problem], LAMS, FEW_TOL, 200)[0]:
        curved.append(float(problem.curved_rows(problem.evaluate(solution.at.w)).mean()))
        radius = float(np.linalg.norm(solution.at.w - before))  # k(x, x) = 1
        scored = prepared.scored(solution.at.coefficients[:, None])
        rare, majority = scored.held[:, 0], scored.majority[:, 0]
        outside = majority + radius < rare.min() - radius - 1.0
        beyond = majority - radius > rare.max() + radius
        screened.append(float((outside | beyond).mean()))
        before = solution.at.w
    return {"curved": curved, "screened": screened}


def _no_parts() -> AbstractContextManager:
    return patch.object(path_module, "part_stride", return_value=None)


def generated(n_features: int, n_rows: int, n_rare: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardised rows of the simulated study, in float64, and labels."""
    centres = mixture_centres(n_features=n_features)
    X, y = rare_mixture(n_rows, n_rare / n_rows, 0.75, centres, random_state=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def few_rows(n_features: int, n_rows: int, n_rare: int) -> dict[str, Any]:
    """Plain and preconditioned paths on one data set, and float32 beside float64."""
    X, y = generated(n_features, n_rows, n_rare)
    library = library_path(X, y, FEW_TOL)
    narrow = library_path(X.astype(np.float32), y, FEW_TOL)
    error = np.abs(np.subtract(narrow["objective"], library["objective"]))
    return {
        "rows": n_rows,
        "features": n_features,
        "rare": n_rare,
        "tol": FEW_TOL,
        "paths": {
            "plain": plain_path(X, y, FEW_TOL),
            "from a part": library,
            "float32": narrow,
        },
        "dispensable": dispensable_rows(X, y),
        "float32_objective_error": float((error / library["objective"]).max()),
    }


def many_rows(n_features: int, n_rows: int, n_rare: int) -> dict[str, Any]:
    """Paths in float32 with and without parts, and with a small memory."""
    X, y = generated(n_features, n_rows, n_rare)
    X = X.astype(np.float32)
    return {
        "rows": n_rows,
        "features": n_features,
        "rare": n_rare,
        "tol": MANY_TOL,
        "paths": {
            "preconditioned": library_path(X, y, MANY_TOL, parts=False),
            "from a part": library_path(X, y, MANY_TOL),
            "part, 256 MiB": library_path(X, y, MANY_TOL, memory="256MiB"),
        },
    }


def show(case: dict[str, Any]) -> None:
    """Print the passes of every lam."""
    print(f"{case['rows']:,} rows x {case['features']}, {case['rare']} rare, tol {case['tol']:g}")
    print("  log2 lam       " + " ".join(f"{k:5d}" for k in np.log2(LAMS).astype(int)))
    for name, path in case["paths"].items():
        counts = " ".join(f"{k:5.1f}" for k in path["passes"])
        print(
            f"  {name:15s}{counts}   mean {np.mean(path['passes']):.1f}, {path['seconds']:.1f} s",
            flush=True,
        )
    if "float32_objective_error" in case:
        for name, shares in case["dispensable"].items():
            print(f"  {name:15s}" + " ".join(f"{k:5.2f}" for k in shares) + "   share of rows")
        print(f"  float32 objective off by {case['float32_objective_error']:.1e} at most")


def main() -> int:
    """Measure, print, write results/solver.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.solver", description=__doc__)
    parser.add_argument("--few", type=int, default=50_000, help="rows of the small sets")
    parser.add_argument("--few-rare", type=int, default=300)
    parser.add_argument("--many", type=int, default=1_000_000, help="rows of the large sets")
    parser.add_argument("--many-rare", type=int, default=1000)
    parser.add_argument("--json", metavar="FILE", help="default: results/solver.json")
    args = parser.parse_args()
    X, y = generated(5, 2000, 50)
    for rows in (X, X.astype(np.float32)):  # compiled code is loaded, not measured
        rankrc_path(rows, y, [1.0], verbose=False)
    cases = []
    for n_features in (5, 40):
        cases.append(few_rows(n_features, args.few, args.few_rare))
        show(cases[-1])
    for n_features in (5, 40):
        cases.append(many_rows(n_features, args.many, args.many_rare))
        show(cases[-1])
    print(f"wrote {record.write('solver', {'cases': cases}, args.json)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
