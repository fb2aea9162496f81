"""How much a request may ask for, who may ask, and that nothing is left behind."""

import gc
import json
import threading
import time

import pytest

from rareclass.errors import InputError
from rareclass.serving.live_model import LiveModel
from rareclass.serving.middleware import find_token
from rareclass.serving.requests import RefusedError
from rareclass.serving.service import PATHS
from serving.conftest import ROW

TOKEN = b"a-token-of-many-letters"


def test_a_body_that_is_too_large_is_refused_chunked_or_not(serve):
    client = serve(max_body=1000)
    pieces = iter([b"[" + b" " * 600, b" " * 600, b"]"])
    for content in (b" " * 1001, pieces):
        answer = client.post("/score", content=content)
        assert answer.status_code == 413
        assert "larger than" in answer.json()["errors"][0]["message"]
    body = json.dumps([ROW]).encode()
    assert client.post("/score", content=body.ljust(1000)).status_code == 200
    assert client.post("/score", content=iter([body[:9], body[9:]])).status_code == 200


def test_a_body_type_that_is_not_read_is_refused(client):
    for headers in ({"content-type": "text/csv"}, {"content-encoding": "gzip"}):
        answer = client.post("/score", content=b"[]", headers=headers)
        assert answer.status_code == 415
        assert answer.json()["errors"][0]["remedy"]
    for kind in ("application/json; charset=utf-8", "Application/JSON"):
        headers = {"content-type": kind}
        assert client.post("/score", content=json.dumps([ROW]), headers=headers).is_success


class Slow:
    def __init__(self, served):
        self._served = served
        self.asked, self.may_answer = threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self._served, name)

    def answer(self, rows):
        self.asked.set()
        self.may_answer.wait(60)
        return self._served.answer(rows)


@pytest.fixture
def slow(fitted, model):
    return LiveModel(fitted, lambda path: Slow(model.now))


def test_more_requests_than_places_are_told_to_come_back(serve, slow):
    client = serve(slow, max_requests=1)
    found = []
    first = threading.Thread(target=lambda: found.append(client.post("/score", json=[ROW])))
    first.start()
    assert slow.now.asked.wait(60)
    refused = client.post("/score", json=[ROW])
    probes = [client.get(path) for path in ("/healthz", "/readyz", "/metrics")]
    slow.now.may_answer.set()
    first.join(60)
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "1"
    assert [probe.status_code for probe in probes] == [200] * 3
    assert "rareclass_requests_in_flight 2.0" in probes[-1].text  # the first one and this
    assert found[0].status_code == 200
    assert client.post("/score", json=[ROW]).status_code == 200


def test_an_answer_that_takes_too_long_is_given_up(serve, slow):
    client = serve(slow, timeout=0.05)
    answer = client.post("/score", json=[ROW])
    assert answer.status_code == 504
    assert "within 0.05 s" in answer.json()["errors"][0]["message"]
    slow.now.may_answer.set()


def test_a_failure_is_json_without_a_trace(serve, model, fitted):
    class Broken(Slow):
        def answer(self, rows):
            raise RuntimeError("secret 74.5")

    broken = LiveModel(fitted, lambda path: Broken(model.now))
    client = serve(broken)
    answer = client.post("/score", json=[ROW])
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert set(answer.json()["errors"][0]) == {"row", "column", "message", "remedy"}
    assert 'rareclass_errors_total{kind="failed"} 1.0' in client.get("/metrics").text


def test_unknown_paths_and_methods_are_told_as_the_rest(client):
    answer = client.get("/score/")
    assert answer.status_code == 404
    assert "POST /score" in answer.json()["errors"][0]["remedy"]
    for path, right in PATHS.items():
        for wrong in {"GET", "POST", "PUT", "PATCH", "DELETE"} - {right}:
            answer = client.request(wrong, path)
            assert answer.status_code == 405
            assert right in answer.headers["allow"].split(", ")
            assert f"{right} {path}" in answer.json()["errors"][0]["remedy"]


def test_without_the_token_nobody_gets_in(serve):
    client = serve(token=TOKEN)
    right = {"authorization": f"Bearer {TOKEN.decode()}"}
    whole = TOKEN.decode()
    wrong = ("Bearer", f"Bearer {whole[:-1]}", f"Bearer {whole}x", whole, f"Basic {whole}")
    for headers in ({}, *({"authorization": words} for words in wrong)):
        for path in ("/score", "/model", "/metrics", "/openapi.json", "/nothing"):
            answer = client.request("POST" if path == "/score" else "GET", path, headers=headers)
            assert answer.status_code == 401, (path, headers)
            assert answer.headers["www-authenticate"].startswith("Bearer")
    assert client.post("/score", json=[ROW], headers=right).is_success
    for path, headers in (("/model", right), ("/healthz", {}), ("/readyz", {})):
        assert client.get(path, headers=headers).is_success
    told = client.get("/openapi.json", headers=right).json()
    assert told["security"] == [{"token": []}]


def test_tokens_are_found_and_short_ones_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("RARECLASS_TOKEN", raising=False)
    assert find_token(None) is None
    monkeypatch.setenv("RARECLASS_TOKEN", f" {TOKEN.decode()}\n")
    assert find_token(None) == TOKEN
    file = tmp_path / "token"
    file.write_bytes(b"another-token-as-long\n")
    assert find_token(file) == b"another-token-as-long"
    for bad in (b"", b"short", b"two words of some length"):
        file.write_bytes(bad)
        with pytest.raises(InputError, match="holds no token"):
            find_token(file)
    monkeypatch.setenv("RARECLASS_TOKEN", "")
    with pytest.raises(InputError, match="RARECLASS_TOKEN holds no token"):
        find_token(None)
    with pytest.raises(InputError, match="cannot be read"):
        find_token(tmp_path / "absent")


@pytest.mark.sampled(0)
def test_a_refused_body_is_gone_at_once(serve):
    """Rows that are refused wait for no collector: their frames would stay in circles for long."""
    client = serve(max_rows=2)
    client.post("/score", json=[{}] * 3)  # what is imported late is there
    gc.collect()
    before = _refusals()  # what another test may hold still
    gc.disable()
    try:
        assert client.post("/score", json=[{}] * 3).status_code == 413
        # The answer may be here before the thread that gave it has let go; a circle never does.
        until = time.monotonic() + 5.0
        while (held := len(_refusals()) - len(before)) and time.monotonic() < until:
            time.sleep(0.01)
    finally:
        gc.enable()
    assert not held


def _refusals():  # a proxy of an object that is gone cannot be asked for its class
    return [each for each in gc.get_objects() if issubclass(type(each), RefusedError)]
