"""What this machine can do: matrix products, exponentials, memory, with all threads at once.

Each rate is the best of several trials, measured as the solver works: a pool of threads over blocks
that BLAS runs with one thread each.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

BLOCK_ROWS = 512
LANDMARKS = 1000
LARGE = 2048
STREAM_BYTES = 2**30
TRIALS = 5
SPAN_SECONDS = 0.2


def measure(
    features: int, threads: int, limit: float = 0.0, stream_bytes: int = STREAM_BYTES
) -> dict[str, Any]:
    """All rates, in units a second for the whole machine.

    Returns
    -------
    dict
        ``sgemm_block`` (flops; 512 x features by features x 1000), ``sgemm`` and ``dgemm`` (flops;
        2048 square), ``sgemv_block`` (flops; 512 x 1000 in cache), ``exp`` (float32 values in
        cache), ``read`` (bytes; of memory), ``write`` (bytes; memory that the process already
        has), ``first_touch`` (bytes; memory fresh from the system).
    """
    rng = np.random.default_rng(0)
    with ThreadPoolExecutor(threads) as pool, threadpool_limits(1):
        rates = {
            "sgemm_block": _gemm(pool, threads, BLOCK_ROWS, features, LANDMARKS, np.float32, rng),
            "sgemm": _gemm(pool, threads, LARGE, LARGE, LARGE, np.float32, rng),
            "dgemm": _gemm(pool, threads, LARGE, LARGE, LARGE, np.float64, rng),
            "sgemv_block": _gemv(pool, threads, rng),
            "exp": _exp(pool, threads, rng),
        }
        return rates | _streams(pool, threads, stream_bytes)


def _gemm(
    pool: ThreadPoolExecutor, threads: int, n: int, k: int, m: int, dtype: Any, rng: Any
) -> float:
    work = []
    for _ in range(threads):
        A, B = (rng.standard_normal(shape).astype(dtype) for shape in ((n, k), (k, m)))
        C = np.empty((n, m), dtype=dtype)
        work.append(lambda A=A, B=B, C=C: np.matmul(A, B, out=C))
    return 2.0 * n * k * m * _calls(pool, work)


def _gemv(pool: ThreadPoolExecutor, threads: int, rng: Any) -> float:
    work = []
    for _ in range(threads):
        K = rng.random((BLOCK_ROWS // 2, LANDMARKS), dtype=np.float32)  # well within L2
        b, out = rng.random(LANDMARKS, dtype=np.float32), np.empty(len(K), dtype=np.float32)
        work.append(lambda K=K, b=b, out=out: np.matmul(K, b, out=out))
    return 2.0 * (BLOCK_ROWS // 2) * LANDMARKS * _calls(pool, work)


def _exp(pool: ThreadPoolExecutor, threads: int, rng: Any) -> float:
    size = 16 * 1024
    work = []
    for _ in range(threads):
        x = -5.0 * rng.random(size, dtype=np.float32)
        out = np.empty_like(x)
        work.append(lambda x=x, out=out: np.exp(x, out=out))
    return size * _calls(pool, work)


def _calls(pool: ThreadPoolExecutor, work: list[Callable[[], Any]]) -> float:
    """Calls a second, all threads together: the best of the trials."""

    def span(call: Callable[[], Any]) -> float:
        done, start = 0, time.perf_counter()
        while (now := time.perf_counter()) - start < SPAN_SECONDS:
            for _ in range(4):
                call()
            done += 4
        return done / (now - start)

    return max(sum(pool.map(span, work)) for _ in range(TRIALS))


def _streams(pool: ThreadPoolExecutor, threads: int, n_bytes: int) -> dict[str, float]:
    """Bytes a second of reading, writing and first touching memory far larger than the cache."""
    size = n_bytes // 4 // threads
    first, write, read = [], [], []
    for _ in range(TRIALS):
        parts = [np.empty(size, dtype=np.float32) for _ in range(threads)]
        first.append(_span(pool, lambda part: part.fill(1.0), parts))
        write.append(_span(pool, lambda part: part.fill(0.5), parts))
        read.append(_span(pool, lambda part: float(np.dot(part, part)), parts))
    total = 4.0 * size * threads
    return {
        "first_touch": total / min(first),
        "write": total / min(write),
        "read": total / min(read),
    }


def _span(pool: ThreadPoolExecutor, function: Callable[[Any], Any], parts: list[Any]) -> float:
    start = time.perf_counter()
    list(pool.map(function, parts))
    return time.perf_counter() - start
