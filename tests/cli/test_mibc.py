"""``rareclass fit --method mibc``, the verbs on its models, and the plain methods beside it."""

import re

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from cli.conftest import facts_of, fit_in_vain
from command_line import QUICK, fit_in, invoke, printed, run, says
from draws import quick
from made_tables import purchases
from rareclass.fit.hold_out import baselines
from rareclass.fit.method import EncodedRows


@pytest.fixture(scope="session")
def mibc(tmp_path_factory):
    words = ("--target", "fraud", "--method", "mibc", "--details")
    return fit_in(tmp_path_factory.mktemp("mibc"), purchases(), purchases(seed=1), *words)


def test_fit_says_what_it_chose_and_guarantees(mibc):
    said = mibc.printed
    metadata = facts_of(mibc.model)
    says(said, f"Cost C = {metadata['C']:.4g} (10^", "chosen by cross-validation")
    says(
        said, "Covariance of the majority: full, ", f"Solver: {metadata['solver']['status']} after"
    )
    assert f"false-positive rate at most {1 - metadata['specificity_bound']:.1%} at" in said
    assert "trained again on all rows with this C" in " ".join(said.split())
    assert "Landmarks" not in said
    assert "\x1b[" not in said
    assert metadata["method"] == "mibc"
    assert metadata["solver"]["duality_gap"] <= 1e-6


@pytest.mark.parametrize("covariance", quick(1, ["factor", "diagonal"]))
def test_covariance_and_cost_are_taken(mibc, tmp_path, covariance):
    result = run(
        "fit", mibc.train, "-t", "fraud", "--method", "mibc", "--cost", "10^-1",
        "--covariance", covariance, "--details", "--out", tmp_path / "m.rareclass",
    )  # fmt: skip
    says(result, "Cost C = 0.1 (10^-1), given", f"Covariance of the majority: {covariance}, ")
    assert facts_of(tmp_path / "m.rareclass")["C"] == 0.1


def test_no_rare_row_may_be_wrong(tmp_path):
    words = ("--target", "fraud", "--method", "mibc", "--cost", "inf")
    purchases().write_csv(tmp_path / "t.csv")
    table = purchases()
    far = pl.col("amount") + 500 * (pl.col("fraud") == "yes")
    table.with_columns(far).write_csv(tmp_path / "apart.csv")
    result = run(
        "fit", tmp_path / "apart.csv", *words, "--details", "--out", tmp_path / "m.rareclass"
    )
    assert "Cost C = inf, given" in result
    # Rare rows all around the mean of the others.
    rng = np.random.default_rng(0)
    around = pl.DataFrame(rng.normal(size=(400, 2)), schema=["a", "b"]).with_columns(
        fraud=pl.when(pl.int_range(400) < 60).then(pl.lit("yes")).otherwise(pl.lit("no"))
    )
    around.write_csv(tmp_path / "around.csv")
    said = fit_in_vain(tmp_path / "around.csv", *words[2:], "--out", tmp_path / "n")
    says(said, "hull", "--cost auto")


@pytest.mark.thorough
def test_rankrc_suggests_it_when_it_will_take_long(mibc, tmp_path, monkeypatch):
    out = ("--out", tmp_path / "m.rareclass", "--overwrite")
    words = ("--target", "fraud", "--method", "rankrc", "--lam", "1", *out)
    monkeypatch.setattr("rareclass.fit.kernel_methods._QUESTION", 1e7)
    said = run("fit", mibc.train, *words)
    assert "RankRC is likely to take about" in said
    assert said.index("mibc, a linear model") < said.index("held-out rows")
    result = invoke("fit", mibc.train, "-t", "fraud", "--method", "mibc", *out)
    assert "likely to take" not in result.stdout


def test_they_are_scikit_learns_with_their_defaults():
    random = np.random.default_rng(0)
    y = (np.arange(400) % 10 == 0).astype(np.int16)
    X = random.normal(size=(400, 3)) + y[:, None]
    weight = random.integers(1, 3, 400).astype(float)
    train, test = np.arange(400) < 300, np.arange(400) >= 300
    parts = [EncodedRows(X[rows], y[rows], weight[rows]) for rows in (train, test)]
    boosting, logistic = baselines([parts])
    models = (HistGradientBoostingClassifier(random_state=0), LogisticRegression(max_iter=1000))
    for found, model in zip((boosting, logistic), models, strict=True):
        model.fit(X[train], y[train], sample_weight=weight[train])
        scores = model.decision_function(X[test])
        measures = roc_auc_score, average_precision_score
        expected = [each(y[test], scores, sample_weight=weight[test]) for each in measures]
        assert [found.auc, found.average_precision] == pytest.approx(expected)
        assert found.seconds > 0.0
    thin = sparse.csr_matrix(X)
    alone = baselines([[EncodedRows(thin[rows], y[rows], None) for rows in (train, test)]])
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
