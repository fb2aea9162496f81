"""What StochasticRankRC holds, and what it refuses to hold."""

import gc
import tracemalloc

import numpy as np
import pytest

from made_tables import rare_mixture
from rareclass import StochasticRankRC

X, Y = rare_mixture(400, 30)
WIDTH = 2.8
RARE_FIRST = np.argsort(Y == 0, kind="stable")
quiet = pytest.mark.filterwarnings("ignore:lam=.*:sklearn.exceptions.ConvergenceWarning")


def held_bytes(state):
    """Bytes of all arrays that a state holds, however deep."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    parts = state if isinstance(state, tuple) else getattr(state, "__dict__", {}).values()
    return sum(held_bytes(part) for part in parts)


@pytest.mark.sampled(0)
def test_a_stream_of_any_length_takes_the_same_memory():
    rng = np.random.default_rng(0)
    rare = rng.normal(size=(40, 6)) + 1.0

    def parts(n):
        for _ in range(n):
            yield rng.normal(size=(2000, 6)), np.zeros(2000, int)

    def run(n):
        model = StochasticRankRC(batch_size=1000, n_jobs=1, width=3.0, random_state=0)
        model.partial_fit(rare, np.ones(40, int), classes=[0, 1])
        for rows, y in parts(n):
            model.partial_fit(rows, y)
            gc.collect(1)  # threadpoolctl 3.5 leaves 18 KB a call to Python's collector
        model.dual_coef_  # noqa: B018 - what waits is learned
        return model

    run(1)  # compiled and imported
    held, peaks, sizes = [], [], []
    for n in (6, 48):
        tracemalloc.start()
        model = run(n)
        sizes.append(held_bytes(model.state_))
        now, peak = tracemalloc.get_traced_memory()
        held.append(now)
        peaks.append(peak)
        tracemalloc.stop()
    assert sizes[1] == sizes[0] < 2e6
    # 42 parts more, of 2,000 rows: their labels alone, kept, would be 672,000 bytes.
    assert held[1] - held[0] < 42 * 2000 * 5
    assert peaks[1] - peaks[0] < 42 * 2000 * 5


@pytest.mark.sampled(0)
@quiet
def test_fit_holds_nothing_of_the_majority():
    rng = np.random.default_rng(0)
    peaks, sizes = [], []
    for n in (20_000, 20_000, 80_000):
        rows, y = rng.normal(size=(n, 6)), np.zeros(n, dtype=np.int8)
        rows[:40] += 1.0
        y[:40] = 1
        tracemalloc.start()
        model = StochasticRankRC(
            batch_size=1000, n_jobs=1, width=3.0, max_iter=1, random_state=0
        ).fit(rows, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        sizes.append(held_bytes(model.state_))
        tracemalloc.stop()
    # Some bytes a row while labels are looked at; the rows themselves have 48.
    assert peaks[2] - peaks[1] < 12 * 60_000
    assert sizes[2] == sizes[1]


@quiet
def test_rare_rows_in_float32_are_held_in_float32():
    rows, y = rare_mixture(2500, 1200, seed=2)
    kwargs = {"landmarks": ("rare", 60), "batch_size": 100, "max_iter": 1, "random_state": 0}
    wide = StochasticRankRC(**kwargs).fit(rows, y)
    narrow = StochasticRankRC(**kwargs).fit(rows.astype(np.float32), y)
    features = narrow.state_.learned.rare.features
    assert features.dtype == np.float32
    assert features.nbytes == 4 * 1200 * narrow.whitener_.shape[1]
    assert narrow.objective_ == pytest.approx(wide.objective_, rel=1e-3)


def test_what_does_not_fit_is_refused_by_name():
    with pytest.raises(ValueError, match=r"30 landmarks .*or pass landmarks=\('rare', k\) with k"):
        StochasticRankRC(memory="20KiB").fit(X, Y)
    model = StochasticRankRC(memory="60KiB", width=WIDTH, batch_size=50)
    model.partial_fit(X[RARE_FIRST[:100]], Y[RARE_FIRST[:100]], classes=[0, 1])
    many = np.tile(X[RARE_FIRST], (20, 1)), np.tile(Y[RARE_FIRST], 20)
    with pytest.raises(ValueError, match="rare rows in their coordinates"):
        model.partial_fit(*many)
