"""`evaluate --missed-cases`: what it says, writes and refuses."""

import polars as pl
import pytest

from command_line import invoke, run, run_with_json
from faults import refusal
from made_tables import purchases
from rareclass.errors import ErrorKind
from rareclass.metrics import average_precision
from rareclass.model.model_file import load_model


def orders(seed):
    """Purchases whose frauds stand apart; the same where every fourth lost its label."""
    rows = purchases(600, seed).with_columns(amount=pl.col("amount") + 60.0 * is_fraud())
    lost = is_fraud() & (is_fraud().cum_sum() % 4 == 0)
    recorded = pl.when(lost).then(pl.lit("no")).otherwise("fraud").alias("fraud")
    return rows, rows.with_columns(recorded)


def is_fraud():
    return pl.col("fraud") == "yes"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows to train on, and new ones with true and recorded labels."""
    folder = tmp_path_factory.mktemp("missed")
    orders(0)[1].write_csv(folder / "train.csv")
    true, recorded = orders(1)
    true.write_csv(folder / "true.csv")
    recorded.write_csv(folder / "new.csv")
    return folder


@pytest.mark.parametrize("asked", ["0", "1", "-0.1", "20%", "auto", "nan"])
def test_what_is_no_share_is_refused(folder, fitted, asked):
    words = ("evaluate", fitted.model, folder / "new.csv")
    done = invoke(*words, f"--missed-cases={asked}")
    assert done.exit_code == 2
    assert "missed" in done.stderr
    if asked in ("0", "1"):  # the end of what the option takes
        refusal(done, ErrorKind.SETTING, "missed_cases", "0.2")


def test_evaluate_corrects_to_the_measures_of_the_true_labels(folder, fitted):
    words = ("evaluate", fitted.model, folder / "new.csv", "--missed-cases", "0.25")
    shown, written = run_with_json(*words)
    found = written["missed_cases"]
    model = load_model(fitted.model)
    scores = model.score_samples(folder / "true.csv")
    true = (pl.read_csv(folder / "true.csv")["fraud"] == "yes").to_numpy()
    called = scores > model.threshold
    for name, value in (
        ("precision", true[called].mean()),
        ("recall", called[true].mean()),
        ("average_precision", average_precision(true, scores)),
    ):
        assert found[name]["low"] - 1e-9 <= value <= found[name]["high"] + 1e-9
    of_area = found["average_precision"]
    assert f"{of_area['value']:.3f} {of_area['low']:.3f} to {of_area['high']:.3f}" in shown
    assert found["average_precision"]["value"] == pytest.approx(
        average_precision(true, scores), abs=0.1
    )
    assert found["average_precision"]["value"] > written["measures"]["average precision"]["value"]
    assert (found["share"], round(found["n_rare"])) == (0.25, true.sum())


def test_by_default_labels_are_right(folder, fitted):
    shown, written = run_with_json("evaluate", fitted.model, folder / "new.csv")
    assert "Corrected" not in shown
    assert written["missed_cases"] is None


def test_checked_rows_and_levels_have_no_missed_cases(folder, fitted, tmp_path):
    words = ("evaluate", fitted.model, folder / "new.csv", "--missed-cases", "0.2")
    done = invoke(*words, "--journal", folder / "new.csv")
    refusal(done, ErrorKind.COMBINATION, "--missed-cases", "--journal")
    levels = tmp_path / "levels.rareclass"
    rows = pl.read_csv(folder / "train.csv").with_columns(fraud=pl.col("items") % 3)
    rows.write_csv(tmp_path / "levels.csv")
    run(
            "fit", tmp_path / "levels.csv", "--target", "fraud", "--method", "ordinal-rankrc",
            "--levels", "0,1,2", "--lam", "1", "--out", levels,
        )  # fmt: skip
    done = invoke("evaluate", levels, tmp_path / "levels.csv", "--missed-cases", "0.2")
    refusal(done, ErrorKind.UNSUPPORTED, "levels")
