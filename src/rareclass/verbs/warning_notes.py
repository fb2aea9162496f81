"""Warnings of the library as notes for the user of the command line."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rareclass.findings import Finding, finding_of


@contextmanager
def warnings_as(
    notes: list[str], say: Callable[[Finding], str | None] | None = None
) -> Iterator[None]:
    """Collect warnings as notes, each once, so that none is printed raw.

    `say` puts the findings behind them in words of its own: "" leaves one out, and None the text
    of the warning as it is.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        finding = finding_of(warning.message)
        text = None if say is None or finding is None else say(finding)
        text = str(warning.message) if text is None else text
        if text and text not in notes:
            notes.append(text)
