"""The service as a process: it listens, takes a new model, and stops without losing a request."""

import hashlib
import http.client
import json
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from command_line import in_new_process, invoke
from faults import refusal
from rareclass.errors import ErrorKind
from rareclass.model.model_file import load_model, save_model
from serving.conftest import ROW, fit
from serving.service_process import ServiceProcess

pytestmark = pytest.mark.sampled(0)


@pytest.fixture
def service(fitted, tmp_path):
    with ServiceProcess(Path(shutil.copy(fitted, tmp_path / "m.rareclass"))) as started:
        yield started


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_it_scores_and_stops_when_all_are_answered(service):
    assert service.score([ROW])["rows"][0]["decision"] == "yes"
    found = []

    def ask():
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
    service.process.communicate(timeout=20)
    assert service.process.returncode == 0
    lines = service.log()
    scored = [line for line in lines if line.get("rows") == 100]
    answers = [each for each in found if isinstance(each, dict)]
    assert len(scored) == len(answers) > 0  # what was taken was answered, to the last byte
    assert all(len(each["rows"]) == 100 for each in answers)
    assert lines[-1]["event"] == "stopped"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_new_models_take_over_while_clients_ask(service, tmp_path):
    path, files = tmp_path / "m.rareclass", dict[str, bytes]()
    content = load_model(path)
    for decision, threshold in (("yes", -1e9), ("no", 1e9)):
        save_model(path, content.with_thresholds(threshold))
        files[decision] = path.read_bytes()
    decisions = {hashlib.sha256(each).hexdigest()[:12]: word for word, each in files.items()}
    names, found, stops = list(decisions), list[dict](), threading.Event()

    def ask():
        while not stops.is_set():
            found.append(service.score([ROW]))

    clients = [threading.Thread(target=ask) for _ in range(4)]
    for k in range(6):  # a new file is renamed into place; the next one is cut short
        (tmp_path / "new").write_bytes(files[decisions[names[k % 2]]])
        os.replace(tmp_path / "new", path)
        service.process.send_signal(signal.SIGHUP)
        service.wait_for(lambda k=k: service.get("/readyz")["model"] == names[k % 2])
        if not k:
            for client in clients:
                client.start()
        path.write_bytes(files[decisions[names[k % 2 - 1]]][: 1000 * k])
        service.process.send_signal(signal.SIGHUP)
        service.wait_for(lambda k=k: _refused(service) == k + 1)
    stops.set()
    for client in clients:
        client.join()
    assert {each["model"] for each in found} == decisions.keys()
    assert all(each["rows"][0]["decision"] == decisions[each["model"]] for each in found)
    log = service.stop()
    asked = [line["status"] for line in log if line.get("path") == "/score"]
    assert asked == [200] * len(found)


def _refused(service):
    with urlopen(service.url + "/metrics", timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    name = 'rareclass_model_loads_total{outcome="refused"}'
    return next((float(line.split()[-1]) for line in lines if line.startswith(name)), 0.0)


_COMPILED = """
import sys
from pathlib import Path
import polars as pl
from rareclass.serving.live_model import open_served

def compiled():
    modules = [module for name, module in sys.modules.items() if name.endswith("_jit")]
    found = [each for module in modules for each in vars(module).values()]
    return sum(len(each.signatures) for each in found if type(each).__name__ == "CPUDispatcher")

served = open_served(Path(sys.argv[1]))
before = compiled()
for n_rows in (1, 2, 40, 700, 5_000):
    served.answer(pl.DataFrame({name: [cell] * n_rows for name, cell in served.example.items()}))
print(before, compiled())
"""


def test_what_is_compiled_is_compiled_before_the_first_request(tmp_path):
    """Compiling takes longer than a request may, on a machine that has not done it yet."""
    model = fit(tmp_path, "--members", "extra trees", "--folds", "2")
    before, after = in_new_process(_COMPILED, model, check=True).stdout.split()
    assert before == after
    assert int(before) > 0


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory as Linux tells it")
@pytest.mark.parametrize("words", [("--method", "rankrc", "--lam", "0.1"), ("--time-budget", "5")])
def test_memory_stays_flat_over_thousands_of_requests(tmp_path, words):
    """Beyond the first thousands, whose memory the allocator keeps, less than 1 KB a request."""
    bodies = [[ROW], [ROW] * 20, [{}], [{**ROW, "amount": "many"}], {"columns": 3}, [ROW] * 300]
    with ServiceProcess(fit(tmp_path, *words)) as service:
        client = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20)
        held = []
        for k in range(9_001):
            if k % 3_000 == 0:
                held.append(service.memory())
            query = "?reasons=2" if k % 10 == 0 else ""
            headers = {"Content-Type": "application/json"}
            client.request("POST", "/score" + query, json.dumps(bodies[k % 6]), headers)
            assert client.getresponse().read()
        client.close()
    assert held[-1] - held[1] < 6_000 * 1024, held


def test_what_cannot_be_served_is_said_on_one_line(fitted, tmp_path, monkeypatch):
    (tmp_path / "short").write_text("x")
    for words, kind, fact in (
        ([tmp_path / "absent.rareclass"], ErrorKind.MISSING_FILE, "absent.rareclass"),
        ([fitted, "--token-file", tmp_path / "short"], ErrorKind.SETTING, "short"),
        ([fitted, "--max-body", "many"], ErrorKind.SETTING, "--max-body"),
        ([fitted, "--host", "192.0.2.1"], ErrorKind.CONNECTION, "http://192.0.2.1:8080"),
    ):
        result = invoke("serve", *words)
        refusal(result, kind, fact)
    assert os.environ.get("RARECLASS_TOKEN") is None
    assert all(word in result.stdout for word in ("192.0.2.1", "RARECLASS_TOKEN", "--token-file"))
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "rareclass.serving.service")
    refusal(invoke("serve", fitted), ErrorKind.MISSING_PACKAGE, 'pip install "rareclass[serve]"')
