"""Progress on a terminal, silence everywhere else."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

Advance = Callable[..., None]
# True where `hush` has switched "auto" off.
_hushed = False


def _silent(step: float = 1, note: str = "") -> None:
    """Report nothing."""


@contextmanager
def track(
    description: str, total: float | None = None, enabled: bool | str = "auto"
) -> Iterator[Advance]:
    """Show a progress bar on standard error while long work runs; yields ``advance(step, note)``.

    Without a total a spinner is shown; "auto" shows something when standard error is a terminal and
    `rich` is installed.

    >>> with track("Scoring", total=2, enabled=False) as advance:
    ...     advance()
    """
    if not is_shown(enabled):
        yield _silent
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    # The name of a file may hold brackets, which are no markup.
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
    if total is not None:
        columns += [BarColumn(), MofNCompleteColumn()]
    columns += [TimeElapsedColumn(), TextColumn("{task.fields[note]}", style="dim", markup=False)]
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=total, note="")

        def advance(step: float = 1, note: str = "") -> None:
            progress.update(task, advance=step, note=note)

        yield advance


def hush(is_hushed: bool) -> None:
    """Switch "auto" off in this process, as the command line's ``--quiet`` does, or on again."""
    global _hushed
    _hushed = is_hushed


def is_shown(enabled: bool | str) -> bool:
    """True where `track` would draw something."""
    if enabled == "auto":
        return not _hushed and sys.stderr.isatty() and find_spec("rich") is not None
    return bool(enabled) and find_spec("rich") is not None
