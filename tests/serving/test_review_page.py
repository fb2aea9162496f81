"""The local page of a review: verdicts are on the disk when answered; other sites are kept out."""

import pytest
from starlette.testclient import TestClient

from command_line import says
from made_tables import purchases
from rareclass.errors import ErrorKind
from rareclass.review import ReviewJournal, next_rows, open_journal, read_review_table
from rareclass.serving.review_page import review_app

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
