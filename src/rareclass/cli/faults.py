"""Faults become one clear message and an exit code, never a traceback."""

import functools
from collections.abc import Callable
from typing import ParamSpec

import typer

from rareclass.cli.screen import print_fault
from rareclass.errors import InputError

BAD_INPUT = 2
STOPPED = 130

Parameters = ParamSpec("Parameters")


def exit_codes_for_faults(verb: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Wrap a verb: bad input exits with 2, Ctrl-C with 130, each with one message on stderr."""

    @functools.wraps(verb)
    def wrapped(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            verb(*args, **kwargs)
        except InputError as error:
            print_fault(error.message, error.remedy)
            raise typer.Exit(BAD_INPUT) from None
        except MemoryError:
            print_fault("The machine ran out of memory.", "Use fewer rows or columns (--drop).")
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            print_fault("Stopped; nothing was left half-written.", "")
            raise typer.Exit(STOPPED) from None

    return wrapped
