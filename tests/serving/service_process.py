"""The service as a process of its own."""

import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from itertools import dropwhile
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen


class ServiceProcess:
    """A service that was started by the command line, on any free port.

    Its log goes to a file, which never fills up as a pipe does.
    """

    def __init__(self, model, *words):
        command = [sys.executable, "-m", "rareclass.cli.main", "serve", str(model), "--port", "0"]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [*command, *words], stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        assert found, self._lines()
        self.url, self.port = found[0], int(found[1])
        self.wait_for(lambda: self.get("/readyz")["ready"])

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.process.kill()
        self.process.communicate()
        self._log.close()

    def get(self, path):
        with urlopen(self.url + path, timeout=20) as answer:
            return json.load(answer)

    def score(self, rows, query=""):
        headers = {"Content-Type": "application/json"}
        request = Request(self.url + "/score" + query, json.dumps(rows).encode(), headers)
        with urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def wait_for(self, is_so, seconds=20.0):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if is_so():
                    return
            except URLError:
                pass
            time.sleep(0.05)
        raise AssertionError("it took too long")

    def memory(self):
        """Bytes of memory that the process has now; Linux only."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * 4096

    def stop(self):
        """Stop the service by SIGTERM, and return its log; it must end without an error."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return self.log()

    def log(self):
        """Lines of the log so far; one within it that is no JSON stands as an error.

        Lines before it are for the person who starts the service.
        """
        return [
            json.loads(line) if line.startswith("{") else {"level": "error", "event": line}
            for line in dropwhile(lambda line: not line.startswith("{"), self._lines())
        ]

    def _lines(self):
        self._log.seek(0)
        return self._log.read().decode().splitlines()
