"""``--separator``: what stands between the cells of a CSV file."""

import typer

from rareclass.errors import InputError

SEPARATOR_OPTION = typer.Option(
    "--separator",
    help="What separates the cells of a CSV file: one character, or tab. By default found out.",
)
_NAMED = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


def parse_separator(text: str | None) -> str | None:
    """Return the character that ``--separator`` stands for, None for none given.

    Examples
    --------
    >>> parse_separator("tab"), parse_separator(";"), parse_separator(None)
    ('\\t', ';', None)
    """
    if text is None:
        return None
    character = _NAMED.get(text.lower(), text)
    if len(character) != 1 or not character.isascii() or character in '"\r\n\0':
        raise InputError(
            f"--separator {text!r} is not one plain character.", "Give one such as ';', or tab."
        )
    return character
