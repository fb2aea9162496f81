"""What the service tells of itself: OpenAPI, measures, the log."""

import io
import json
import logging
import re

import numpy as np
import polars as pl
import pytest
from prometheus_client.parser import text_string_to_metric_families

from made_tables import purchases
from rareclass.encoding.typed_table import read_as_trained
from rareclass.serving.live_model import LiveModel
from rareclass.serving.middleware import LOGGER, start_log
from rareclass.serving.service import PATHS
from serving.conftest import ROW

NEW = purchases(200, seed=1).drop("order", "fraud")


def start_log_to(stream, with_requests=True):
    start_log(with_requests)
    for name in (LOGGER.name, "uvicorn.error"):
        logging.getLogger(name).handlers[0].setStream(stream)


@pytest.fixture
def lines():
    stream = io.StringIO()
    start_log_to(stream)
    yield stream
    for name in (LOGGER.name, "uvicorn.error"):
        logging.getLogger(name).handlers.clear()


def measures(client):
    found = {}
    for family in text_string_to_metric_families(client.get("/metrics").text):
        found |= {(one.name, *sorted(one.labels.values())): one.value for one in family.samples}
    return found


def test_the_model_is_told_with_its_columns_and_an_example_that_is_answered(client):
    told = client.get("/openapi.json").json()
    row = told["components"]["schemas"]["Row"]
    assert row["required"] == list(ROW)
    amount = row["properties"]["amount"]
    assert [kind["type"] for kind in amount["anyOf"]] == ["number", "null"]
    assert "DE" in row["properties"]["country"]["description"]
    scored = told["components"]["schemas"]["RowScore"]
    assert scored["properties"]["decision"]["enum"] == ["no", "yes"]
    assert set(told["paths"]) == set(PATHS)
    examples = told["paths"]["/score"]["post"]["requestBody"]["content"]["application/json"]
    for example in examples["examples"].values():
        assert client.post("/score", json=example["value"]).status_code == 200
    assert row["examples"] == [client.get("/model").json()["example"]]
    references = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(told)))
    assert references <= set(told["components"]["schemas"])
    told = client.get("/model").json()
    assert told["target"] == "fraud"
    assert [column["name"] for column in told["columns"]] == list(ROW)
    assert told["limits"]["max_rows"] == 10_000
    assert client.get("/healthz").json() == {"alive": True}
    assert client.get("/readyz").json() == {"ready": True, "model": told["model"]}


def test_requests_rows_errors_and_scores_are_counted(serve, fitted):
    client = serve(LiveModel(fitted))
    rows = client.post("/score", json=NEW.to_dicts()).json()["rows"]
    client.post("/score", json=[{}])
    client.get("/wp-admin?secret=74.5")
    told = measures(client)
    called = [row["decision"] for row in rows]
    for decision in ("yes", "no"):
        assert told["rareclass_rows_total", decision] == called.count(decision)
    assert told["rareclass_errors_total", "schema"] == 1
    for key in (("/score", "200"), ("/score", "422"), ("404", "other")):
        assert told["rareclass_request_seconds_count", *key] == 1
    assert told["process_resident_memory_bytes",] > 1e6
    name = client.get("/model").json()["model"]
    assert told["rareclass_model_info", *sorted((name, "fraud", "rankrc"))] == 1


def test_drift_of_the_inputs_is_told(serve, fitted):
    client = serve(LiveModel(fitted))
    assert measures(client)["rareclass_input_window_rows",] == 0
    moved = NEW.with_columns(
        amount=pl.col("amount") + 500,
        country=pl.when(pl.int_range(200) < 50).then(pl.lit("ZZ")).otherwise("country"),
        items=pl.when(pl.int_range(200) < 20).then(None).otherwise("items"),
    )
    for part in moved.iter_slices(60):
        client.post("/score", json=part.to_dicts())
    told = measures(client)
    assert told["rareclass_input_window_rows",] == 200
    assert told["rareclass_input_unlike_training", "amount"] == 1.0
    assert told["rareclass_input_unlike_training", "country"] == 0.25
    assert told["rareclass_input_missing", "items"] == 0.1
    assert told["rareclass_input_missing_in_training", "items"] == 0.0
    shares = [told["rareclass_alert_share", rows] for rows in ("requests", "held out rows")]
    assert shares[0] > shares[1]


def test_figures_are_of_the_last_full_window(serve, fitted, monkeypatch):
    monkeypatch.setattr("rareclass.serving.live_model.WINDOW_ROWS", 100)
    monkeypatch.setattr("rareclass.serving.live_model._LOOK_ROWS", 50)
    live = LiveModel(fitted).now
    drift, rows = live.drift, read_as_trained(NEW, live.columns, 1)
    far = rows.with_columns(amount=pl.col("amount") + 500)
    times = [drift.add(part, np.full(25, -9.0)) for part in rows[:100].iter_slices(25)]
    assert times == [False, True, False, False]
    n_rows, found = drift.figures()
    outside = {each.name: each.outside for each in found.compared}
    assert (n_rows, outside["amount"] < 0.1, found.alerts.found.value) == (100, True, 0.0)
    drift.add(far[100:150], np.full(50, 99.0))
    assert drift.figures()[0] == 100
    drift.add(far[150:], np.full(50, 99.0))
    n_rows, found = drift.figures()
    assert (n_rows, {each.name: each.outside for each in found.compared}["amount"]) == (100, 1.0)
    assert found.alerts.found.value == 1.0


def test_the_log_has_a_line_a_request_and_no_value(client, lines):
    client.post("/score", json=[ROW, ROW], headers={"x-request-id": "mine-1"})
    client.post("/score", json=[{**ROW, "amount": "a lot"}], headers={"x-request-id": "bad id\t"})
    client.get("/a-secret?amount=74.5")
    scored, wrong, unknown = map(json.loads, lines.getvalue().splitlines())
    assert (scored["event"], scored["status"], scored["rows"]) == ("request", 200, 2)
    assert scored["request_id"] == "mine-1"
    assert scored["milliseconds"] > 0
    assert (wrong["kind"], wrong["columns"], wrong["status"]) == ("schema", ["amount"], 422)
    assert re.fullmatch("[0-9a-f]{16}", wrong["request_id"])
    assert unknown["path"] == "other"
    for value in ("74.5", "a lot", "XX", "secret"):
        assert value not in lines.getvalue()


def test_exceptions_are_logged_by_type_and_place(lines):
    try:
        raise ValueError("a value")
    except ValueError as error:
        LOGGER.error("failed", exc_info=error)
    LOGGER.handlers[0].flush()
    (line,) = lines.getvalue().splitlines()
    assert json.loads(line)["exception"] == "ValueError"
    assert "test_description.py" in json.loads(line)["raised_at"][0]
    assert "a value" not in line
    start_log_to(lines, with_requests=False)
    LOGGER.info("request")
    LOGGER.info("started")
    assert [json.loads(each)["event"] for each in lines.getvalue().splitlines()[1:]] == ["started"]
    start_log_to(lines)
