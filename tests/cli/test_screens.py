"""Standard output and error that are closed, full or poor in letters: the work is done."""

import json
import os
import subprocess
import sys

import polars as pl
import pytest

from command_line import RUN_EACH
from made_tables import purchases

QUICKLY = ["-t", "Betrug é", "--members", "logistic regression", "--folds", "2", "--no-baseline"]
COMMANDS = [
    ["fit", "ł.csv", *QUICKLY, "-o", "m.rareclass", "--report", "m.html"],
    ["fit", "ł.csv", *QUICKLY, "-o", "m.rareclass"],  # there already: refused
    ["score", "m.rareclass", "ł.csv", "-o", "s.csv"],
    ["evaluate", "m.rareclass", "ł.csv"],
    ["monitor", "m.rareclass", "ł.csv"],
    ["show", "m.rareclass"],
    ["show", "m.rareclass", "--json", "-"],
    ["threshold", "m.rareclass", "--alerts", "9/100", "-o", "t.rareclass"],
    ["report", "m.rareclass", "-o", "r.html"],
    ["review", "m.rareclass", "ł.csv", "--journal", "j", "--list", "w.csv"],
    ["stream", "ł.csv", "-t", "Betrug é", "--checkpoint", "c"],
    ["audit", "ł.csv", *QUICKLY[:4], "--repeats", "1", "-o", "a.csv"],
]
LEFT = {"m.rareclass", "m.html", "s.csv", "t.rareclass", "r.html", "w.csv", "c", "a.csv"}
# Drawing would take most of the time.
RUN = f"""
from pathlib import Path
from rareclass.report import drawing
drawing._written = lambda figure: '<svg viewBox="0 0 1 1"></svg>'
{RUN_EACH}
Path("codes.json").write_text(json.dumps(codes))
"""
# What a shell does with the two streams, and the environment.
STATES = {
    "output closed": (">&-", {}),
    "error closed": ("2>&-", {}),
    "both closed": (">&- 2>&-", {}),
    "nobody reads on": ("2>&1 | head -1", {}),
    "unbuffered, no room": (">/dev/full", {"PYTHONUNBUFFERED": "1"}),
    "few letters": ("", {"PYTHONIOENCODING": "ascii"}),
    "letters of Cyrillic": ("", {"PYTHONIOENCODING": "cp1251:strict"}),
    "no width": ("", {"COLUMNS": "0"}),
    "no number": ("", {"COLUMNS": "wide"}),
    "no room": (">/dev/full 2>&1", {}),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("state", STATES)
def test_work_is_done_whatever_happens_to_the_screen(tmp_path, state):
    country, fraud = pl.col("country") + "ł", pl.when(pl.int_range(pl.len()) > 19).then("fraud")
    table = purchases(120).with_columns(country=country, fraud=fraud).rename({"fraud": "Betrug é"})
    table.write_csv(tmp_path / "ł.csv")
    streams, environment = STATES[state]
    command = ["bash", "-c", f'"$0" "$@" {streams}', sys.executable, "-c", RUN]
    done = subprocess.run(
        [*command, json.dumps(COMMANDS)], cwd=tmp_path, env=os.environ | environment,
        capture_output=True, timeout=300,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    assert done.returncode == 0
    codes = json.loads((tmp_path / "codes.json").read_text())
    lost = "no room" in state  # the work is done, and its report is not
    assert codes == [2 if lost or k == 1 else 0 for k in range(len(COMMANDS))], done.stderr[-2000:]
    assert {path.name for path in tmp_path.iterdir()} >= LEFT
