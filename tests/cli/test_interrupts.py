"""Ctrl-C: exit code 130, one message, nothing left behind, whenever it comes."""

import signal
import subprocess
import sys
import time

import pytest

from command_line import in_new_process
from made_tables import purchases

pytestmark = pytest.mark.sampled(0)


def test_interrupt_of_the_real_process(tmp_path):
    path = tmp_path / "t.csv"
    purchases(60_000).write_csv(path)
    command = [sys.executable, "-c", "from rareclass.cli.main import main; main()"]
    command += ["fit", str(path), "--target", "fraud", "--out", str(tmp_path / "m.rareclass")]
    command += ["--method", "rankrc"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()  # the file has been read: training begins
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert error.strip().endswith("Stopped; nothing was left half-written.")
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


INTERRUPTED_IN_A_CALLBACK = """
import ctypes, time
import rareclass.cli.app
from rareclass.cli.main import main

def interrupted():
    raise KeyboardInterrupt

def app():
    ctypes.CFUNCTYPE(None)(interrupted)()  # from here no exception comes back
    HERE
    for _ in range(300):
        time.sleep(0.1)

rareclass.cli.app.app_for = lambda words: app
main()
"""


@pytest.mark.parametrize("after", ["pass", "raise RuntimeError('nothing was compiled')"])
def test_interrupt_in_a_callback_is_not_lost(after):
    found = in_new_process(INTERRUPTED_IN_A_CALLBACK.replace("HERE", after))
    assert (found.returncode, found.stdout) == (130, "")
    assert found.stderr == "Error: Stopped; nothing was left half-written.\n"


def test_interrupt_while_the_command_starts():
    code = (
        "import sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from rareclass.cli.main import main; main()\n"
    )
    done = in_new_process(code)
    assert done.returncode == 130
    assert done.stderr == "Error: Stopped; nothing was left half-written.\n"
