"""Which rows carry a kernel machine that the command line fits, and the memory that they take."""

from rareclass.errors import InputError
from rareclass.memory import size_text
from rareclass.ranking.preparation import held_whole_bytes

# More rare rows than this are thinned to well-spread ones; fewer are joined by some majority
# rows, which costs little and helps most where rare rows are few (docs/decisions/0006).
MOST_RARE_LANDMARKS = 1000
MAJORITY_LANDMARKS = 200


def choose_landmarks(n_rare: int) -> tuple[str, int]:
    """Return which rows carry a model of so many rare rows, as `RankRC` names them."""
    if n_rare > MOST_RARE_LANDMARKS:
        return "rare", MOST_RARE_LANDMARKS
    return "rare+majority", MAJORITY_LANDMARKS


def n_landmarks(n_rare: int) -> int:
    """Return how many they are at most."""
    rule, count = choose_landmarks(n_rare)
    return n_rare + count if rule == "rare+majority" else count


def check_kernel_memory(
    n_rare: int, item: int, allowed: int, which: str = "rare rows", instead: str = ""
) -> None:
    """Raise `InputError` when what the solver holds whole does not fit: kernel and factors.

    Parameters
    ----------
    n_rare : int
        Distinct rare rows.
    item : int
        Bytes of a number of the kernel.
    allowed : int
        Bytes there are.
    which : str
        What these rows are called.
    instead : str
        Another way out, for the message.
    """
    needed = sum(held_whole_bytes(n_landmarks(n_rare), n_rare, item))
    if needed > allowed:
        raise InputError(
            f"The kernel of {n_rare:,} distinct {which} with their landmarks takes "
            f"{size_text(needed)}; {size_text(allowed)} are left for it.",
            f"Raise --memory, {'' if instead else 'or '}fit on a sample of the rows"
            + (f", or {instead}." if instead else "."),
        )
