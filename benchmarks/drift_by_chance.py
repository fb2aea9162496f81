"""How often chance alone moves a column, and how often a move is found (docs/decisions/0058)."""

from statistics import NormalDist

import numpy as np

from rareclass.model.columns import ColumnDrift, PresentOrEmpty, TrainedColumn, _compared

FILES = 2000
N_TESTS = 3 * 13  # of twelve columns and the scores


def shares(weights: np.ndarray, unlike: float, empty: float) -> np.ndarray:
    """Shares of bins, then of cells unlike training, then of empty ones."""
    known = np.asarray(weights, float) / np.sum(weights) * (1.0 - unlike - empty)
    return np.append(known, [unlike, empty])


COLUMNS = [
    shares(np.ones(10), 0.0004, 0.0),
    shares(np.ones(10), 0.0004, 0.04),
    shares(np.array([9, 1]), 0.0, 0.0),
    shares(np.array([999, 1]), 0.0, 0.0),
    shares(1 / np.arange(1, 22) ** 1.5, 0.03, 0.0),
    shares(1 / np.arange(1, 22) ** 1.5, 0.3, 0.1),
] * 2


def compared(trained: np.ndarray, new: np.ndarray) -> ColumnDrift:
    """Compare counts of cells."""
    column = TrainedColumn("", "", "", PresentOrEmpty(), trained.astype(float), 0.0)
    return _compared(column, new.astype(float), 0.0, N_TESTS)


def false_alarms(n_trained: int, n_new: int, n_files: int) -> float:
    """Share of files like training in which any column has moved."""
    rng, n_moved = np.random.default_rng(0), 0
    for _ in range(n_files):
        found = (
            compared(rng.multinomial(n_trained, p), rng.multinomial(n_new, p)) for p in COLUMNS
        )
        n_moved += any([each.verdict != "steady" for each in found])
    return n_moved / n_files


def moves_found(shift: float, n_new: int, n_files: int) -> float:
    """Share of files in which a normal number that moved by `shift` deviations is found."""
    rng, moved = np.random.default_rng(0), NormalDist(shift)
    edges = [NormalDist().inv_cdf(k / 10) for k in range(1, 10)]
    now = np.diff([0.0, *(moved.cdf(edge) for edge in edges), 1.0, 1.0, 1.0])
    before = np.append(np.full(10, 500.0), [0.0, 0.0])
    found = (compared(before, rng.multinomial(n_new, now)) for _ in range(n_files))
    return sum(each.verdict != "steady" for each in found) / n_files


def main(n_files: int = FILES) -> None:
    """Print both tables."""
    for n_trained in (200, 5000):
        rates = [false_alarms(n_trained, n, n_files) for n in (20, 100, 1000, 10_000)]
        print(f"{n_trained} training rows, 20 to 10,000 new: {rates}")
    for shift in (0.25, 0.5, 1.0):
        rates = [moves_found(shift, n, n_files) for n in (20, 50, 100, 1000)]
        print(f"moved by {shift} deviations, 20 to 1,000 new: {rates}")


if __name__ == "__main__":
    main()
