"""The entry of the command line: nothing is imported before Ctrl-C is taken care of."""

import _thread
import sys
import threading
from typing import Any

# Long enough for a callback to be over, too short to be noticed.
_ONCE_MORE_AFTER = 0.05


def main() -> None:
    """Run the command line."""
    try:
        sys.unraisablehook = _interrupt_once_more
        from rareclass.cli.app import app

        app()
    except KeyboardInterrupt:
        sys.stderr.write("Error: Stopped; nothing was left half-written.\n")
        sys.exit(130)


def _interrupt_once_more(unraisable: Any) -> None:
    """A Ctrl-C that falls into a callback, such as numba's while it loads, would be lost there."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    again = threading.Timer(_ONCE_MORE_AFTER, _thread.interrupt_main)
    again.daemon = True
    again.start()
