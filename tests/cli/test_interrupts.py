"""Ctrl-C, SIGTERM, SIGHUP: an exit code of their own, one message, nothing left behind."""

import signal
import subprocess
import sys
import time

import pytest

from command_line import in_new_process
from made_tables import purchases

pytestmark = pytest.mark.sampled(0)
SIGNALS = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@pytest.mark.parametrize("name", SIGNALS)
def test_interrupt_of_the_real_process(tmp_path, name):
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
        process.send_signal(getattr(signal, name))
        _, error = process.communicate(timeout=60)
    assert process.returncode == 128 + getattr(signal, name)
    assert "Traceback" not in error
    assert error.strip().endswith("Stopped; nothing was left half-written.")
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


ENDED = """
import ctypes, signal, sys, time
import rareclass.cli.command
from rareclass.cli.main import main
number = SIGNAL
end = lambda *given, **named: signal.raise_signal(number)
callback = ctypes.CFUNCTYPE(None)(end)  # from where no exception comes back
class Finder:
    find_spec = lambda self, name, *more: end() if name == "rareclass.cli.model_file" else None
PLACE
main()
"""
PLACES = {
    "while a package is imported": "sys.meta_path.insert(0, Finder())",
    "while options are read": "rareclass.cli.command.EachOptionOnce.parse_args = end",
    "in a command": "rareclass.cli.command._made = end",
    "in a callback": "rareclass.cli.command.app_for = lambda words: lambda: "
    "[callback(), *(time.sleep(0.1) for _ in range(300))]",
    "in a callback whose caller fails": "rareclass.cli.command.app_for = lambda words: lambda: "
    "callback() or [][0]",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("place", PLACES)
def test_a_signal_ends_a_command_with_its_code_wherever_it_falls(name, place):
    code = ENDED.replace("PLACE", PLACES[place]).replace("SIGNAL", f"signal.{name}")
    found = in_new_process(code, "show", __file__)
    assert (found.returncode, found.stdout) == (128 + getattr(signal, name), "")
    assert found.stderr == "Error: Stopped; nothing was left half-written.\n"


def test_a_signal_that_is_ignored_ends_nothing():
    code = ENDED.replace("PLACE", "rareclass.cli.command.app_for = lambda words: end")
    for name in ("SIGINT", "SIGHUP"):  # as by & in a script, and by nohup
        ignored = f"signal.{name}; signal.signal(number, signal.SIG_IGN)"
        found = in_new_process(code.replace("SIGNAL", ignored))
        assert (found.returncode, found.stderr) == (0, "")
