"""Warnings of the library as notes for the user of the command line."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def warnings_as(notes: list[str]) -> Iterator[None]:
    """Collect warnings as notes, each once, so that none is printed raw.

    Parameters
    ----------
    notes : list of str
        What the user is told; the texts of the warnings are added to it.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        text = str(warning.message)
        if text not in notes:
            notes.append(text)
