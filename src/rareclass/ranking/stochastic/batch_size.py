"""How many majority rows make a mini-batch."""

MOST_BATCH = 4096
"""Majority rows of a mini-batch that is not asked for: Newton steps on up to so many rows at once
need no more passes than mini-batches of them, and their end is certain."""
# At least so many steps a pass where there are more; rows of a mini-batch where nobody knows.
_BATCHES_A_PASS, _STREAM_BATCH = 16, 2048


def batch_size_of(wanted: int | str, n_majority: int | None) -> int:
    """Majority rows of a mini-batch, of `n_majority` in all; None stands for a stream.

    Examples
    --------
    >>> [batch_size_of("auto", n) for n in (100, 16_000, 10**6, None)]
    [100, 1000, 4096, 2048]
    >>> batch_size_of(500, 100), batch_size_of(500, None)
    (100, 500)
    """
    if wanted != "auto":
        return int(wanted) if n_majority is None else min(int(wanted), n_majority)
    if n_majority is None:
        return _STREAM_BATCH
    if n_majority <= MOST_BATCH:
        return n_majority
    return min(n_majority // _BATCHES_A_PASS, MOST_BATCH)
