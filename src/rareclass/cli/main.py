"""The entry of the command line: nothing is imported before Ctrl-C is taken care of."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from rareclass.cli.app import app

        app()
    except KeyboardInterrupt:
        sys.stderr.write("Error: Stopped; nothing was left half-written.\n")
        sys.exit(130)
