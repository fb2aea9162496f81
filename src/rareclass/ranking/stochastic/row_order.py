"""The order in which the rows of a table are visited."""

from collections.abc import Iterator

import numpy as np


def visits(
    n_rows: int, size: int, together: int, rng: np.random.Generator | None
) -> Iterator[np.ndarray]:
    """Row numbers of one pass, about `size` at a time.

    A multiple of `together` is taken: so many consecutive rows stay together when `rng` draws the
    order, in memory of 8 bytes for each such group; None keeps the order of the rows.

    Examples
    --------
    >>> [part.tolist() for part in visits(5, 4, 2, np.random.default_rng(0))]
    [[4, 0, 1], [2, 3]]
    >>> [part.tolist() for part in visits(5, 4, 2, None)]
    [[0, 1, 2, 3], [4]]
    """
    together = min(together, size)
    n_groups = -(-n_rows // together)
    order = None if rng is None else rng.permutation(n_groups)
    step = max(1, size // together)
    for start in range(0, n_groups, step):
        stop = min(start + step, n_groups)
        groups = np.arange(start, stop) if order is None else order[start:stop]
        rows = (groups[:, None] * together + np.arange(together)).ravel()
        yield rows[rows < n_rows]
