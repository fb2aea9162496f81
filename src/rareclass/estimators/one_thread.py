"""Learning from the next rows: one thread at a time."""

from collections.abc import Callable
from functools import wraps
from threading import get_ident
from typing import Any, TypeVar

from rareclass.errors import ErrorKind, InputError

Method = TypeVar("Method", bound=Callable[..., Any])
# Thread that an estimator learns in, and the call, by the estimator's identity. Not an attribute:
# locks are neither copied nor pickled.
_learning: dict[int, tuple[int, object]] = {}


def in_one_thread(method: Method) -> Method:
    """Refuse calls while another thread has the same estimator learn; what it learns would mix.

    Raises `InputError` of kind `LOCKED`.
    """

    @wraps(method)
    def guarded(self: Any, *given: Any, **named: Any) -> Any:
        this = (get_ident(), object())
        found = _learning.setdefault(id(self), this)
        if found[0] != this[0]:
            raise InputError(
                f"This {type(self).__name__} is learning in another thread.",
                "Let one thread learn after another, or give each an estimator of its own.",
                ErrorKind.LOCKED,
            )
        try:
            return method(self, *given, **named)
        finally:
            if found is this:
                del _learning[id(self)]

    return guarded  # type: ignore[return-value]
