"""Whatever was learned is served, and a new file takes over once it is whole and checked."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from command_line import QUICK, run
from draws import quick
from made_tables import purchases
from rareclass.errors import ErrorKind, InputError
from rareclass.model.model_file import load_model, save_model
from rareclass.opening import load
from rareclass.serving.live_model import LiveModel, check_can_replace, fingerprint, open_served
from serving.conftest import ROW, fit


@pytest.fixture
def watched(fitted, tmp_path):
    return LiveModel(Path(shutil.copy(fitted, tmp_path / "m.rareclass")))


def change(path, threshold):
    save_model(path, load_model(path).with_thresholds(threshold))


def test_a_changed_file_takes_over_at_the_second_look(serve, watched):
    client = serve(watched)
    before = client.post("/score", json=[ROW]).json()
    assert watched.look().outcome == "same"
    change(watched.path, 1e9)
    assert [watched.look().outcome for _ in range(3)] == ["changing", "loaded", "same"]
    after = client.post("/score", json=[ROW]).json()
    assert after["model"] != before["model"]
    assert after["rows"][0]["score"] == before["rows"][0]["score"]
    assert (before["rows"][0]["decision"], after["rows"][0]["decision"]) == ("yes", "no")
    assert after["model"] == client.get("/model").json()["model"]


def test_a_file_that_is_none_is_left_alone_and_the_old_one_goes_on(serve, watched, fitted):
    client = serve(watched)
    name = watched.now.name
    whole = fitted.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"no model"):
        watched.path.write_bytes(content)
        assert watched.look().outcome == "changing"
        found = watched.look()
        assert (found.outcome, found.kind) == ("refused", "InputError")
        assert watched.look().outcome == "same"
        assert client.post("/score", json=[ROW]).json()["model"] == name
    watched.path.unlink()
    assert watched.look().outcome == "same"
    assert client.get("/readyz").is_success
    shutil.copy(fitted, watched.path)
    assert [watched.look().outcome for _ in range(2)] == ["changing", "loaded"]


def test_it_is_looked_at_at_once_where_asked(serve, watched):
    client = serve(watched)
    look = client.app.state.look
    assert look(True).outcome == "loaded"
    watched.path.write_bytes(b"no model")
    assert look(True).outcome == "refused"
    for outcome in ("loaded", "refused"):
        count = f'rareclass_model_loads_total{{outcome="{outcome}"}} 1.0'
        assert count in client.get("/metrics").text


def test_a_file_that_changes_while_it_is_read_waits_for_the_next_look(watched, monkeypatch):
    before, opened = watched.now.name, []

    def open_and_change(path):
        served = open_served(path)
        opened.append(path)
        if len(opened) < 3:
            change(path, float(len(opened)))
        if len(opened) == 2:
            raise InputError("half of it", "", ErrorKind.DAMAGED_FILE)
        return served

    monkeypatch.setattr(watched, "_open", open_and_change)
    assert [watched.look(at_once=True).outcome for _ in range(2)] == ["changing", "changing"]
    assert watched.now.name == before
    assert [watched.look().outcome for _ in range(3)] == ["changing", "loaded", "same"]
    assert watched.now.name == fingerprint(watched.path)
    assert watched.now.facts["thresholds"] == [2.0]


def test_a_model_that_does_not_fit_does_not_take_over(tmp_path, watched, monkeypatch):
    monkeypatch.setattr("rareclass.fit.training.baselines", lambda *rows: [])
    shutil.copy(watched.path, tmp_path / "whole.rareclass")
    rows = purchases().drop("order", "items")
    fewer = fit(tmp_path, "--method", "rankrc", "--lam", "1", rows=rows, name="fewer")
    check_can_replace(watched.now, open_served(fewer))
    with pytest.raises(InputError, match="'items' of numbers"):
        check_can_replace(open_served(fewer), watched.now)
    content = load_model(fewer)
    target = replace(content.rare_class, target="theft")
    save_model(watched.path, replace(content, facts=replace(content.facts, target=target)))
    assert watched.look(at_once=True).reason.startswith("The new model's target is 'theft'")
    content = load_model(tmp_path / "whole.rareclass")
    content.estimator.dual_coef_[:] = float("nan")
    save_model(watched.path, content)
    found = watched.look(at_once=True)
    assert found.outcome == "refused"
    assert "m.rareclass" in found.reason


ROWS = purchases().with_columns(
    day=pl.Series([f"{1 + k % 28:02}.{1 + k % 12:02}.2024 10:30" for k in range(240)]),
    note=pl.Series([f"some words about item number {7 * k}" for k in range(240)]),
)
LEVELS = ROWS.with_columns(
    fraud=pl.when(pl.col("fraud") == "yes").then(3).when(pl.col("amount") > 55).then(2).otherwise(1)
)
KINDS = {
    "auto": (ROWS, QUICK),
    "mibc": (ROWS, ("--method", "mibc", "--cost", 1, "--holdout", 0)),
    "levels": (LEVELS, ("--method", "ordinal-rankrc", "--lam", 0.1)),
    "stream": (purchases(), ()),
    "hunt": (ROWS.with_columns(fraud=pl.col("fraud").replace({"no": None})), ()),
}


def learned(kind, folder):
    rows, options = KINDS[kind]
    if kind not in ("stream", "hunt"):
        return fit(folder, *options, rows=rows, name=kind)
    rows.write_csv(folder / "rows.csv")
    out = ("--checkpoint",) if kind == "stream" else ("--rare", "yes", "--out")
    run(kind, folder / "rows.csv", "-t", "fraud", *out, folder / kind)
    return folder / kind


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", quick(3, ["auto", "stream", "hunt", "mibc", "levels"]))
def test_a_model_of_any_kind(kind, tmp_path, serve, monkeypatch):
    monkeypatch.setattr("rareclass.fit.training.baselines", lambda *rows: [])
    path = learned(kind, tmp_path)
    client = serve(LiveModel(path))
    told = client.get("/model").json()
    rows = KINDS[kind][0].select(column["name"] for column in told["columns"])[:20]
    found = client.post("/score", json=rows.to_dicts())
    assert found.status_code == 200, found.text
    scored = pl.DataFrame(found.json()["rows"])
    model = load(path)
    np.testing.assert_allclose(scored["score"], model.score_samples(rows), rtol=1e-6, atol=1e-9)
    assert scored["decision"].to_list() == model.predict(rows).tolist()
    assert client.post("/score", json=[told["example"]]).status_code == 200
    wrong = client.post("/score", json=[told["example"], {**told["example"], "amount": "a lot"}])
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["row"] == 2
    reasons = client.post("/score?reasons=1", json=[told["example"]])
    if kind in ("levels", "hunt"):
        assert "gives no reasons" in reasons.json()["errors"][0]["message"]
    else:
        assert reasons.status_code == 200
    for page in ("/openapi.json", "/metrics"):
        assert client.get(page).status_code == 200
    text = client.get("/metrics").text
    assert "rareclass_input_window_rows 2" in text
    assert ('rareclass_input_stability_index{column="amount"}' in text) == (kind != "hunt")


def test_rows_without_named_columns_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("rareclass.fit.training.baselines", lambda *rows: [])
    lines = [f"{k % 10 == 3:d} 1:{k % 7} 2:{k % 10 == 3:d}.{k % 3}" for k in range(200)]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    words = ("--method", "rankrc", "--lam", 1, "-o", tmp_path / "m.rareclass")
    run("fit", tmp_path / "rows.svm", *words)
    with pytest.raises(InputError, match="they have no named columns"):
        open_served(tmp_path / "m.rareclass")
