"""One method: ordered levels and MIBC, the verbs on their models, and plain methods beside them."""

import re

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from cli.conftest import facts_of, fit_in_vain
from command_line import QUICK, fit_in, invoke, printed, run, run_with_json, says
from draws import quick
from faults import refusal
from made_tables import purchases
from rareclass.cli.evaluate import print_confusion
from rareclass.cli.screen import output
from rareclass.errors import ErrorKind
from rareclass.fit.hold_out import baselines
from rareclass.fit.method import EncodedRows
from rareclass.machine import track
from rareclass.model.decisions import Confusion
from rareclass.opening import load

METHOD = ("--method", "ordinal-rankrc")
WORDS = ("low", "medium", "high")


def stays(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    days = np.searchsorted([0.8, 0.9, 0.97], rng.random(n_rows))
    return pl.DataFrame(
        {
            "patient": [f"p-{k * 7919 % 99991}" for k in range(n_rows)],
            "age": (50 + 8 * days + rng.normal(0, 9, n_rows)).round(1),
            "visits": rng.poisson(1 + days),
            "clinic": rng.choice(["north", "south", "west"], n_rows),
            "days": days,
        }
    )


def in_words(table):
    names = np.array([*WORDS, "high"])[table["days"].to_numpy()]
    return table.with_columns(risk=pl.Series(names)).drop("days")


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    words = ("--target", "days", *METHOD, "--folds", "3", "--details")
    return fit_in(tmp_path_factory.mktemp("ordinal"), stays(), stays(seed=1), *words)


@pytest.fixture(scope="module")
def risks(tmp_path_factory):
    path = tmp_path_factory.mktemp("risks") / "words.parquet"
    in_words(stays()).write_parquet(path)
    return path


@pytest.mark.sampled(0)
def test_fit_says_what_it_understood_and_how_good_it_is(days):
    said = " ".join(days.printed.split())
    counts = stays()["days"].value_counts().sort("days")["count"].to_list()
    named = ", ".join(f"{day} ({n})" for day, n in enumerate(counts))
    says(said, f"Levels of days, lowest first: {named}", f"Majority level: 0, {counts[0]} rows")
    metadata = facts_of(days.model)
    for name, measure in metadata["held_out"]["measures"].items():
        assert f"{name} {measure['value']:.3f} {measure['low']:.3f} to" in said
    assert list(metadata["held_out"]["measures"]) == [
        "MAUC", "VUS", "AUC above 0", "AUC above 1", "AUC above 2",
    ]  # fmt: skip
    says(said, f"Regulariser lam = {metadata['lam']:.4g} (2^", "chosen by cross-validation")
    says(said, "trained again on all rows with this lam", "Levels by score: 0 up to ")
    says(said, "Right level: ", "rareclass score")
    assert "Rare class" not in said
    assert "of them rare" not in said


def test_scores_have_a_level(days, tmp_path):
    result = run("score", days.model, days.new, "--id", "patient", "--out", tmp_path / "s.csv")
    scores = pl.read_csv(tmp_path / "s.csv")
    chances = [f"probability_{day}" for day in range(4)]
    assert scores.columns == ["patient", "score", *chances, "level", "percentile"]
    np.testing.assert_allclose(scores.select(pl.sum_horizontal(chances)).to_numpy(), 1.0)
    shares = np.bincount(stays(seed=1)["days"], minlength=4) / 300
    np.testing.assert_allclose(scores.select(chances).mean().row(0), shares, atol=0.08)
    model = load(days.model)
    assert (model.classes, len(model.thresholds)) == (("0", "1", "2", "3"), 3)
    found = model.predict_proba(days.new)
    np.testing.assert_allclose(found, scores.select(chances).to_numpy(), atol=1e-12)
    assert scores["level"].dtype == pl.Int64
    assert model.predict(days.new).tolist() == scores["level"].cast(str).to_list()
    n_zero = int((scores["level"] == 0).sum())
    assert f"Scored 300 rows; rows called each level: 0 ({n_zero})" in result


def test_evaluate_prints_and_writes_the_same_numbers(days, tmp_path):
    said, numbers = run_with_json("evaluate", days.model, days.new)
    assert numbers["n_rows"] == 300
    assert numbers["measures"]["MAUC"]["value"] > 0.75
    for name, measure in numbers["measures"].items():
        assert f"{name} {measure['value']:.3f} {measure['low']:.3f} to" in said
    counts = np.array(numbers["confusion"]["is_by_called"])
    assert counts.sum() == 300
    assert f"is 0 {' '.join(str(int(n)) for n in counts[0])} is 1" in said
    assert f"{numbers['right']:.1%} of the rows" in said
    assert "Precision" not in said


@pytest.mark.sampled(0)
def test_words_in_a_given_order(risks, tmp_path):
    model, out = tmp_path / "m.rareclass", tmp_path / "s.parquet"
    fit = ("fit", risks, "-t", "risk", *METHOD, "--lam", "2^-6", "-o", model)
    assert "Levels of risk, lowest first: low (" in run(*fit, "--levels", "low, medium,high")
    assert facts_of(model)["lam"] == 2.0**-6
    assert facts_of(model)["levels"] == list(WORDS)
    run("score", model, risks, "-o", out)
    assert set(pl.read_parquet(out)["level"]) <= set(WORDS)


def test_labels_that_are_no_levels(risks):
    words = (risks, "-t", "risk", *METHOD)
    said = fit_in_vain(*words)
    says(said, "row 1 of the target 'risk': 'low' is text", "--levels")
    few = [(levels, "fewer than two levels") for levels in ("low", "")]
    for levels, wrong in (*few, ("low,,high", "place 2 is empty"), ("low,high,low", "'low' is")):
        says(fit_in_vain(*words, "--levels", levels), "--levels", wrong, "low, medium, high")
    said = fit_in_vain(*words, "--levels", "low,high")
    assert "of the target 'risk': 'medium' is not among the levels 'low', 'high'" in said


def test_a_new_file_with_other_levels(days, tmp_path):
    new = tmp_path / "new.csv"
    stays().with_columns(days=pl.int_range(300) % 5).write_csv(new)
    words = ("evaluate", days.model, new)
    refusal(invoke(*words), ErrorKind.LABELS, "new.csv", "'4'", "row 5", "0, 1, 2, 3")
    stays().with_columns(days=0).write_csv(new)
    refusal(invoke(*words), ErrorKind.LABELS, "new.csv", "'0'")
    stays().drop("days").write_csv(new)
    assert refusal(invoke(*words), ErrorKind.MISSING_COLUMN, "new.csv").column == "days"


@pytest.mark.parametrize("width", quick(1, ["40", "60", "80"]))
def test_screens_fit_the_width(days, tmp_path, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    shown = invoke(
        "fit", days.train, "-t", "days", *METHOD, "--lam", 1, "-o", tmp_path / "m.rareclass"
    ).stdout
    shown += invoke("evaluate", tmp_path / "m.rareclass", days.new).stdout
    too_wide = [line for line in shown.splitlines() if len(line.rstrip()) > int(width)]
    assert all(line.startswith(("  ", "Saved ")) for line in too_wide)
    assert ("called 3" in shown) == (width != "40")
    heads = [line.split() for line in shown.splitlines() if line.startswith("called ")]
    assert (["called", "0", "1", "2", "3"] in heads) == (width == "40")
    assert "Right level" in " ".join(shown.split())


@pytest.mark.parametrize("width", [60, 120])
@pytest.mark.parametrize("n", [1, 2, 3, 12, 100])
def test_of_many_levels_the_most_frequent_errors_are_shown(monkeypatch, capsys, n, width):
    names = [f"level {k}" for k in range(n)]
    counts = np.random.default_rng(n).permutation(n * n).reshape(n, n)
    monkeypatch.setenv("COLUMNS", str(width))
    print_confusion(output(), Confusion("Counts", names, names, counts, ["the gist"], {}))
    title, _, *lines, gist = capsys.readouterr().out.splitlines()
    assert gist == "the gist"
    assert max(len(line.rstrip()) for line in lines) <= width
    if n * (10 if n < 12 else 11) < width:
        assert (title, len(lines)) == ("Counts", n)
        return
    wrong = sorted(((each, pair) for pair, each in np.ndenumerate(counts)), reverse=True)
    wrong = [(each, i, k) for each, (i, k) in wrong if i != k and each]
    told = [f"level {i} level {k} {m:,} {m / counts[i].sum():.1%}" for m, i, k in wrong[:12]]
    told.append(f"{len(wrong) - 12:,} more are not listed. --json FILE has them all.")
    assert [" ".join(line.split()) for line in lines] == told
    print_confusion(output(), Confusion("Counts", names, names, np.eye(n), [], {}))
    assert "No row is called another class" in capsys.readouterr().out


def test_brackets_in_a_progress_line_are_no_markup(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with track("Reading [red]t[bold].csv", enabled=True) as advance:
        advance(1, "row [2]")
    shown = capsys.readouterr().err
    assert "Reading [red]t[bold].csv" in shown


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
