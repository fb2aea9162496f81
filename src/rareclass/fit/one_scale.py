"""Held-out scores of models of a part of the rows, as of the model that is saved."""

from collections.abc import Callable, Sequence

import numpy as np

from rareclass.folds.score_scale import Scores
from rareclass.model.threshold import ScoredRows


def pooled(parts: Sequence[tuple[ScoredRows, Callable[[Scores], Scores]]]) -> ScoredRows:
    """The rows of all parts, each with its scores moved, in the order of the table."""
    rows = [part for part, _ in parts]
    places = np.concatenate([part.places for part in rows])
    order = np.argsort(places, kind="stable")
    weights = [part.weight for part in rows if part.weight is not None]
    weight = np.concatenate(weights)[order] if weights else None
    scores = np.concatenate([move(part.scores) for part, move in parts])
    return ScoredRows(
        np.concatenate([part.y for part in rows])[order], scores[order], weight, places[order]
    )
