"""What the sampled-Hessian preconditioner saves: `python -m benchmarks.solver`.

The paper's 16 lams on generated data, once with plain conjugate gradients and once with the
preconditioner that the library uses, side by side: passes of the majority and seconds. And what
storing the kernel in float32 costs in accuracy: the minimum found against float64.
"""

import argparse
import sys
import time
from typing import Any

import numpy as np

from benchmarks import record
from rareclass import RankRC, rankrc_path
from rareclass.data.simulated import mixture_centres, rare_mixture
from rareclass.ranking.newton import minimize
from rareclass.ranking.preparation import prepare

LAMS = 2.0 ** np.arange(10, -21, -2)
TOL = 1e-6


def plain_path(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """The warm-started path without a preconditioner: passes for each lam, and seconds."""
    start = time.perf_counter()
    problem = prepare(RankRC(verbose=False), X, y, None).problem(1.0)
    at = problem.evaluate(np.zeros(problem.size))
    reference = float(np.linalg.norm(at.gradient))
    passes = []
    for lam in LAMS:
        here = problem.with_lam(float(lam))
        solution = minimize(here, here.evaluate(at.w), reference, TOL, 500)
        passes.append(solution.history[-1].passes)
        at = solution.at
    return {"passes": passes, "seconds": time.perf_counter() - start}


def library_path(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """The path as `rankrc_path` solves it."""
    start = time.perf_counter()
    models = rankrc_path(X, y, LAMS, tol=TOL, verbose=False)
    return {
        "passes": [model.history_[-1].passes for model in models],
        "objective": [model.objective_ for model in models],
        "seconds": time.perf_counter() - start,
    }


def compare(n_features: int, n_rows: int, n_rare: int) -> dict[str, Any]:
    """Both paths on one data set, and the float32 path beside the float64 one."""
    centres = mixture_centres(n_features=n_features)
    X, y = rare_mixture(n_rows, n_rare / n_rows, 0.75, centres, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rankrc_path(X[:2000], y[:2000], [1.0], verbose=False)  # compiled code is loaded, not measured
    plain, library = plain_path(X, y), library_path(X, y)
    narrow = library_path(X.astype(np.float32), y)
    error = np.abs(np.subtract(narrow["objective"], library["objective"]))
    return {
        "rows": n_rows,
        "features": n_features,
        "rare": n_rare,
        "lams": LAMS,
        "plain": plain,
        "preconditioned": library,
        "float32": narrow,
        "float32_objective_error": float((error / library["objective"]).max()),
    }


def main() -> int:
    """Measure, print, write results/solver.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.solver", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rare", type=int, default=300)
    parser.add_argument("--json", metavar="FILE", help="default: results/solver.json")
    args = parser.parse_args()
    cases = [compare(d, args.rows, args.rare) for d in (5, 40)]
    for case in cases:
        print(f"{case['rows']} rows x {case['features']}, {case['rare']} rare: passes for each lam")
        print("  log2 lam       " + " ".join(f"{k:4d}" for k in np.log2(LAMS).astype(int)))
        for name in ("plain", "preconditioned", "float32"):
            path = case[name]
            counts = " ".join(f"{k:4d}" for k in path["passes"])
            print(f"  {name:15s}{counts}   total {sum(path['passes'])}, {path['seconds']:.1f} s")
        print(f"  float32 objective off by {case['float32_objective_error']:.1e} at most")
    print(f"wrote {record.write('solver', {'tol': TOL, 'cases': cases}, args.json)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
