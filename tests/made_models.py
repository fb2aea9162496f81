"""Models as `rareclass.model` has them, made of an encoder and an estimator without a training."""

import numpy as np

from rareclass.model.facts import ModelFacts
from rareclass.model.model import Model
from rareclass.model.targets import RareClassFacts


def made_model(encoder, estimator, rare="1", rest="0", **parts):
    columns = tuple(getattr(encoder, "columns", ()))
    target = RareClassFacts(parts.pop("target", "rare"), rare, rest)
    facts = ModelFacts("table", target, columns, parts.pop("quantiles", (0.0, 1.0)))
    threshold = float(getattr(estimator, "offset_", 0.0))
    return Model(encoder, estimator, facts, np.array([threshold]), **parts)
