"""In a notebook estimators show themselves as scikit-learn draws them, fitted and not."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rareclass import MIBC, RankRC, RankRCCV, StochasticRankRC

MODELS = [RankRC(lam=0.5), MIBC(C=1.0), RankRCCV(lams=[1.0, 0.5], cv=2), StochasticRankRC()]


@pytest.mark.parametrize("model", [*MODELS, make_pipeline(StandardScaler(), RankRC(lam=0.5))])
def test_the_diagram_is_drawn_before_and_after_fitting(model) -> None:
    generator = np.random.default_rng(0)
    y = np.where(np.arange(80) % 8 == 0, "fraud & co", "ok")
    X = generator.normal(size=(80, 3)) + 2.0 * (y != "ok")[:, None]
    for shown in (clone(model), clone(model).fit(X, y)):
        drawn = shown._repr_mimebundle_()["text/html"]
        assert type(model).__name__ in drawn
