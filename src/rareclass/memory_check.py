"""Whether a state fits in memory, before it is made."""

from rareclass.byte_sizes import size_text
from rareclass.memory_limit import available_memory


def check_fits(needed: int, what: str, remedy: str) -> None:
    """Raise `ValueError` when `needed` bytes are more than half of what is free.

    Parameters
    ----------
    needed : int
        Bytes.
    what : str
        What takes them, for the message; a plural.
    remedy : str
        What to do instead.
    """
    free = available_memory()
    if needed > free // 2:
        raise ValueError(f"{what} take {size_text(needed)}; {size_text(free)} are free. {remedy}")
