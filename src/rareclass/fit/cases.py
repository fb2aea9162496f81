"""Which rare rows a model file keeps, for alerts to be compared with."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.fit.rows_on_disk import RowsOnDisk
from rareclass.fit.training_set import TrainingSet
from rareclass.model.rare_cases import RareCases
from rareclass.model.rare_class import RareTarget

# Rare rows that are kept; more are thinned at random.
MOST_CASES = 2000
# Numbers of them, at most: 8 MB.
_MOST_NUMBERS = 1_000_000


def rare_cases(encoder: Any, model: Any, data: TrainingSet, seed: int) -> RareCases | None:
    """Return the rare ones of the rows that a model learned from, all or some drawn by `seed`.

    Of a kernel machine those that are its landmarks. None for levels, and for rows without columns,
    which are not explained.
    """
    if data.number is None or not isinstance(data.target, RareTarget):
        return None
    landmark_rows = getattr(model, "landmark_rows_", None)
    if landmark_rows is not None:
        is_rare = data.rare[landmark_rows]
        return RareCases(np.where(is_rare, data.number[landmark_rows], 0))
    from rareclass.explain.near_cases import case_features

    chosen = _thinned(np.flatnonzero(data.rare), data.rows.shape[1], seed)
    part = data.take(chosen)
    rows = part.rows.frame() if isinstance(part.rows, RowsOnDisk) else part.rows
    features = case_features(model, encoder.transform(rows))
    width = sum(values.shape[1] for values in features.values())
    kept = _thinned(np.arange(len(chosen)), width, seed)
    assert part.number is not None
    return RareCases(part.number[kept], {name: each[kept] for name, each in features.items()})


def _thinned(rows: NDArray[np.int64], width: int, seed: int) -> NDArray[np.int64]:
    """Some of the rows, in order, so that they are few enough at this width."""
    most = max(1, min(MOST_CASES, _MOST_NUMBERS // max(1, width)))
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
