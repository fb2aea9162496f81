"""What the verbs do with good input."""

import gzip
import json
import re
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pytest

from cli.conftest import facts_of, learned
from command_line import invoke, printed, run, run_with_json, says, scores_of
from made_tables import purchases
from rareclass.cli.fit import fit_and_save
from rareclass.findings import FindingKind, finding_of
from rareclass.fit.auto_method import AutoMethod
from rareclass.fit.demo import FILES, REPORT_NAME, TEST_NAME, PaymentSettings, write_payments
from rareclass.model.evaluate import evaluate_file
from rareclass.model.model_file import load_model


@pytest.mark.sampled(0)
def test_fit_says_what_it_understood_and_saves(fitted):
    shown = printed(
        "fit", fitted.train, "--target", "fraud", "--method", "rankrc", "--folds", "3",
        "--out", fitted.folder / "auto.rareclass",
    )  # fmt: skip
    says(shown, "240 rows", "fraud = yes, 24 rows (10.00%)")
    assert re.search(r"^not used +order \(", shown, re.MULTILINE)
    says(shown, "AUC", "precision at 6", "rareclass score")
    assert "\x1b[" not in shown


def test_model_file_holds_the_record_of_the_training(fitted):
    metadata = facts_of(fitted.model)
    assert metadata["target"] == "fraud"
    assert metadata["rare_label"] == "yes"
    assert metadata["label_counts"] == {"no": 216, "yes": 24}
    assert metadata["lam"] == 2**-4
    kinds = [column["kind"] for column in metadata["columns"]]
    assert kinds == ["id-like", "number", "number", "category", "boolean"]
    assert metadata["held_out"]["n_rare"] == 6
    auc = metadata["held_out"]["measures"]["AUC"]
    assert auc["low"] <= auc["value"] <= auc["high"]
    assert set(metadata["versions"]) >= {"rareclass", "scikit-learn", "numpy", "polars"}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_score_keeps_row_order_and_the_id_column(fitted, tmp_path, suffix):
    out = tmp_path / f"scores{suffix}"
    run("score", fitted.model, fitted.new, "--out", out, "--id", "order")
    scores = pl.read_csv(out) if suffix == ".csv" else pl.read_parquet(out)
    assert scores.columns == ["order", "score", "probability", "called_rare", "percentile"]
    table = purchases(seed=1)
    assert scores["order"].to_list() == table["order"].to_list()
    rare = (table["fraud"] == "yes").to_numpy()
    values = scores["score"].to_numpy()
    assert (values[rare][:, None] > values[~rare]).mean() > 0.9
    assert scores["percentile"].is_between(0, 100).all()


def test_scores_do_not_depend_on_format_column_order_or_extra_columns(fitted, tmp_path):
    table = purchases(seed=1)
    shuffled = table.select(reversed(table.columns)).with_columns(pl.lit("z").alias("extra"))
    shuffled.write_parquet(tmp_path / "new.parquet")
    out = tmp_path / "s.parquet"
    assert "extra" in run("score", fitted.model, tmp_path / "new.parquet", "--out", out)
    expected = scores_of(fitted.model, fitted.new)["score"]
    np.testing.assert_allclose(pl.read_parquet(out)["score"], expected, rtol=1e-12)


def test_evaluate_prints_and_writes_the_same_numbers(fitted, tmp_path):
    result, numbers = run_with_json("evaluate", fitted.model, fitted.new)
    assert f"{numbers['measures']['AUC']['value']:.3f}" in result
    counts = numbers["at_threshold"]
    assert counts["true_rare"] + counts["missed_rare"] == 24
    assert counts["false_rare"] + counts["true_rest"] == 216
    assert "Precision" in result


def test_svmlight_stays_sparse_and_scores(tmp_path):
    generator = np.random.default_rng(0)
    lines = []
    for row in range(200):
        rare = row % 10 == 0
        value = generator.random() + rare
        lines.append(f"{1 if rare else -1} 3:{value:.3f} {5 + row % 7}:1\n")
    path = tmp_path / "t.svmlight.gz"
    path.write_bytes(gzip.compress("".join(lines).encode()))
    model, out = tmp_path / "m.rareclass", tmp_path / "s.parquet"
    run("fit", path, "--method", "rankrc", "--lam", "0.1", "--out", model)
    new = tmp_path / "new.svmlight"
    # Feature 40 is not known from training.
    new.write_text("1 3:2.0 40:1\n-1 3:0.1 6:1\n")
    run("score", model, new, "--out", out)
    scores = pl.read_parquet(out)
    assert scores["row"].to_list() == [1, 2]
    assert scores["score"][0] > scores["score"][1]
    run("evaluate", model, path)


@pytest.mark.parametrize(
    ("words", "said", "are_counted"),
    [((), "with weights", True), (("--copies", "drop"), "each counts once", False)],
)
def test_copies_become_weights_or_count_once(tmp_path, table, words, said, are_counted):
    shown = learned(tmp_path, pl.concat([table, table]), "--drop", "order", *words)
    assert f"240 duplicate rows were merged ({said})" in shown
    facts = facts_of(tmp_path / "m.rareclass")
    assert facts["copies_count"] is are_counted
    assert facts["n_rare"] == 48


def test_labels_that_training_had_not_are_told(fitted, tmp_path):
    table, place = pl.read_csv(fitted.new), pl.int_range(pl.len())
    rare = np.flatnonzero(table["fraud"] == "yes").tolist()
    rest = np.flatnonzero(table["fraud"] != "yes").tolist()
    label = pl.when(place.is_in(rest[:3])).then(pl.lit("maybe")).otherwise(pl.col("fraud"))
    label = pl.when(place.is_in(rare[:2])).then(pl.lit("Yes")).otherwise(label)
    table.with_columns(fraud=label).write_csv(tmp_path / "new.csv")
    done = invoke("evaluate", fitted.model, tmp_path / "new.csv")
    assert done.exit_code == 0, done.output
    notes = " ".join(done.output.split()).split("Note: ")
    assert any("maybe (3)" in note and "majority" in note for note in notes)
    assert any("'Yes'" in note and "'yes'" in note for note in notes)


def test_one_or_two_rare_rows_work_with_a_warning(tmp_path):
    two = purchases().with_columns(fraud=pl.int_range(pl.len()).is_in([3, 13]))
    assert "only 2 distinct rare rows held out" in learned(tmp_path, two)
    table = purchases().with_columns(fraud=(pl.int_range(pl.len()) == 3).cast(int))
    shown = learned(tmp_path, table)
    assert "nothing can be held out" in shown
    assert "nan" not in shown
    assert "intervals" in shown
    assert facts_of(tmp_path / "m.rareclass")["held_out"] is None


def test_positive_picks_one_of_many_labels(tmp_path):
    table = purchases().with_columns(grade=pl.int_range(pl.len()) % 10 % 4)
    learned(tmp_path, table, "-t", "grade", "--positive", "3.0")
    model = tmp_path / "m.rareclass"
    assert facts_of(model)["rare_label"] == "3"
    run("evaluate", model, tmp_path / "t.csv")


def test_rows_without_target_are_counted(tmp_path):
    table = purchases().with_columns(pl.when(pl.int_range(pl.len()) >= 5).then("fraud"))
    assert "5 rows have no value of fraud" in learned(tmp_path, table)


@pytest.mark.usefixtures("without_drawing")
@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", [AutoMethod(), AutoMethod(members=("mibc",))])
def test_demo_runs_all_of_it(tmp_path, monkeypatch, method):
    few = PaymentSettings(n_days=16, payments_a_day=100, n_cards=100, n_shops=20)
    monkeypatch.setattr("rareclass.fit.demo.write_payments", partial(write_payments, settings=few))

    def fit(console, table, out, settings):
        return fit_and_save(console, table, out, replace(settings, method=method))

    monkeypatch.setattr("rareclass.cli.demo.fit_and_save", fit)
    folder = tmp_path / "demo"
    result, told = run_with_json("demo", "--out", folder)
    assert len(told["alerts"]) == 3
    assert all((folder / name).is_file() for name in FILES)
    frauds = pl.read_csv(folder / TEST_NAME).filter(fraud=1)["amount"]
    named = "RareClassifier first 50", *(told["peer"] + way for way in (" first 50", " above .5"))
    says(result, f"{len(frauds)} frauds with amounts of {frauds.sum():,.0f}", *FILES, *named)
    assert "<title>" in (folder / REPORT_NAME).read_text()


def with_decimal_commas(table, path, separator):
    amounts = pl.col("amount").cast(pl.String).str.replace(".", ",", literal=True)
    table = table.with_columns(amounts).rename({"amount": "сумма"})
    path.write_text(table.write_csv(separator=separator), "cp1251" if separator == "~" else "utf-8")
    return path


@pytest.mark.parametrize(
    ("separator", "option"),
    [(";", ""), ("\t", "--separator tab"), ("~", "--separator ~ --encoding cp1251")],
)
@pytest.mark.sampled(1)
def test_decimal_commas_any_separator_and_encoding(fitted, tmp_path, separator, option):
    option = option.split()
    train = with_decimal_commas(purchases(), tmp_path / "train.csv", separator)
    new = with_decimal_commas(purchases(seed=1), tmp_path / "new.csv", separator)
    words, model = ("--method", "rankrc", "--lam", "2^-4", *option), tmp_path / "m.rareclass"
    run("fit", train, "-t", "fraud", *words, "-o", model)
    expected = scores_of(fitted.model, fitted.new)["score"]
    np.testing.assert_allclose(scores_of(model, new, *option)["score"], expected, rtol=1e-9)
    run("evaluate", model, new, *option)


def test_keep_learns_from_what_looks_like_an_identifier(tmp_path, table):
    days = table.with_columns(day=pl.int_range(pl.len()))
    learned(tmp_path, days, "--keep", "day", "--keep", "order")
    model = tmp_path / "m.rareclass"
    kinds = {column.name: column.kind for column in load_model(model).encoder.columns}
    assert kinds["day"] == "number"
    assert kinds["order"] == "high-cardinality category"
    run("score", model, tmp_path / "t.csv", "--out", tmp_path / "s.csv")


def test_one_row_is_one_row(fitted, tmp_path):
    one, table = tmp_path / "one.csv", purchases()
    table.head(1).write_csv(one)
    shown = run("score", fitted.model, one, "--out", tmp_path / "s.csv")
    assert shown.startswith("Scored 1 row; 0 (0.00%) are called rare")
    table[5:6].with_columns(fraud=pl.lit(None, pl.String)).vstack(table[3:12]).write_csv(one)
    assert "Note: 1 row has no target" in run("evaluate", fitted.model, one)


def test_counts_are_whole_numbers(fitted, tmp_path):
    assert '"n_rows": 60,' in json.dumps(facts_of(fitted.model)["held_out"])
    written = invoke("evaluate", fitted.model, fitted.new, "--json", "-").stdout
    says(written, '"n_rows": 240,\n', '"n_rare": 24,\n')


TRAINED, SAID = 240, "seems to hold the rows that the model was trained on"


def is_noticed(fitted, table, folder):
    table.write_parquet(folder / "rows.parquet")
    with warnings.catch_warnings(record=True, action="always") as caught:
        evaluate_file(load_model(fitted.model), folder / "rows.parquet")
    kinds = [found.kind for each in caught if (found := finding_of(each.message)) is not None]
    return FindingKind.TRAINING_ROWS in kinds


def test_rows_of_training_are_noticed_in_any_order(fitted, tmp_path):
    table = purchases(TRAINED)
    assert is_noticed(fitted, table, tmp_path)
    assert is_noticed(fitted, table.sample(fraction=1.0, shuffle=True, seed=1), tmp_path)
    assert is_noticed(fitted, table.select(table.columns[::-1]), tmp_path)


def test_other_rows_are_not(fitted, tmp_path):
    table = purchases(TRAINED)
    for seed in range(1, 9):
        other = purchases(TRAINED, seed)
        assert other["fraud"].value_counts(sort=True).equals(table["fraud"].value_counts(sort=True))
        assert not is_noticed(fitted, other, tmp_path)
    assert not is_noticed(fitted, table.head(200), tmp_path)
    assert not is_noticed(fitted, pl.concat([table, table]), tmp_path)


@pytest.mark.usefixtures("without_drawing")
@pytest.mark.parametrize(
    "words", [("evaluate",), ("threshold", "--min-recall", "0.5"), ("report", "--out", "r.html")]
)
def test_every_command_that_measures_says_so(fitted, tmp_path, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    purchases(TRAINED).write_csv("train.csv")
    assert SAID in " ".join(run(words[0], fitted.model, "train.csv", *words[1:]).split())
