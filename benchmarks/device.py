"""RankRC with its kernel on a device: `python -m benchmarks.device --device cuda`.

**Nobody has run this on a device yet: there are no figures of it.** It is for whoever has one.

For each case, on generated rows (`rare_mixture` in float32, 1,000 of them rare, 1,000 landmarks):
seconds of a fit, its AUC on new rows, and beside it

- the share of the device's matrix rate (float32 products that make the kernel) and of its memory
  rate (kernel entries read once a pass) that the fit comes to, and of the least time that such a
  device can take (`benchmarks.roofline`). The rates are measured on the device itself, first;
- XGBoost on the same device and rows: 100 trees by histograms, its matrix made within the time.

Cases: 1M rows of 40 features with one lam and with sixteen; 10M of 40; 100M of 20, on disk, of
which no device holds the kernel; and 4.5M of 18 and 10.5M of 28, the shapes of SUSY and HIGGS, on
which Falkon was measured by its authors (Meanti et al., "Kernel methods through the roof", NeurIPS
2020). Shapes alone: those two have about as many rows of either class, and their authors' seconds
are to be read there beside their devices.

``--device`` is cuda, cuda:1, cpu, or the name of any module of the array API, such as
array_api_strict, to try the command without a device.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks import record, roofline
from benchmarks.simulated import mixture_centres, rare_mixture
from rareclass import RankRC
from rareclass.array_api import namespace, to_numpy
from rareclass.machine import blas_threads
from rareclass.ranking.preparation import coefficients_of
from rareclass.ranking.solvers.path import solve_path
from rareclass.rows.devices import ArrayLibrary, Device, find_device

LANDMARKS, RARE, TREES = 1000, 1000, 100
LAM, LAMS = 2.0**-8, tuple(2.0 ** np.arange(10, -21, -2))
OVERLAP, CHUNK, TESTED = 0.75, 250_000, 200_000
RATE_BYTES, TRIALS, LARGE = 2**31, 5, 8192


class Case(NamedTuple):
    """Rows of so many features, and how many lams."""

    rows: int
    features: int
    lams: tuple[float, ...] = (LAM,)


CASES = {
    "1M x 40": Case(10**6, 40),
    "1M x 40, 16 lams": Case(10**6, 40, LAMS),
    "10M x 40": Case(10**7, 40),
    "100M x 20": Case(10**8, 20),
    "4.5M x 18": Case(4_500_000, 18),
    "10.5M x 28": Case(10_500_000, 28),
}


def device_named(name: str) -> Device | None:
    """The device of a name; modules of the array API are devices, too."""
    if name == "cpu" or name.startswith("cuda"):
        return find_device(name)
    return ArrayLibrary(name)


def rates(device: Device | None, features: int, n_bytes: int) -> dict[str, float]:
    """What the device can do, in units a second, as `roofline` wants it; ``sgemm`` is of a square.

    The best of some trials on arrays of so many bytes.
    """
    rng, n = np.random.default_rng(0), max(n_bytes // (4 * LANDMARKS), 1)
    put = np.asarray if device is None else device.put
    K, X, Z, v = (
        put(rng.random(shape, dtype=np.float32))
        for shape in ((n, LANDMARKS), (n, features), (features, LANDMARKS), (LANDMARKS,))
    )
    side = min(LARGE, max(int((n_bytes / 4) ** 0.5), 1))
    square = put(rng.random((side, side), dtype=np.float32))
    xp, entries = namespace(K), float(n) * LANDMARKS
    return {
        "sgemm": 2.0 * side**3 / _best(lambda: square @ square),
        "sgemm_block": 2.0 * entries * features / _best(lambda: X @ Z),
        "sgemv_block": 2.0 * entries / _best(lambda: (K @ v)[:, None]),
        "exp": entries / _best(lambda: xp.exp(K)),
        "read": 4.0 * entries / _best(lambda: xp.sum(K, axis=0)[:, None]),
        "first_touch": 4.0 * entries / _best(lambda: xp.zeros_like(K)),
    }


def _best(work: Callable[[], Any]) -> float:
    """Least seconds of some trials; a number of the result is fetched, which waits for all."""
    seconds = []
    for _ in range(TRIALS + 1):  # the first one loads what is loaded late
        start = time.perf_counter()
        to_numpy(work()[:1, :1])
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:])


def made_rows(case: Case, n_rare: int, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Rows in a file that is mapped into memory, and their labels."""
    X = np.lib.format.open_memmap(
        folder / "X.npy", mode="w+", dtype=np.float32, shape=(case.rows, case.features)
    )
    y, centres = np.zeros(case.rows, dtype=np.int8), mixture_centres(n_features=case.features)
    for k, start in enumerate(range(0, case.rows, CHUNK)):
        stop = min(start + CHUNK, case.rows)
        # Rare rows in each chunk by what it adds to their share.
        n = round(n_rare * stop / case.rows) - round(n_rare * start / case.rows)
        X[start:stop], y[start:stop] = rare_mixture(
            stop - start, n / (stop - start), OVERLAP, centres, random_state=k
        )
    return X, y


def fit(X: np.ndarray, y: np.ndarray, case: Case, device: Device | None) -> dict[str, Any]:
    """Seconds of all lams, passes and readings of all rows, and the AUC of each on new rows."""
    model = RankRC(landmarks=("rare", LANDMARKS), device=device, random_state=0)
    few = rare_mixture(2000, 0.05, OVERLAP, mixture_centres(n_features=case.features))
    model.fit(few[0].astype(np.float32), few[1])  # what is compiled or loaded late is there
    start = time.perf_counter()
    prepared = model._prepare(X, y, None, several=len(case.lams) > 1)
    with blas_threads(1):
        solutions = solve_path(
            prepared.problem(1.0), case.lams, 1e-3, model.max_iter, prepared.at_once
        )
    seconds = time.perf_counter() - start
    model.width_, model.landmarks_ = prepared.width, prepared.landmarks.points
    model.n_features_in_ = case.features
    New, labels = _new_rows(case)
    scores = model._map(New, coefficients_of(solutions))
    passes = [solution.passes for solution in solutions]
    return {
        "seconds": seconds,
        "passes": float(sum(passes)),
        "readings": float(max(passes)),
        "in_memory": solutions[0].history[-1].in_memory if solutions[0].history else 0.0,
        "landmarks": prepared.expansion.n_landmarks,
        "auc": [float(roc_auc_score(labels, column)) for column in scores.T],
        "status": [str(solution.status) for solution in solutions],
    }


def shares(found: dict[str, Any], case: Case, has: dict[str, float]) -> dict[str, float]:
    """What part of the device's rates the seconds of a fit come to."""
    entries = float(case.rows) * found["landmarks"]
    made = 1.0 + (1.0 - found["in_memory"]) * max(found["readings"] - 1.0, 0.0)
    least = roofline.seconds(
        has,
        case.rows,
        case.features,
        found["landmarks"],
        found["passes"],
        found["in_memory"],
        found["readings"],
    )
    return {
        "of_matrix_rate": 2.0 * case.features * entries * made / found["seconds"] / has["sgemm"],
        "of_memory_rate": 4.0 * entries * found["readings"] / found["seconds"] / has["read"],
        "of_least_seconds": least / found["seconds"],
    }


def xgboost(X: np.ndarray, y: np.ndarray, case: Case, kind: str) -> dict[str, Any] | None:
    """Seconds and AUC of XGBoost on the same rows and device; None where it is not installed."""
    try:
        import xgboost as xgb
    except ImportError:
        return None
    asked = {"objective": "binary:logistic", "tree_method": "hist", "device": kind}
    start = time.perf_counter()
    trees = xgb.train(asked, xgb.QuantileDMatrix(X, y), num_boost_round=TREES)
    seconds = time.perf_counter() - start
    New, labels = _new_rows(case)
    auc = float(roc_auc_score(labels, trees.predict(xgb.DMatrix(New))))
    return {"seconds": seconds, "auc": auc, "trees": TREES, "version": xgb.__version__}


def _new_rows(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Rows that no chunk has, half of them rare."""
    n, centres = min(TESTED, case.rows), mixture_centres(n_features=case.features)
    X, y = rare_mixture(n, 0.5, OVERLAP, centres, random_state=10**6)
    return X.astype(np.float32), y


def measure(case: Case, n_rare: int, device: Device | None, args: Any) -> dict[str, Any]:
    """One case: rates, the fit, and XGBoost."""
    with TemporaryDirectory(dir=args.scratch) as folder:
        X, y = made_rows(case, n_rare, Path(folder))
        has = rates(device, case.features, args.rate_bytes)
        ours = fit(X, y, case, device)
        kind = args.device if args.device.startswith("cuda") else "cpu"
        beside = xgboost(X, y, case, kind) if args.xgboost else None
        return {
            "rows": case.rows,
            "features": case.features,
            "lams": list(case.lams),
            "rates": has,
            "rankrc": ours | shares(ours, case, has),
            "xgboost": beside,
        }


def in_words(name: str, row: dict[str, Any]) -> str:
    """One line of a case."""
    ours, other = row["rankrc"], row["xgboost"]
    told = (
        f"{name}: {ours['seconds']:.2f} s, best AUC {max(ours['auc']):.4f}, "
        f"{ours['of_matrix_rate']:.1%} of the matrix rate, {ours['of_memory_rate']:.1%} of the "
        f"memory rate, {ours['of_least_seconds']:.1%} of the least time"
    )
    if other is None:
        return told
    return f"{told}; XGBoost {other['seconds']:.2f} s, AUC {other['auc']:.4f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write results/device.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device", description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--scale", type=float, default=1.0, help="of the rows, to try it")
    parser.add_argument("--rate-bytes", type=int, default=RATE_BYTES)
    parser.add_argument("--scratch", type=Path, help="folder for rows; 8 GB for 100M x 20")
    parser.add_argument("--xgboost", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--json", metavar="FILE", help="default: results/device.json")
    args = parser.parse_args(argv)
    device, rows = device_named(args.device), {}
    for name in args.cases:
        case, n_rare = CASES[name], max(int(RARE * min(args.scale * 100.0, 1.0)), 10)
        case = case._replace(rows=max(int(case.rows * args.scale), 20 * n_rare))
        rows[name] = measure(case, n_rare, device, args)
        print(in_words(name, rows[name]), flush=True)
        parameters = {"device": args.device, "scale": args.scale}
        written = record.write("device", {"parameters": parameters, "cases": rows}, args.json)
    print("written:", written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
