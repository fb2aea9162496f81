"""An object store on a loopback port, and a web server that gives files whole."""

import functools
import http.server
import logging
import os
import threading

import pytest

BUCKET = "rows"
SECRET = "AKIDhush0123"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, never in parts."""

    def log_message(self, *words):
        """Say nothing."""

    def do_GET(self):
        if self.path.startswith("/private"):
            self.send_error(403)
        else:
            super().do_GET()

    def do_HEAD(self):
        if self.path.startswith("/private"):
            self.send_error(403)
        else:
            super().do_HEAD()


@pytest.fixture
def memory():
    system = pytest.importorskip("fsspec").filesystem("memory")
    for name in list(system.store):
        del system.store[name]
    return system


@pytest.fixture(scope="session")
def _store():
    moto = pytest.importorskip("moto.server", reason='no object store: pip install "moto[server]"')
    pytest.importorskip("s3fs", reason='no client: pip install "rareclass[s3]"')
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}", server
    server.stop()


@pytest.fixture
def s3(_store, monkeypatch):
    """The file system of an object store with an empty bucket, which s3:// finds too."""
    import fsspec

    monkeypatch.setenv("AWS_ENDPOINT_URL", _store[0])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    system = fsspec.filesystem("s3")
    system.invalidate_cache()
    if system.exists(BUCKET):
        for name in system.find(BUCKET):
            system.rm_file(name)
    else:
        system.mkdir(BUCKET)
    return system


@pytest.fixture
def web(tmp_path):
    folder = tmp_path / "web"
    os.mkdir(folder)
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", folder
        server.shutdown()
        thread.join()
