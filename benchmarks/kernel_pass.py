"""A whole fit against one pass that only computes the kernel: `python -m benchmarks.kernel_pass`.

100,000 rows of 40 features with 300 rare ones (`rare_mixture` with centres in 40 dimensions). The
pass computes the gaussian kernel of every row against the rare rows, block by block, keeping
nothing: the least that any kernel method with these landmarks has to do. Both get the same
number of threads. Goal: the fit takes less than 15 times the pass.
"""

import argparse
import sys
import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import record
from benchmarks.simulated import mixture_centres, rare_mixture
from rareclass import RankRC

GOAL = 15.0
BLOCK_ROWS = 4096


def one_pass(X: np.ndarray, Z: np.ndarray, gamma: float) -> float:
    """Sum of exp(-gamma |x - z|^2) over all rows x of X and z of Z."""
    z_norms = np.einsum("ij,ij->i", Z, Z)
    total = 0.0
    for start in range(0, len(X), BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS]
        K = block @ Z.T
        K *= 2.0
        K -= np.einsum("ij,ij->i", block, block)[:, None]
        K -= z_norms
        K *= gamma
        np.exp(K, out=K)
        total += K.sum()  # so that the pass cannot be skipped and the block is read once
    return total


def measure(X: np.ndarray, y: np.ndarray, threads: int, repeats: int) -> dict[str, Any]:
    """Best seconds of the pass and of the fit, alternating, and their ratio."""
    gamma = 1.0 / (2.0 * X.var(axis=0).sum())
    model = RankRC(lam=2.0**-8, n_jobs=threads, random_state=0)
    model.fit(X[:2000], y[:2000])  # compiled code is loaded, not measured
    passes, fits = [], []
    for _ in range(repeats):
        with threadpool_limits(threads):
            start = time.perf_counter()
            one_pass(X, X[y == 1], gamma)
            passes.append(time.perf_counter() - start)
        start = time.perf_counter()
        model.fit(X, y)
        fits.append(time.perf_counter() - start)
    return {
        "threads": threads,
        "pass_seconds": min(passes),
        "fit_seconds": min(fits),
        "ratio": min(fits) / min(passes),
        "n_iter": model.n_iter_,
        "status": str(model.status_),
        "dtype": str(X.dtype),
    }


def main() -> int:
    """Measure, print, write results/kernel_pass.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel_pass", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=40)
    parser.add_argument("--rare", type=int, default=300)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--overlap", type=float, default=0.75)
    parser.add_argument("--json", metavar="FILE", help="default: results/kernel_pass.json")
    args = parser.parse_args()
    centres = mixture_centres(n_features=args.features)
    X, y = rare_mixture(args.rows, args.rare / args.rows, args.overlap, centres, random_state=0)
    rows = []
    for dtype in (np.float64, np.float32):
        for threads in args.threads:
            row = measure(X.astype(dtype), y, threads, args.repeats)
            rows.append(row)
            print(
                f"{row['dtype']} {threads} thread(s): pass {row['pass_seconds']:.2f} s, "
                f"fit {row['fit_seconds']:.2f} s ({row['n_iter']} steps, {row['status']}), "
                f"ratio {row['ratio']:.1f}, goal < {GOAL:g}: "
                f"{'yes' if row['ratio'] < GOAL else 'NO'}"
            )
    parameters = {k: v for k, v in vars(args).items() if k != "json"}
    body = {"parameters": parameters, "goal": GOAL, "rows": rows}
    print("written:", record.write("kernel_pass", body, args.json))
    return 0


if __name__ == "__main__":
    sys.exit(main())
