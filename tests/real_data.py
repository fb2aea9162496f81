"""Where the real data sets are, or the reason why a test is skipped."""

import os
from pathlib import Path

import pytest

FOLDER = Path(
    os.environ.get("RARECLASS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


def real_file(name):
    """Path of a real data file; the test is reported as skipped when it is not there."""
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"{name} is not in {FOLDER}; set RARECLASS_DATA to the folder that has it")
    return path
