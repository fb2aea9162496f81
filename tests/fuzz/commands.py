"""The command line run in this process: exit code 0, 1 or 2, and never a traceback."""

from typer.testing import CliRunner

from rareclass.cli.command import app
from rareclass.errors import InputError

_RUNNER = CliRunner()


class StrangeExitError(Exception):
    """An exit code that nobody was told of."""


def command(*words):
    """What a command prints; `InputError` with what it says where it refuses."""
    result = _RUNNER.invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if "Traceback (most recent" in result.output:
        raise StrangeExitError(result.output)
    if result.exit_code == 2:
        raise InputError(result.stderr)
    if result.exit_code not in (0, 1):
        raise StrangeExitError(f"exit code {result.exit_code}: {result.output}")
    return result.output
