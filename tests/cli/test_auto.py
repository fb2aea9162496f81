"""``rareclass fit`` as it is by default: many members, combined within a time."""

import datetime as dt
import json
import re
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import rareclass as package
from cli.conftest import facts_of
from command_line import QUICK, complaint, fit_in, invoke, printed, run, scores_of
from faults import refusal
from made_tables import purchases, skimmed_shops
from rareclass.encoding.typed_table import read_as_trained
from rareclass.ensemble.members.machines import LogisticOnQuantiles
from rareclass.errors import ErrorKind
from rareclass.fit.auto_method import AutoMethod
from rareclass.model.model_file import load_model

_NAMES = "kernel-on-quantiles,Extra trees,logistic regression"
KINDS = ("--members", _NAMES, "--folds", "2")


@pytest.fixture(scope="module")
def auto(tmp_path_factory):
    words = ("-t", "fraud", *KINDS, "--time-budget", "5m", "--details")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        tables = purchases(300), purchases(seed=1)
        return fit_in(tmp_path_factory.mktemp("auto"), *tables, *words)


@pytest.mark.sampled(0)
def test_the_screen_tells_members_scores_and_threshold(auto):
    said, words = auto.printed, " ".join(auto.printed.split())
    for each in (
        "amount number 2",
        "value, rank",
        "commonest values, log-odds",
        "300 rows, 30 of them rare",
        "Member Weight AUC AP 95% interval Seconds Settings",
        "amount (",
        "1 in 100 held-out majority rows",
    ):
        assert each in words, each
    threshold = load_model(auto.model).threshold
    assert f"Threshold {threshold:.4g}" in words
    assert all(name in words for name in ("extra trees", "kernel on quantiles"))
    assert "Warning" not in said
    assert "inverse" not in said


def test_the_leaderboard_is_plain_data(auto):
    metadata = facts_of(auto.model)
    assert json.loads(json.dumps(metadata)) == metadata
    assert metadata["method"] == "auto"
    board = metadata["leaderboard"]
    assert sum(row["weight"] for row in board) == pytest.approx(1.0)
    known = {"extra trees", "kernel on quantiles", "logistic regression"}
    named = [row["member"] for row in board] + [row["member"] for row in metadata["also_tried"]]
    assert set(named) == known
    learned = {row["member"] for row in board}  # a second training keeps to those with weight
    assert learned.isdisjoint(row["member"] for row in metadata["also_tried"])
    for row in board:
        assert 0.5 < row["roc_auc"] <= 1.0
        assert row["average_precision_low"] <= row["average_precision"]
    assert metadata["importances"]["amount"] > 0.05
    assert "order" not in metadata["importances"]


def test_a_percentile_is_the_share_that_the_score_says(auto, tmp_path):
    scores = scores_of(auto.model, auto.new)
    inside = scores.filter(pl.col("percentile").is_between(1, 99))
    assert inside.height > 150
    expected = 100 * (1 - 10 ** -inside["score"].to_numpy())
    np.testing.assert_allclose(inside["percentile"], expected, atol=0.01)


@pytest.mark.sampled(0)
def test_the_time_and_the_objective_are_taken(train_csv, out, monkeypatch):
    seen = []
    fit = package.RareClassifier.fit

    def watched(self, *given, **named):
        seen.append((self.effort, self.time_budget, self.objective, self.cv))
        return fit(self, *given, **named)

    monkeypatch.setattr(package.RareClassifier, "fit", watched)
    words = (train_csv, "-t", "fraud", *QUICK, "-o", out, "--overwrite")
    run("fit", *words, "--time-budget", "1.5m", "--objective", "roc-auc", "--effort", "quick")
    assert seen == [("quick", 90.0, "roc_auc", 2)]
    seen.clear()
    run("fit", *words, "--holdout", "0.2")
    assert seen == [("standard", None, "average_precision", 2)] * 2
    seen.clear()
    run("fit", *words, "--holdout", "0.2", "--time-budget", "90")
    # Two fits, for the estimate and for the model, share the time.
    assert seen == [("standard", 45.0, "average_precision", 2)] * 2


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("method", "option", "values", "belongs_to", "instead"),
    [
        ("auto", "--lam", ("1",), "rankrc or ordinal-rankrc", "--members"),
        ("auto", "--width", ("1",), "rankrc", ""),
        ("auto", "--cost", ("1",), "mibc", ""),
        ("auto", "--levels", ("a,b",), "ordinal-rankrc", "--positive"),
        ("mibc", "--members", ("mibc",), "auto", ""),
        ("mibc", "--lam", ("0.1",), "rankrc", "--cost"),
        ("rankrc", "--cost", ("inf",), "mibc", "--lam"),
        ("rankrc", "--covariance", ("full",), "mibc", "--lam, --width"),
        ("rankrc", "--levels", ("0,1",), "ordinal-rankrc", "--positive"),
        ("mibc", "--levels", ("0,1",), "ordinal-rankrc", "--positive"),
        ("ordinal-rankrc", "--positive", ("3",), "auto", "--levels"),
        ("ordinal-rankrc", "--cost", ("2",), "mibc", "--lam"),
        ("ordinal-rankrc", "--covariance", ("full",), "mibc", ""),
        ("rankrc", "--time-budget", ("5",), "auto", ""),
    ],
)
def test_an_option_of_another_method(train_csv, out, method, option, values, belongs_to, instead):
    words = ("fit", train_csv, "-t", "fraud", "-o", out, "--method", method, option, *values)
    given = [f"{option} {value}" for value in values[0].split(",")]
    facts = (" ".join(given), method, f"--method {belongs_to}", instead)
    refusal(invoke(*words), ErrorKind.COMBINATION, *facts)
    assert not out.exists()


def test_sparse_rows_are_left_to_rankrc(tmp_path):
    path, model = tmp_path / "t.svmlight", tmp_path / "m.rareclass"
    path.write_text(
        "".join(f"{int(k % 10 == 3)} 1:{k % 7} 4:{k % 10 == 3:d}.5\n" for k in range(200))
    )
    assert "rankrc is used instead." in run("fit", path, "--folds", "2", "-o", model)
    assert facts_of(model)["method"] == "rankrc"
    said = complaint("fit", path, "--members", "kernel", "-o", model, "--overwrite")
    assert "rankrc does, and has no --time-budget" in said


def interrupt(monkeypatch, least_rows=0):
    learn = LogisticOnQuantiles.cross_fit

    def watched(self, rows):
        if len(rows.fold) >= least_rows:
            raise KeyboardInterrupt
        return learn(self, rows)

    monkeypatch.setattr(LogisticOnQuantiles, "cross_fit", watched)


TWO = ("--members", "kernel on quantiles,logistic regression", "--folds", "2")


@pytest.mark.parametrize(
    ("words", "least_rows", "is_whole"),
    [
        ((*TWO, "--holdout", "0.25"), 0, False),
        (TWO, 0, True),  # without rows held out
        ((*QUICK, "--holdout", "0.25"), 240, False),  # in the training on all rows
    ],
)
def test_one_ctrl_c_saves_what_was_learned(
    train_csv, out, monkeypatch, words, least_rows, is_whole
):
    interrupt(monkeypatch, least_rows)
    said = run("fit", train_csv, "-t", "fraud", *words, "-o", out)
    assert "Note: stopped by Ctrl-C" in said
    metadata = facts_of(out)
    assert metadata["trained_on_all_rows"] is is_whole
    if least_rows == 0:
        assert metadata["interrupted"] is True
        assert said.count("kernel on quantiles") >= 2  # in the note, and among the members
        assert {row["member"] for row in metadata["leaderboard"]} == {"kernel on quantiles"}
    if is_whole:
        assert "by cross-validation: 240 rows, 24 of them rare" in said


def test_where_time_ends_in_the_training_on_all_rows_the_estimated_model_is_saved(
    train_csv, out, monkeypatch
):
    def model(*trained):
        return SimpleNamespace(leaderboard_={"member": np.array(trained)})

    method = AutoMethod(members=("extra trees", "mibc"))
    assert method.is_whole(model("extra trees", "extra trees", "mibc"))
    assert not method.is_whole(model("mibc"))
    monkeypatch.setattr(AutoMethod, "is_whole", lambda *_: False)
    said = run("fit", train_csv, "-t", "fraud", *QUICK, "--holdout", "0.25", "-o", out)
    assert "--time-budget" in said
    assert facts_of(out)["trained_on_all_rows"] is False


def test_ctrl_c_when_all_members_are_learned_keeps_them(train_csv, out, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rareclass.ensemble.importances.permutation_importances", interrupted)
    run("fit", train_csv, "-t", "fraud", *QUICK, "-o", out)
    metadata = facts_of(out)
    assert (metadata["interrupted"], metadata["importances"]) == (True, {})


def test_ctrl_c_before_anything_is_learned_saves_nothing(train_csv, out, monkeypatch):
    interrupt(monkeypatch)
    done = invoke("fit", train_csv, "-t", "fraud", *QUICK, "-o", out)
    assert done.exit_code == 130
    assert not out.exists()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("details", [(), ("--details",)])
@pytest.mark.parametrize("width", ["50", "80"])
def test_the_screen_fits_the_width(auto, tmp_path, monkeypatch, width, details):
    monkeypatch.setenv("COLUMNS", width)
    words = ("-t", "fraud", *TWO, "-o", tmp_path / "m.rareclass", *details)
    done = printed("fit", auto.train, *words)
    lines = [line.rstrip() for line in done.splitlines()]
    too_wide = [line for line in lines if len(line) > int(width)]
    assert [line for line in too_wide if not line.startswith(("  ", "Saved "))] == []
    if details:
        board = next(k for k, line in enumerate(lines) if line.startswith("Member "))
        assert re.search(r"\d\.\d\d\d", lines[board + 1])


def test_words_that_look_like_numbers_stay_words(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, 300)
    rare = (codes == 2) & (rng.random(300) < 0.6)
    path, model = tmp_path / "t.csv", tmp_path / "m.rareclass"
    pl.DataFrame({"code": codes, "x": rng.normal(size=300), "y": rare.astype(int)}).write_csv(path)
    run("fit", path, "-t", "y", "--category", "code", *QUICK, "-o", model)
    kinds = {each.name: each.kind for each in load_model(model).estimator.columns_}
    assert kinds == {"code": "category", "x": "number"}
    out = tmp_path / "s.csv"
    new = tmp_path / "new.parquet"
    pl.DataFrame({"code": [2.0, 1.0, 9.0], "x": [0.0, 0.0, 99.0]}).write_parquet(new)
    said = run("score", model, new, "-o", out)
    scores = pl.read_csv(out)["score"]
    assert scores[0] > scores[1]
    assert "values not seen in training: code (1, 33.3%)" in said
    assert "values outside the training range, clipped to it: x (1, 33.3%)." in said


def messy(n_rows):
    rng = np.random.default_rng(0)
    shop, town = rng.integers(0, 6, n_rows), rng.integers(0, 6, n_rows)
    code = rng.integers(0, 90, n_rows)
    rare = rng.random(n_rows) < np.where((shop + town) % 6 == 0, 0.3, 0.01) + 0.6 * (code % 7 == 3)
    start = dt.datetime(2024, 1, 1)
    stamps = [start + dt.timedelta(hours=int(k)) for k in rng.integers(0, 9000, n_rows)]
    return pl.DataFrame(
        {
            "shop": [f"s{k}" for k in shop],
            "town": [f"t{k}" for k in town],
            "code": code,
            "amount": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows)),
            "at": pl.Series(stamps).dt.replace_time_zone("Asia/Tokyo"),
            "paid": pl.Series([at + dt.timedelta(days=int(k) % 9) for k, at in enumerate(stamps)]),
            "member": rng.random(n_rows) < 0.5,
            "note": [f"the {k * 31 % 97} lamps of room {k}" for k in range(n_rows)],
            "always": "x",
            "y": np.where(rare, "bad", "good"),
        }
    ).with_columns(
        town=pl.when(pl.int_range(n_rows) % 11 == 5).then(None).otherwise(pl.col("town"))
    )


@pytest.mark.sampled(0)
def test_every_kind_of_column_is_learned_saved_and_scored(tmp_path):
    table = messy(1500)
    table.write_parquet(tmp_path / "t.parquet")
    model = tmp_path / "m.rareclass"
    words = ("-t", "y", *KINDS, "--holdout", "0", "-o", model)
    run("fit", tmp_path / "t.parquet", *words)
    content = load_model(model)
    kinds = [each.kind for each in content.estimator.columns_]
    assert kinds == ["category"] * 2 + ["number"] * 2 + ["date"] * 2 + ["boolean", "text"]
    statistics = content.estimator.statistics_
    assert any(labels.pair_statistics_ for labels in statistics.labels_)
    assert len(statistics.known_) > statistics.n_words_  # a column of codes
    again = package.load(model).score_samples(table)
    np.testing.assert_allclose(
        again, content.estimator.score_samples(content.encoder.transform(typed(content, table)))
    )
    moved = table.with_columns(pl.col("at").dt.convert_time_zone("UTC"))
    np.testing.assert_allclose(package.load(model).score_samples(moved), again, rtol=1e-12)


@pytest.mark.thorough
def test_a_pair_of_columns_gives_no_column_away(tmp_path):
    rng = np.random.default_rng(0)
    shop, town = rng.integers(0, 12, 2000), rng.integers(0, 12, 2000)
    path = tmp_path / "t.csv"
    rare = ((shop + town) % 12 == 0).astype(int)
    told = pl.DataFrame({"shop": shop, "town": town, "x": rng.normal(size=2000), "y": rare})
    told.with_columns(pl.col("shop", "town").cast(pl.String) + "x").write_csv(path)
    done = run("fit", path, "-t", "y", *KINDS, "--holdout", "0", "-o", tmp_path / "m.rareclass")
    statistics = load_model(tmp_path / "m.rareclass").estimator.statistics_
    assert all(labels.pair_statistics_ for labels in statistics.labels_)
    assert "almost perfectly" not in done
    told.with_columns(shop=pl.col("y") * 3.5).write_csv(path)
    said = run("fit", path, "-t", "y", *QUICK, "-o", tmp_path / "n.rareclass")
    assert said.count("column 'shop' alone ranks the rows almost perfectly") == 1
    assert "--drop shop" in said


def typed(content, table):
    return read_as_trained(table, content.encoder.columns, 1)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", ["for good", "bursts"])
def test_identifiers_are_told_of(tmp_path, how):
    frame, rare = skimmed_shops(how=how, n=9000)  # each fold decides by the rows it learns from
    table = pl.from_pandas(frame)
    table.with_columns(pl.Series("rare", rare)).write_csv(tmp_path / "train.csv")
    model = tmp_path / "model.rareclass"
    said = run("fit", tmp_path / "train.csv", "-t", "rare", *QUICK, "-o", model)
    amount, shop, _ = facts_of(model)["columns"]
    if how == "for good":
        assert shop["treatment"].endswith("learned value by value")
        assert "--groups shop" in said
        assert "Learned value by value: shop" in said
        return
    assert re.search(r"Not used: shop: other times rank .* \(average precision 0.\d+, with", said)
    assert (amount["kind"], shop["kind"]) == ("number", "id-like")
    table.drop("shop").write_csv(tmp_path / "new.csv")  # nobody asks for it
    run("score", model, tmp_path / "new.csv", "-o", tmp_path / "scores.csv")
