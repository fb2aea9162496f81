"""The entry of the command line: nothing is imported before Ctrl-C is taken care of."""

import _thread
import gc
import sys
import threading
from typing import Any

# What `pip install rareclass` leaves out and the extra `cli` has.
_EXTRA = {"matplotlib", "pandas", "rich", "typer"}
# New objects before cycles of them are looked for: with the interpreter's 700 that takes a tenth of
# the time of imports, which make hundreds of thousands and leave no cycles behind.
_NEW_OBJECTS = 10_000
# Long enough for a callback to be over, too short to be noticed.
_ONCE_MORE_AFTER = 0.05
# Set where a Ctrl-C fell into a callback.
_was_interrupted = threading.Event()


def main() -> None:
    """Run the command line."""
    gc.set_threshold(_NEW_OBJECTS)
    try:
        sys.unraisablehook = _interrupt_once_more
        from rareclass.cli.app import app_for
        from rareclass.errors import system_faults

        with system_faults():  # commands have their own: this is for help and version
            app_for(sys.argv[1:])()
    except ModuleNotFoundError as error:
        absent = (error.name or "").partition(".")[0]
        if absent not in _EXTRA:
            raise
        sys.stderr.write(
            f"Error: The command line needs {absent}, which is not installed: "
            'pip install "rareclass[cli]"\n'
        )
        sys.exit(2)
    except KeyboardInterrupt:
        _stop()
    except Exception as error:
        # What is missed by whoever waited for the callback, as numba for what it was to compile.
        if _was_interrupted.is_set():
            _stop()
        from rareclass.errors import InputError

        if not isinstance(error, InputError):
            raise
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(2)
    finally:
        gc.freeze()  # what the process takes with it needs no search for cycles


def _stop() -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # one that comes once more finds nothing to stop
    sys.stderr.write("Error: Stopped; nothing was left half-written.\n")
    sys.exit(130)


def _interrupt_once_more(unraisable: Any) -> None:
    """A Ctrl-C that falls into a callback, such as numba's while it loads, would be lost there."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    _was_interrupted.set()
    again = threading.Timer(_ONCE_MORE_AFTER, _thread.interrupt_main)
    again.daemon = True
    again.start()


if __name__ == "__main__":
    main()
