"""The entry of the command line: nothing is imported before Ctrl-C is taken care of."""

import _thread
import gc
import io
import os
import signal
import sys
import time
from typing import Any

# What `pip install rareclass` leaves out and the extra `cli` has.
_EXTRA = {"matplotlib", "pandas", "rich", "typer"}
# New objects before cycles of them are looked for: with the interpreter's 700 that takes a tenth of
# the time of imports, which make hundreds of thousands and leave no cycles behind.
_NEW_OBJECTS = 10_000
# Long enough for a callback to be over, too short to be noticed.
_ONCE_MORE_AFTER = 0.05
# Columns of a terminal below which COLUMNS is a mistake.
_LEAST_COLUMNS = 20
# Signals that end a command, and those that were to end this one. Windows has no SIGHUP.
_ENDING = [each for each in signal.Signals if each.name in ("SIGINT", "SIGTERM", "SIGHUP")]
_signals: list[int] = []


def main() -> None:
    """Run the command line."""
    gc.set_threshold(_NEW_OBJECTS)
    _not_written.clear()
    _signals.clear()
    _outlive_the_screen()
    try:
        _end_by_signals()
        from rareclass.cli.command import app_for
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
    except SystemExit as end:
        if _signals and end.code == 128 + _signals[-1]:
            _stop()
        if not end.code:
            _check_shown()
        raise
    except KeyboardInterrupt:
        _stop()
    except Exception as error:
        # What is missed by whoever waited for the callback, as numba for what it was to compile.
        if _signals:
            _stop()
        from rareclass.errors import InputError

        if not isinstance(error, InputError):
            raise
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(2)
    finally:
        gc.freeze()  # what the process takes with it needs no search for cycles


class _LastingOutput(io.FileIO):
    """Standard stream that drops what its reader does not take: the work is done all the same."""

    def write(self, content: Any) -> int:
        """Write what the reader takes; drop all for one that is gone, or whose disk is full."""
        try:
            written = super().write(content)
        except BrokenPipeError:  # `| head -1` has what it wants
            return len(content)
        except OSError as error:
            _not_written.append(error)
            return len(content)
        if written is None:  # a reader that is slow, of a stream that does not wait
            time.sleep(_ONCE_MORE_AFTER)
        return written or 0


_not_written: list[OSError] = []


def _outlive_the_screen() -> None:
    """Let no state of standard output or error end a command, nor a width that no screen has."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # closed: the next file to be opened would take its place
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout, sys.stderr = _lasting(sys.stdout, 1), _lasting(sys.stderr, 2)
    columns = os.environ.get("COLUMNS", "")
    if not (columns.isdecimal() and int(columns) >= _LEAST_COLUMNS):
        os.environ.pop("COLUMNS", None)


def _lasting(stream: Any, number: int) -> Any:
    """Return a text stream that never fails, with a question mark for a letter that it lacks."""
    if stream is None or stream.closed:
        stream = os.fdopen(number, "w", closefd=False)
    try:
        output = _LastingOutput(stream.fileno(), "w", closefd=False)
    except OSError:  # no file: a test reads it
        return stream
    if os.name == "nt" and output.isatty():  # where bytes have another encoding
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _check_shown() -> None:
    """End the process with an error where something that it printed had no room."""
    sys.stdout.flush()
    if _not_written:
        why = _not_written.pop().strerror
        sys.stderr.write(f"Error: Cannot write standard output: {why}.\n")
        sys.exit(2)


def _end_by_signals() -> None:
    """Let Ctrl-C, SIGTERM and SIGHUP end a command in good order, but not where they are ignored.

    SIGTERM and SIGHUP raise `SystemExit`: what `fit` keeps at Ctrl-C is for a person who waits.
    """
    sys.unraisablehook = _end_once_more
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, frame: object = None) -> None:
    _signals.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def _stop() -> None:
    number = _signals[-1] if _signals else signal.SIGINT
    signal.signal(number, signal.SIG_IGN)  # one that comes once more finds nothing to stop
    sys.stderr.write("Error: Stopped; nothing was left half-written.\n")
    sys.exit(128 + number)


def _end_once_more(unraisable: Any) -> None:
    """A signal that falls into a callback, such as numba's while it loads, would be lost there."""
    if not (_signals and issubclass(unraisable.exc_type, KeyboardInterrupt | SystemExit)):
        sys.__unraisablehook__(unraisable)
        return
    # Not a `Timer`: its start waits for its thread, so that the signal could fall into this hook.
    _thread.start_new_thread(_raise_again, ())


def _raise_again() -> None:
    time.sleep(_ONCE_MORE_AFTER)
    signal.raise_signal(_signals[-1])


if __name__ == "__main__":
    main()
