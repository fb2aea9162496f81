"""Notebooks show what a fitted estimator learned, below scikit-learn's diagram."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rareclass import MIBC, RankRC, RankRCCV
from rareclass.estimators.notebook_html import facts_as_html, fitted_facts


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    y = np.where(np.arange(80) % 8 == 0, "fraud & co", "ok")
    return generator.normal(size=(80, 3)) + 2.0 * (y != "ok")[:, None], y


@pytest.mark.parametrize("model", [RankRC(lam=0.5), MIBC(C=1.0), RankRCCV(lams=[1.0, 0.5], cv=2)])
def test_the_facts_stand_below_the_diagram(rows, model) -> None:
    before = clone(model)._repr_mimebundle_()["text/html"]
    assert "rareclass-facts" not in before
    fitted = clone(model).fit(*rows)
    shown = fitted._repr_html_()
    assert shown.startswith("<style>")
    facts = dict(fitted_facts(fitted))
    assert facts["Rare class"] == "fraud & co"
    assert facts["Threshold"] == f"score > {fitted.offset_:.4g}"
    assert "fraud &amp; co</td>" in shown
    if isinstance(model, RankRCCV):
        assert f"lam {fitted.best_lam_:.4g}" in facts["Chosen"]
    else:
        assert facts["Solver"].startswith(fitted.status_)
    with config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")


def test_inside_a_pipeline_it_is_scikit_learns_own(rows) -> None:
    shown = make_pipeline(StandardScaler(), RankRC(lam=0.5)).fit(*rows)._repr_html_()
    assert "RankRC" in shown


def test_members_and_columns() -> None:
    board = {
        "member": np.array(["forest", "mibc"]),
        "setting": np.array(["", "C 1"]),
        "weight": np.array([0.9, 0.0]),
        "average_precision": np.array([0.5, 0.4]),
        "roc_auc": np.array([0.8, 0.7]),
    }
    model = SimpleNamespace(
        leaderboard_=board, feature_importances_=np.array([0.0, 0.3, np.nan]), interrupted_=True,
        feature_names_in_=np.array(["<a>", "<b>", "c"]), held_out_score_=0.45,
        objective="average_precision",
    )  # fmt: skip
    facts = dict(fitted_facts(model))
    assert facts["Members"] == "forest: weight 0.90, average precision 0.500, AUC 0.800"
    assert facts["Columns that count most"] == "<b> (0.300)"
    assert facts["On held-out rows"] == "average precision 0.450"
    assert facts["Ended early"] == "by Ctrl-C"
    assert "&lt;b&gt; (0.300)" in facts_as_html(fitted_facts(model))
    assert facts_as_html([]) == ""
