"""The service as a process: it listens, takes a new model, and stops without losing a request."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

from faults import refusal
from rareclass.cli.app import app
from rareclass.errors import ErrorKind
from rareclass.model.model_file import load_model, save_model
from serving.conftest import ROW

# Slow as a whole: `make test-rest` runs it.
pytestmark = pytest.mark.sampled(0)


class Process:
    """A service that was started by the command line."""

    def __init__(self, model: Path) -> None:
        words = [sys.executable, "-m", "rareclass.cli.main", "serve", str(model), "--port", "0"]
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", self.process.stdout.readline())
        assert found, self.process.stderr
        self.url = found[0]
        self.wait_for(lambda: self.get("/readyz")["ready"])

    def get(self, path: str) -> dict:
        with urlopen(self.url + path, timeout=20) as answer:
            return json.load(answer)

    def score(self, rows: list, query: str = "") -> dict:
        headers = {"Content-Type": "application/json"}
        request = Request(self.url + "/score" + query, json.dumps(rows).encode(), headers)
        with urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def wait_for(self, is_so) -> None:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                if is_so():
                    return
            except URLError:
                pass
            time.sleep(0.05)
        raise AssertionError("it took too long")


@pytest.fixture
def service(fitted: Path, tmp_path: Path) -> Iterator[Process]:
    started = Process(Path(shutil.copy(fitted, tmp_path / "m.rareclass")))
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_it_scores_reloads_and_stops_when_all_are_answered(
    service: Process, tmp_path: Path
) -> None:
    before = service.score([ROW])
    assert before["rows"][0]["decision"] == "yes"
    path = tmp_path / "m.rareclass"
    save_model(path, load_model(path).with_thresholds(1e9))
    service.process.send_signal(signal.SIGHUP)
    service.wait_for(lambda: service.get("/readyz")["model"] != before["model"])
    assert service.score([ROW])["rows"][0]["decision"] == "no"
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(service.score([ROW] * 100, "?reasons=3"))
        except (HTTPError, URLError, OSError) as error:
            found.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    with urlopen(service.url + "/metrics", timeout=20):
        pass  # by now some are in
    service.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join()
    _, error = service.process.communicate(timeout=20)
    assert service.process.returncode == 0
    lines = [json.loads(line) for line in error.splitlines()]
    scored = [line for line in lines if line.get("rows") == 100]
    answers = [each for each in found if isinstance(each, dict)]
    assert len(scored) == len(answers) > 0  # what was taken was answered, to the last byte
    assert all(len(each["rows"]) == 100 for each in answers)
    assert lines[-1]["event"] == "stopped"
    assert [line["event"] for line in lines].count("model loaded") == 1


def test_what_cannot_be_served_is_said_on_one_line(
    fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "short").write_text("x")
    taken = [str(fitted), "--host", "192.0.2.1"]
    cases = [
        ([str(tmp_path / "absent.rareclass")], ErrorKind.MISSING_FILE, "absent.rareclass"),
        ([str(fitted), "--token-file", str(tmp_path / "short")], ErrorKind.SETTING, "short"),
        ([str(fitted), "--max-body", "many"], ErrorKind.SETTING, "--max-body"),
        (taken, ErrorKind.CONNECTION, "http://192.0.2.1:8080"),
    ]
    for words, kind, fact in cases:
        result = CliRunner().invoke(app, ["serve", *words])
        refusal(result, kind, fact)
    assert os.environ.get("RARECLASS_TOKEN") is None
    assert all(word in result.stdout for word in ("192.0.2.1", "RARECLASS_TOKEN", "--token-file"))
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "rareclass.serving.service")
    result = CliRunner().invoke(app, ["serve", str(fitted)])
    refusal(result, ErrorKind.MISSING_PACKAGE, 'pip install "rareclass[serve]"')
