"""What RACHCV tries where it is not told."""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from rareclass.hyperball.fitting import Survey
from rareclass.kernels.kernels import make_kernel, needs_width

# The first of each is what a single rare label, which allows no choice, is left with; of equally
# good candidates the first wins as well.
PRICES = (3.0, 0.3, 30.0)
# Without a kernel dear majority rows push the centre out of the cases, towards a half-space.
ROUND_PRICES = (0.3, 0.03, 3.0)
# Widths, as multiples of the mean one.
WIDTHS = (1.0, 2.0, 0.5, 4.0)
# Margins, as multiples of k(x, x); without a kernel there is none, for the same reason.
MARGINS = (0.5, 0.2, 0.05)


class Candidate(NamedTuple):
    """Parameters to try; the width is None without a kernel that has one."""

    C1: float
    C2: float
    width: float | None
    margin: float = 0.0


class Grid(NamedTuple):
    """Values to try for each parameter; None where they are left to `candidates`."""

    C1s: list[float] | None
    C2s: list[float] | None
    widths: list[float] | None
    margins: list[float] | None


def candidates(grid: Grid, kernel: Any, known: Survey) -> list[Candidate]:
    """All that is to be tried, one width after the other.

    Unlabelled rows are given no price of their own where none is asked for: they help by telling
    where the border is (docs/decisions/0020).
    """
    widths: Sequence[float | None] = [None]
    if kernel is not None and needs_width(kernel):
        widths = grid.widths or [share * known.width for share in WIDTHS]
    margins, C1s = grid.margins, grid.C1s or PRICES
    if kernel is None:
        margins, C1s = margins or [0.0], grid.C1s or ROUND_PRICES
    elif margins is None:
        margins = [share * _unit(kernel, known) for share in MARGINS]
    return [
        Candidate(C1, C2, width, margin)
        for width, margin, C1, C2 in product(widths, margins, C1s, grid.C2s or [0.0])
    ]


def read_grid(estimator: Any) -> Grid:
    """The values that an estimator's parameters name, checked.

    Raises
    ------
    ValueError
        On an empty list, or a value that is not a finite number at or above 0.
    """
    return Grid(*(_values(name, getattr(estimator, name)) for name in Grid._fields))


def _values(name: str, values: Any) -> list[float] | None:
    if values is None:
        return None
    least = np.nextafter(0.0, 1.0) if name == "widths" else 0.0
    above = "above 0" if name == "widths" else "at or above 0"
    try:
        given = [float(value) for value in np.ravel(np.asarray(values, dtype=np.float64))]
    except (TypeError, ValueError):
        given = []
    if not given or not all(least <= value < np.inf for value in given):
        raise ValueError(f"{name}={values!r} must be a list of finite numbers {above}, or None.")
    return given


def _unit(kernel: Any, known: Survey) -> float:
    """What squared distances are like in the feature space."""
    X = known.tasks[0].pool.X[:100]
    return float(np.mean(make_kernel(kernel, known.width).diag(X)))
