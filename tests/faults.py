"""What an `InputError` says, by kind, place and value; wording is asserted in few places."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rareclass.errors import ErrorKind, InputError


@contextmanager
def refused(
    kind: ErrorKind,
    *,
    column: str | None = None,
    row: int | None = None,
    value: object = None,
    says: str | None = None,
    remedy: bool = True,
) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """Expect an `InputError` of this kind; what is not None must hold of it as well.

    `says` is a part of the message that carries a fact, such as a name or a number, not wording.
    """
    with pytest.raises(InputError) as caught:
        yield caught
    error = caught.value
    assert error.kind is kind, f"{error.kind!r}: {error}"
    for name, wanted in (("column", column), ("row", row), ("value", value)):
        if wanted is not None:
            assert getattr(error, name) == wanted, f"{name}: {getattr(error, name)!r} in {error}"
    assert says is None or says in str(error)
    assert error.remedy or not remedy, f"no remedy: {error}"
