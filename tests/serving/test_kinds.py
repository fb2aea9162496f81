"""Whatever `rareclass fit` and its neighbours write is served, with its own example row."""

import numpy as np
import polars as pl
import pytest

from command_line import QUICK, run
from draws import quick
from made_tables import purchases
from rareclass.errors import InputError
from rareclass.opening import load
from rareclass.serving.live_model import LiveModel, open_served
from serving.conftest import fit

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
@pytest.mark.parametrize("kind", quick(2, ["auto", "stream", "mibc", "levels", "hunt"]))
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
