"""Why a request is refused, as data: every error of the service has this one shape."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from rareclass.errors import InputError

# A body that is wrong everywhere is told of in so many places.
MOST_FAULTS = 20


class Fault(NamedTuple):
    """What is wrong, where, and what to do; a row is counted from 1 in its request."""

    row: int | None
    column: str | None
    message: str
    remedy: str = ""

    @classmethod
    def of(cls, error: InputError) -> Self:
        """The fault behind an exception of the library."""
        return cls(error.row, error.column, error.message, error.remedy)


class RefusedError(Exception):
    """A request that is answered with an error.

    `kind` is a word for the measures and the log, which hold no values; `headers` go with the
    answer.
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
        """The answer, as plain data."""
        return {"errors": [fault._asdict() for fault in self.faults]}


def schema_error(faults: Iterable[Fault]) -> RefusedError:
    """Rows that are not as the model's columns are."""
    return RefusedError(422, "schema", faults)


def refused(status: int, kind: str, message: str, remedy: str = "", **headers: str) -> RefusedError:
    """One fault that is of no row; names of headers are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return RefusedError(status, kind, [Fault(None, None, message, remedy)], named)
