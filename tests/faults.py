"""What an `InputError` says, by kind, place and value; wording is asserted in few places."""

from contextlib import contextmanager

import pytest

from rareclass.errors import InputError


@contextmanager
def refused(kind, *, column=None, row=None, value=None, says=None, remedy=True):
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


def refusal(result, kind, *facts):
    """Return the error for which a command refused its input; check its kind and where it went.

    Each of `facts` is a name, value, number or option that the printed message must carry.
    """
    error, shown = cause_of(result), " ".join(result.stderr.split())
    assert error.kind is kind, f"{error.kind!r}: {shown}"
    for fact in facts:
        assert str(fact) in shown, f"{fact} is not in: {shown}"
    return error


def cause_of(result):
    """Return the error for which a command ended with code 2 and a sentence."""
    assert result.exit_code == 2, f"{result.exception!r} {result.output}"
    shown = " ".join(result.stderr.split())
    assert shown.startswith("Error: ")
    assert "Traceback" not in result.output
    error = result.exception
    while error is not None and not isinstance(error, InputError):
        error = error.__context__
    assert error is not None, f"no InputError: {shown}"
    return error
