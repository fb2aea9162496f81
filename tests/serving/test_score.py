"""Rows in, scores out, as of `rareclass score`, in every form of JSON; any body is answered."""

import asyncio
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from command_line import json_of, says
from draws import draws
from made_tables import purchases
from rareclass.errors import ErrorKind
from rareclass.opening import load
from rareclass.review import ReviewJournal, next_rows, open_journal, read_review_table
from rareclass.serving import Limits
from rareclass.serving.requests import Lanes, RefusedError
from rareclass.serving.review_page import review_app
from rareclass.serving.service import Settings, service_of
from serving.conftest import ROW

NEW = purchases(60, seed=1).drop("order", "fraud")


def faults(answer):
    assert answer.headers["content-type"] == "application/json"
    return answer.json()["errors"]


def test_the_scores_of_the_command_line(client, model):
    loaded = load(model.path)
    answer = client.post("/score", json=NEW.to_dicts())
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["model"] == model.now.name
    found = pl.DataFrame(told["rows"])
    np.testing.assert_allclose(found["score"], loaded.score_samples(NEW), rtol=1e-12)
    np.testing.assert_allclose(found["probability"], loaded.predict_proba(NEW)[:, 1], rtol=1e-12)
    assert found["decision"].to_list() == loaded.predict(NEW).tolist()
    assert found["called_rare"].to_list() == [name == "yes" for name in found["decision"]]
    assert found["percentile"].is_between(0, 100).all()
    assert set(found["decision"]) == {"yes", "no"}


AMOUNT = purchases()["amount"]
LIKE = {"amount": [None, AMOUNT.min(), AMOUNT.max()], "country": [None, "DE"], "items": [1, 8]}
UNLIKE = {"amount": [-1e9, AMOUNT.max() + 0.01], "country": ["never"], "items": [0, 99]}
CHANGES = [(name, cell) for of in (LIKE, UNLIKE) for name in of for cell in of[name]]


def test_what_training_did_not_have_is_named_alike_in_python_files_and_answers(
    client, model, tmp_path
):
    loaded, new = load(model.path), tmp_path / "new.parquet"
    changed = st.lists(st.sampled_from(CHANGES), max_size=4)

    @draws(20)
    @given(st.lists(changed, min_size=1, max_size=5), st.sampled_from([[], ["--top", 1]]))
    def named(changes, words):
        rows = [{**ROW, **dict(each)} for each in changes]
        names = [[n for n in ROW if n in UNLIKE and row[n] in UNLIKE[n]] for row in rows]
        table = pl.DataFrame(rows, NEW.schema)
        assert list(map(sorted, loaded.unlike_training(table))) == list(map(sorted, names))
        answer = client.post("/score", json=rows).json()["rows"]
        assert [sorted(each["unlike_training"]) for each in answer] == list(map(sorted, names))
        table.write_parquet(new)
        for out in (tmp_path / "out.csv", tmp_path / "out.parquet"):
            told = json_of("score", model.path, new, "-o", out, "--unlike", "--overwrite", *words)
            written = (pl.read_parquet if out.suffix == ".parquet" else pl.read_csv)(out)
            cells = [each or "" for each in written["unlike_training"].to_list()]
            lists = [each.split(", ") if isinstance(each, str) else each for each in cells]
            assert [sorted({*each} - {""}) for each in lists] == list(map(sorted, names))
        in_json = {each["row"]: sorted(each["columns"]) for each in told["rows_unlike_training"]}
        assert in_json == {row: sorted(each) for row, each in enumerate(names, 1) if each}
        assert told["n_rows_unlike_training"] == len(in_json)

    named()


def test_every_form_of_the_same_rows(client):
    rows = client.post("/score", json=NEW.to_dicts()).json()
    others = [
        {"json": {"rows": NEW.to_dicts()}},
        {"json": {"columns": NEW.to_dict(as_series=False)}},
        {"json": {"columns": {**NEW.to_dict(as_series=False), "order": "left out"}}},
        {"json": [{"order": "left out", **row} for row in NEW.to_dicts()]},
    ]
    for body in others:
        assert client.post("/score", **body).json() == rows


def test_reasons_are_those_of_the_command_line(client):
    (row,) = client.post("/score?reasons=2", json=[ROW]).json()["rows"]
    assert row["reasons"][0]["column"] in ("amount", "country")
    assert all(reason["effect"] > 0 for reason in row["reasons"])
    assert "reasons" not in client.post("/score", json=[ROW]).json()["rows"][0]
    for wrong in ("x", "-1", "21", "1.5", "²"):
        answer = client.post(f"/score?reasons={wrong}", json=[ROW])
        assert answer.status_code == 422
        assert "whole number from 0 to 20" in faults(answer)[0]["remedy"]


def test_empty_cells_are_cells(client):
    (answer,) = client.post("/score", json=[dict.fromkeys(ROW)]).json()["rows"]
    assert np.isfinite(answer["score"])
    # What training wrote as text may come as text.
    written = {"amount": "74.5", "items": " 3 ", "country": "XX", "member": "true"}
    both = client.post("/score", json=[written, ROW]).json()["rows"]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("change", "row", "column", "told"),
    [
        ({"amount": "a lot"}, 2, "amount", "'a lot'"),
        ({"amount": 1e300}, 2, "amount", "too large"),
        ({"amount": 10**400}, 2, "amount", "too large"),
        ({"amount": True}, 2, "amount", "'true'"),
        ({"country": ["DE"]}, 2, "country", "a list"),
        ({"items": {}}, 2, "items", "an object"),
    ],
)
def test_a_cell_that_does_not_fit_is_named(client, change, row, column, told):
    for form in ([ROW, {**ROW, **change}], None):
        if form is None:
            form = {"columns": {name: [cell, (ROW | change)[name]] for name, cell in ROW.items()}}
        answer = client.post("/score", json=form)
        assert answer.status_code == 422
        (fault,) = faults(answer)
        assert (fault["row"], fault["column"]) == (row, column)
        assert told in fault["message"]
        assert fault["remedy"]


def test_each_column_that_is_wrong_or_absent_is_named(client):
    wrong = {**ROW, "amount": "?!", "items": "many"}
    found = faults(client.post("/score", json=[ROW, wrong, wrong]))
    assert [(fault["row"], fault["column"]) for fault in found] == [(2, "amount"), (2, "items")]
    answer = client.post("/score", json=[ROW, {"amuont": 1, "items": 1, "country": "DE"}, 7])
    assert answer.status_code == 422
    found = faults(answer)
    assert [(each["row"], each["column"]) for each in found] == [
        (2, "amount"), (2, "member"), (3, None),
    ]  # fmt: skip
    assert found[0]["remedy"] == "Is it 'amuont'?"
    assert len(faults(client.post("/score", json=[{}] * 9))) == 20
    answer = client.post("/score", json={"columns": {"amount": [1], "items": [2, 3]}})
    assert {fault["column"] for fault in faults(answer)} == {"country", "member"}
    uneven = {name: [cell] for name, cell in ROW.items()} | {"items": [2, 3]}
    answer = client.post("/score", json={"columns": uneven})
    assert answer.status_code == 422
    assert "has 2 cells, and 'amount' 1" in faults(answer)[0]["message"]
    answer = client.post("/score", json={"columns": {**uneven, "items": 2}})
    assert [fault["column"] for fault in faults(answer)] == ["items"]


NO_JSON = [b"", b"{", b"\xff\xfe", b"NaN", b'[{"amount": NaN}]', b'["\\ud800"]', b"[1,]"]
NO_TABLE = [
    b"null", b"3", b'"rows"', b"{}", b"[]", b'{"rows": {}}', b'{"columns": []}', b'{"columns": {}}',
    b'{"columns": {"amount": 3}}', b'{"rows": [], "columns": {}}', b'{"amount": 1}',
]  # fmt: skip


def test_what_is_no_table_in_json_is_told(client):
    for body in [*NO_JSON, b"[" * 100_000, *NO_TABLE]:
        answer = client.post("/score", content=body)
        assert answer.status_code == (422 if body in NO_TABLE else 400), body[:20]
        assert body in NO_TABLE or "not JSON" in faults(answer)[0]["message"]
        assert faults(answer)
    for body in ("[{%s}]", '{"rows": [{}, {%s}]}', '{"columns": {%s}}', "{%s}"):
        answer = client.post("/score", content=body % '"a": 1, "amount": 74.5, "amount": 1')
        assert answer.status_code == 422
        assert [fault["column"] for fault in faults(answer)] == ["amount"]  # which is there twice


def test_requests_that_wait_are_scored_together_and_each_told_of_itself(model):
    together = []
    lanes = Lanes(
        model, Limits(100, 100), 1, lambda served, rows, answers: together.append(rows.height)
    )
    singles = [[row] for row in NEW.to_dicts()]
    bad = [{**ROW, "amount": "a lot"}]

    async def ask(bodies: list) -> list:
        asked = (lanes.answer(json.dumps(body).encode()) for body in bodies)
        return await asyncio.gather(*asked, return_exceptions=True)

    (whole,) = asyncio.run(ask([NEW.to_dicts()]))
    expected = [row["score"] for row in json.loads(whole.body)["rows"]]
    together.clear()
    for others in ([], [bad, [{}]]):
        *rows, wrong, empty = [*asyncio.run(ask(singles + others)), *[None] * (2 - len(others))]
        scores = [json.loads(row.body)["rows"][0]["score"] for row in rows]
        np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-12)
        if not others:
            assert max(together) > 1
    lanes.close()
    assert isinstance(wrong, RefusedError)
    assert wrong.faults[0].row == 1
    assert isinstance(empty, RefusedError)


def test_too_many_rows_are_refused(serve):
    client = serve(max_rows=3, explained_rows=1)
    assert client.post("/score", json=[ROW] * 3).status_code == 200
    for body in ([ROW] * 4, {"columns": {name: [cell] * 4 for name, cell in ROW.items()}}):
        answer = client.post("/score", json=body)
        assert answer.status_code == 413
        assert "3 are taken at a time" in faults(answer)[0]["message"]
    assert client.post("/score?reasons=1", json=[ROW]).status_code == 200
    assert client.post("/score?reasons=1", json=[ROW] * 2).status_code == 413


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**400), 10**400), st.floats(width=64), st.text(),
    st.lists(st.none(), max_size=2), st.sampled_from(["DE", "74.5", "NA", "?", "1e400", "true"]),
)  # fmt: skip
ROWS = st.lists(st.fixed_dictionaries({name: CELLS for name in ROW}), max_size=3)
JSON = st.recursive(CELLS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
COLUMNS = st.fixed_dictionaries({name: st.lists(CELLS, max_size=3) for name in ROW})
BODIES = st.one_of(
    st.binary(),
    st.one_of(
        ROWS, JSON, st.builds(lambda rows: {"rows": rows}, ROWS | JSON),
        st.builds(lambda columns: {"columns": columns}, COLUMNS | JSON),
    ).map(lambda body: json.dumps(body).encode()),
)  # fmt: skip


def test_any_body_is_answered(model):
    with TestClient(service_of(model, Settings(look_seconds=0.0), "0")) as client:
        named = client.get("/openapi.json").json()["paths"]["/score"]["post"]["responses"]

        @draws(40)
        @given(body=BODIES, reasons=st.sampled_from(["", "?reasons=1", "?reasons=x"]))
        def answered(body, reasons):
            answer = client.post("/score" + reasons, content=body)
            assert str(answer.status_code) in named
            assert answer.status_code < 500, answer.text
            told = answer.json()
            if answer.status_code == 200:
                assert all(0 <= row["percentile"] <= 100 for row in told["rows"])
                return
            assert told["errors"]
            for fault in told["errors"]:
                assert set(fault) == {"row", "column", "message", "remedy"}
                assert fault["row"] is None or fault["row"] >= 1
                assert fault["column"] is None or fault["column"] in ROW

        answered()


URL = "http://127.0.0.1:8080"


@pytest.fixture
def page(tmp_path):
    table = read_review_table(purchases().drop("fraud"), "fraud", "order")
    journal = open_journal(tmp_path / "j.jsonl", table, None, "yes", ["no"])

    def more():
        return next_rows(table, journal, budget=5)

    first = more()
    return journal, first, TestClient(review_app(journal, first, more), base_url=URL)


def test_the_page_asks_its_own_host_alone(page):
    _, _, client = page
    answer = client.get("/")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    says(policy, "default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'")
    assert "http" not in answer.text.replace("http-equiv", "")


def test_verdicts_go_into_the_journal_before_the_next_list(page):
    journal, first, client = page
    told = client.get("/rows").json()
    assert told["labels"] == ["yes", "no"]
    assert [row["row"] for row in told["rows"]] == first.rows["review row"].to_list()
    assert {row["verdict"] for row in told["rows"]} == {None}
    assert ["country", first.rows["country"][0]] in told["rows"][0]["cells"]
    key = told["rows"][0]["row"]
    noted = {"row": key, "label": "yes", "note": "é"}
    assert client.post("/verdict", json=noted).json() == {"verdicts": 1}
    assert ReviewJournal(journal.path).verdicts[key].note == "é"
    contrary = {"row": key, "label": "no"}
    answer = client.post("/verdict", json=contrary)
    assert (answer.status_code, answer.json()["kind"]) == (409, ErrorKind.LABELS)
    assert client.post("/verdict", json=contrary | {"corrects": True}).status_code == 200
    assert client.get("/rows").json()["rows"][0]["verdict"] == "no"
    told = client.post("/next", json={}).json()
    assert told["round"] == 2
    assert len(journal.rounds) == 2
    assert client.get("/rows").json() == told


def test_what_is_refused(page):
    journal, first, client = page
    given = {"row": first.rows["review row"][0], "label": "yes"}
    assert client.post("/verdict", data=given).status_code == 415
    assert client.post("/verdict", json=[1]).status_code == 400
    assert client.post("/verdict", json={"row": "none", "label": "yes"}).status_code == 422
    assert client.post("/verdict", json=given | {"label": "odd"}).status_code == 409
    assert client.post("/verdict", json=given, headers={"host": "evil.example"}).status_code == 400
    assert client.get("/verdict").status_code == 405
    assert not ReviewJournal(journal.path).verdicts
