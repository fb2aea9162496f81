"""Where a table is: a file, a URL, the query of a database."""

from typing import Protocol


class Location(Protocol):
    """Something that has a name for short, and as text one to be found by."""

    @property
    def name(self) -> str:
        """What it is called for short."""
        ...

    def __str__(self) -> str: ...
