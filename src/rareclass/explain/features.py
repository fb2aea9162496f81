"""The rows to explain as numbers, and what stands for a typical row."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rareclass.estimators.estimator import read_features

Floats = NDArray[np.float64]


class Features(NamedTuple):
    """Rows of an estimator of numbers, and how their features go together."""

    X: Floats  # (n, n_features)
    typical: Floats  # (n_features,)
    groups: list[NDArray[np.intp]]  # features of each column that is explained
    columns: list[str]  # their names


def read_rows(model: Any, X: Any, typical: Any, groups: Sequence[Any] | None) -> Features:
    """Rows of X in float64; a group of features for each distinct entry of `groups`.

    `typical` None is 0 for every feature. Raises `ValueError` on a typical row or groups of another
    length, and as `score_samples` does on X.
    """
    source = read_features(model, X, reset=False)
    rows = source.take(slice(0, source.n_rows))
    dense = rows.toarray() if sparse.issparse(rows) else rows
    n_features = source.n_features
    middle = np.zeros(n_features) if typical is None else np.asarray(typical, dtype=np.float64)
    if middle.shape != (n_features,) or not np.isfinite(middle).all():
        raise ValueError(
            f"typical has shape {middle.shape}: pass one finite number for each of {n_features} "
            "features."
        )
    named = _names(model, n_features) if groups is None else [str(each) for each in groups]
    if len(named) != n_features:
        raise ValueError(f"groups has {len(named)} entries: name one for each feature.")
    names = list(dict.fromkeys(named))
    place = {name: k for k, name in enumerate(names)}
    of_feature = np.array([place[name] for name in named], dtype=np.intp)
    members = [np.flatnonzero(of_feature == k) for k in range(len(names))]
    return Features(np.asarray(dense, dtype=np.float64), middle, members, names)


def _names(model: Any, n_features: int) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    return [f"x{k}" for k in range(n_features)] if names is None else [str(name) for name in names]
