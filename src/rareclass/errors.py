"""What was wrong with the input, and what to do about it."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Input that cannot be used, with the remedy.

    The command line prints it without a traceback and exits with code 2.

    Parameters
    ----------
    message : str
        What is wrong, naming the file, column, row and value where they are known.
    remedy : str, optional
        What the user can do about it.

    Examples
    --------
    >>> str(InputError("no column 'agee'.", "Did you mean 'age'?"))
    "no column 'agee'. Did you mean 'age'?"
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message} {remedy}".strip())
        self.message = message
        self.remedy = remedy


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Return a hint naming the known name closest to `name`, or the first few of them.

    Examples
    --------
    >>> nearest_name("tagret", ["age", "target"])
    "Did you mean 'target'?"
    >>> nearest_name("q", ["age", "sex"])
    'The columns are: age, sex.'
    """
    names = list(known)
    by_lower_case = {candidate.lower(): candidate for candidate in reversed(names)}
    near = get_close_matches(name.lower(), by_lower_case, n=1)
    if near:
        return f"Did you mean {by_lower_case[near[0]]!r}?"
    if not names:
        return ""
    shown = ", ".join(names[:12])
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"The columns are: {shown}{more}."
