"""The demonstration: one digit made rare, and what usual classifiers make of the same rows."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from rareclass.atomic_file import replacing
from rareclass.errors import InputError
from rareclass.metrics import average_precision, roc_auc
from rareclass.tables.table_file import open_table
from rareclass.verbs.fit.training_set import FitSettings, read_training_set

TARGET = "label"
RARE_LABEL = "eight"
REST_LABEL = "other"
SECONDS = 20  # to learn in, at most
MODEL_NAME, SCORES_NAME = "model.skops", "scores.csv"
FILES = ("train.csv", "test.csv", MODEL_NAME, SCORES_NAME)
_PIXELS = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
_RARE_DIGIT = 8
_RARE_SHARE = 0.01


@dataclass(frozen=True)
class Rival:
    """How a classifier did."""

    name: str
    auc: float  # of the test rows
    average_precision: float
    seconds: float  # of training
    n_rare: float  # test rows


def write_digits(folder: Path, seed: int = 0) -> tuple[Path, Path]:
    """Write scikit-learn's digits with eights thinned to 1 percent, as train.csv and test.csv.

    Raises `InputError` when `folder` holds files of these names that no demonstration wrote.
    """
    check_not_the_users(folder)
    pixels, digits = load_digits(return_X_y=True)
    generator = np.random.default_rng(seed)
    rare = generator.permutation(np.flatnonzero(digits == _RARE_DIGIT))
    rest = generator.permutation(np.flatnonzero(digits != _RARE_DIGIT))
    rare = rare[: round(_RARE_SHARE / (1 - _RARE_SHARE) * len(rest))]
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "train.csv", folder / "test.csv"
    for half, path in enumerate(paths):
        chosen = np.sort(np.concatenate([rare[half::2], rest[half::2]]))
        labels = np.where(digits[chosen] == _RARE_DIGIT, RARE_LABEL, REST_LABEL)
        frame = pl.DataFrame(pixels[chosen].astype(int), schema=_PIXELS)
        with replacing(path) as temporary:
            frame.with_columns(pl.Series(TARGET, labels)).write_csv(temporary)
    return paths


def check_not_the_users(folder: Path) -> None:
    """Raise `InputError` when files would be overwritten that an earlier run did not write."""
    header = ",".join([*_PIXELS, TARGET])
    headers = {
        "train.csv": header,
        "test.csv": header,
        SCORES_NAME: "row,score,called_rare,percentile",
    }
    ours = {name for name, expected in headers.items() if _begins_with(folder / name, expected)}
    for name in (*headers, MODEL_NAME):
        is_ours = name in ours or (name == MODEL_NAME and "train.csv" in ours)
        if (folder / name).exists() and not is_ours:
            raise InputError(
                f"{folder / name} exists, and no rareclass demo wrote it.",
                "Choose another folder with --out.",
            )


def _begins_with(path: Path, header: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline(len(header) + 2).rstrip(b"\r\n") == header.encode()


def rivals(train: Path, test: Path, seed: int = 0) -> list[Rival]:
    """Train the usual classifiers on the same rows, encoded alike, and measure them."""
    settings = FitSettings(target=TARGET, seed=seed)
    data = read_training_set(open_table(train), settings)
    assert isinstance(data.rows, pl.DataFrame)
    encoder = data.new_encoder(seed)
    X = encoder.fit_transform(data.rows, data.rare, data.weight)
    tested = read_training_set(open_table(test), settings)
    used = [column.name for column in data.columns if column.is_used]
    test_rows = pl.read_csv(test).select(pl.col(used).cast(pl.Float64))
    X_test = encoder.transform(test_rows)
    classifiers: dict[str, ClassifierMixin] = {
        "logistic regression": LogisticRegression(class_weight="balanced", max_iter=1000),
        "SVC": SVC(class_weight="balanced"),
        "histogram boosting": HistGradientBoostingClassifier(
            class_weight="balanced", random_state=seed
        ),
    }
    outcomes = []
    for name, classifier in classifiers.items():
        started = time.perf_counter()
        classifier.fit(X, data.rare)
        seconds = time.perf_counter() - started
        outcomes.append(measure(name, tested.rare, classifier.decision_function(X_test), seconds))
    return outcomes


def measure(
    name: str, rare: NDArray[np.bool_], scores: NDArray[np.float64], seconds: float
) -> Rival:
    """Return the measures of some scores under a name."""
    return Rival(
        name,
        float(roc_auc(rare, scores)),
        float(average_precision(rare, scores)),
        seconds,
        float(rare.sum()),
    )
