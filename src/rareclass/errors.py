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


class CellError(InputError):
    """A cell, or a column, that does not fit what a model was trained on.

    Parameters
    ----------
    message, remedy : str
        As for `InputError`.
    column : str, optional
        Whose cell it is; None where only the message tells.
    row : int, optional
        Of the cell, from 1; None where it is the whole column.

    Examples
    --------
    >>> error = CellError("Column 'age' holds text at row 3.", "Correct it.", "age", 3)
    >>> error.column, error.row
    ('age', 3)
    """

    def __init__(
        self, message: str, remedy: str, column: str | None = None, row: int | None = None
    ) -> None:
        super().__init__(message, remedy)
        self.column = column
        self.row = row


def counted(number: float, noun: str, many: str = "") -> str:
    """So many of something; `many` where more than the last letter changes.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "row is", "rows are")
    ('1 row', '1,200 rows', '2 rows are')
    """
    return f"{number:,.0f} {noun if number == 1 else many or noun + 's'}"


def column_hint(name: str, columns: Iterable[str], option: str) -> str:
    """As `name_hint`; for several columns joined by commas: that the option is repeated.

    >>> column_hint("age,job", ["age", "job"], "--drop")
    'One column each time: --drop age --drop job.'
    """
    known = list(columns)
    parts = [part.strip() for part in name.split(",")]
    if len(parts) > 1 and all(part in known for part in parts):
        return f"One column each time: {' '.join(f'{option} {part}' for part in parts)}."
    return name_hint(name, known)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to `name`, capitals apart; None where none is close.

    >>> nearest_name("tagret", ["age", "Target"]), nearest_name("q", ["age", "sex"])
    ('Target', None)
    """
    by_lower_case = {candidate.lower(): candidate for candidate in reversed(list(known))}
    near = get_close_matches(name.lower(), by_lower_case, n=1)
    return by_lower_case[near[0]] if near else None


def name_hint(name: str, known: Iterable[str], they: str = "The columns are") -> str:
    """Which known name may be meant, or what `they` are: the first twelve.

    >>> name_hint("tagret", ["age", "target"])
    "Did you mean 'target'?"
    >>> name_hint("q", ["1", "0"], "Its values are")
    'Its values are: 1, 0.'
    """
    names = list(known)
    near = nearest_name(name, names)
    if near is not None:
        return f"Did you mean {near!r}?"
    if not names:
        return ""
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"{they}: {', '.join(names[:12])}{more}."
