"""What plain methods reach is told beside a model that is learned in another way."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from command_line import QUICK, printed, run
from rareclass.fit.hold_out import JudgedRows, baselines


def test_they_are_scikit_learns_with_their_defaults():
    random = np.random.default_rng(0)
    y = (np.arange(400) % 10 == 0).astype(np.int16)
    X = random.normal(size=(400, 3)) + y[:, None]
    weight = random.integers(1, 3, 400).astype(float)
    train, test = np.arange(400) < 300, np.arange(400) >= 300
    rows = JudgedRows(X[train], y[train], weight[train], X[test], y[test], weight[test])
    boosting, logistic = baselines([rows])
    models = (HistGradientBoostingClassifier(random_state=0), LogisticRegression(max_iter=1000))
    for found, model in zip((boosting, logistic), models, strict=True):
        model.fit(X[train], y[train], sample_weight=weight[train])
        scores = model.decision_function(X[test])
        assert found.auc == pytest.approx(
            roc_auc_score(y[test], scores, sample_weight=weight[test])
        )
        assert found.average_precision == pytest.approx(
            average_precision_score(y[test], scores, sample_weight=weight[test])
        )
        assert found.seconds > 0.0
    thin = sparse.csr_matrix(X)
    alone = baselines([JudgedRows(thin[train], y[train], None, thin[test], y[test], None)])
    assert [each.name for each in alone] == ["logistic regression"]


@pytest.mark.sampled(0)
def test_a_line_each_unless_they_are_not_wanted(train_csv, monkeypatch):
    monkeypatch.setattr("rareclass.fit.training.baselines", baselines)
    words = ("fit", train_csv, "-t", "fraud", "-o", train_csv.parent / "m.rareclass", "--overwrite")
    done = printed(*words, "--method", "mibc")
    assert re.search(r"^histogram boosting +0\.\d{3} ", done, re.MULTILINE)
    assert re.search(r"^logistic regression +0\.\d{3} ", done, re.MULTILINE)
    for others in (("--method", "mibc", "--no-baseline"), QUICK):
        done = run(*words, *others)
        assert "Baseline" not in done
