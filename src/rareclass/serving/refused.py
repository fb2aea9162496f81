"""Errors of the service as data: every refused request gets a list of faults."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from rareclass.errors import InputError

# Faults that a response lists at most.
MOST_FAULTS = 20


class Fault(NamedTuple):
    """Message, place and remedy; `row` counts from 1 in its request."""

    row: int | None
    column: str | None
    message: str
    remedy: str = ""

    @classmethod
    def of(cls, error: InputError) -> Self:
        """Fault behind an exception of the library."""
        return cls(error.row, error.column, error.message, error.remedy)


class RefusedError(Exception):
    """Request that is answered with an error.

    `kind` is a word for measures and log, which hold no values; `headers` go with the response.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        faults: Iterable[Fault],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(kind)
        self.status, self.kind = status, kind
        self.faults = list(faults)[:MOST_FAULTS]
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """Body of the response, as plain data."""
        return {"errors": [fault._asdict() for fault in self.faults]}


def schema_error(faults: Iterable[Fault]) -> RefusedError:
    """Error for rows that do not fit the model's columns."""
    return RefusedError(422, "schema", faults)


def refused(status: int, kind: str, message: str, remedy: str = "", **headers: str) -> RefusedError:
    """Error with one fault that concerns no row; header names are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return RefusedError(status, kind, [Fault(None, None, message, remedy)], named)
