"""What all experiments of section 6 share: scaling, splits, grids, choice of a parameter."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

# log2 lam = 10, 8, .., -20: from smooth to rough, so that ranking methods warm-start along it.
LAMS = 2.0 ** np.arange(10, -21, -2)
FOLDS = 10


class Rows(NamedTuple):
    """Rows, dense or CSR, and 1 where a row is rare."""

    X: Any
    y: np.ndarray


def data_folder() -> Path | None:
    """The folder named by RARECLASS_DATA (default ../shared/data), or None where it is missing."""
    project = Path(__file__).parents[2]
    folder = Path(os.environ.get("RARECLASS_DATA", project.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


def needed_folder() -> Path:
    """Return the data folder; end the command with a message where it is missing."""
    folder = data_folder()
    if folder is None:
        print("Skipped: no data folder. Name it with the environment variable RARECLASS_DATA.")
        raise SystemExit(0)
    return folder


@dataclass(frozen=True)
class Standardiser:
    """Zero mean and unit variance on the rows it was made from; missing cells become the mean."""

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> "Standardiser":
        """Moments of the cells of X that are there. A constant column keeps scale 1."""
        scale = np.nanstd(X, axis=0)
        return cls(np.nanmean(X, axis=0), np.where(scale > 0, scale, 1.0))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Standardised copy of X."""
        Z = (X - self.mean) / self.scale
        return np.nan_to_num(Z, copy=False, nan=0.0)


def gaussian_gamma(X: np.ndarray) -> float:
    """1 / sigma^2 with sigma^2 the mean squared distance over all pairs = 2 sum of variances."""
    return 1.0 / (2.0 * X.var(axis=0, dtype=np.float64).sum())


def neighbour_counts(n_rows: int) -> np.ndarray:
    """The grid of k for KNN: 1 to min(100, sqrt m), rounded up."""
    return np.arange(1, int(np.ceil(min(100.0, np.sqrt(n_rows)))) + 1)


def auc(y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """AUC in percent of each column of `scores`."""
    return np.array([100.0 * roc_auc_score(y, column) for column in np.atleast_2d(scores.T)])


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard error; the error of a single value is not known."""
    sample = np.asarray(values, dtype=float)
    if len(sample) < 2:
        return float(sample.mean()), None
    return float(sample.mean()), float(sample.std(ddof=1) / np.sqrt(len(sample)))


def z_score(ours: tuple[float, float], paper: tuple[float, float]) -> float:
    """(ours - paper) / combined standard error.

    The paper rounds to one decimal, so neither figure is known better than to 0.05: that is the
    smallest error used (Vowel0's 100.0 with error 0.0 would otherwise make any gap infinite).
    """
    return (ours[0] - paper[0]) / max(float(np.hypot(ours[1], paper[1])), 0.05)
