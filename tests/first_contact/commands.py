"""Commands as tests run them."""

import json
from typing import Any

from typer.testing import CliRunner

from rareclass.cli.app import app


def run(*words: object, code: int = 0) -> str:
    """Return what a command prints on one line: of standard error where it fails."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return " ".join((done.stdout if code == 0 else done.stderr).split())


def told(*words: object) -> dict[str, Any]:
    """Return the numbers that a command gives as JSON."""
    done = CliRunner().invoke(app, [*map(str, words), "--json", "-"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found
