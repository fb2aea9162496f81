"""Models as `rareclass.model` has them, made of an encoder and an estimator without a training."""

from typing import Any

import numpy as np

from rareclass.model.facts import ModelFacts, RareClassFacts
from rareclass.model.model import Model


def made_model(
    encoder: Any, estimator: Any, rare: str = "1", rest: str = "0", **parts: Any
) -> Model:
    """Return a model of a rare class, with a threshold of 0 unless the estimator has one."""
    columns = tuple(getattr(encoder, "columns", ()))
    target = RareClassFacts(parts.pop("target", "rare"), rare, rest)
    facts = ModelFacts("table", target, columns, parts.pop("quantiles", (0.0, 1.0)))
    threshold = float(getattr(estimator, "offset_", 0.0))
    return Model(encoder, estimator, facts, np.array([threshold]), **parts)
