"""What is said of a file that cannot even be opened."""

from pathlib import Path

from rareclass.errors import InputError


def cannot_open(path: Path, error: Exception, was_there: bool = False) -> InputError | None:
    """The error to raise for a file that is missing or closed to this user.

    Parameters
    ----------
    path : Path
    error : Exception
        What opening it gave.
    was_there : bool
        Whether it was opened before: then it has gone since.

    Returns
    -------
    InputError or None
        None for any other error: then the content is at fault.
    """
    if isinstance(error, FileNotFoundError):
        if was_there:
            return InputError(
                f"{path} is gone: it was there when reading began.",
                "Put it back, and start again.",
            )
        return InputError(f"There is no file {path}.", "Check the name.")
    if isinstance(error, PermissionError):
        return InputError(
            f"You may not read {path}: permission denied.",
            "Ask its owner for the right to read it (chmod +r), or for a copy.",
        )
    return None
