"""Why a solver stopped: the same few words for all of them."""

from enum import StrEnum


class Status(StrEnum):
    """What ``status_`` says."""

    CONVERGED = "converged"
    ROUNDING = "stopped at rounding error"
    MAX_ITER = "reached max_iter"
