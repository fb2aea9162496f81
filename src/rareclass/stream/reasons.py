"""Why a row scored high: the columns that raised its score most."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Records between two looks at the weights: each costs as much as some ten rows. Among the first
# LOOK_EVERY records, while the weights are young, it is a tenth of that.
LOOK_EVERY = 1_000


class Reason(NamedTuple):
    """A column that raised a score: its cell as given, and by how much."""

    column: str
    value: Any
    raises: float


def blocks_of(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The block of each record, from 1: records of one block have reasons by the same weights.

    >>> blocks_of(np.array([1, 100, 101, 1000, 1001, 2000, 2001]))
    array([ 0,  0,  1,  9, 10, 10, 11])
    """
    before = numbers - 1
    return np.where(before < LOOK_EVERY, before * 10 // LOOK_EVERY, 9 + before // LOOK_EVERY)


class Weights:
    """The weights that reasons are told by: those of the learner when a block of records began.

    Not those of each row, which are gone when it is known that the row is an alert; and fixed by
    the number of the record, not by the batch, so that reasons do not depend on how rows came.
    """

    def __init__(self) -> None:
        self._looks: list[tuple[int, NDArray[np.float64]]] = []

    def look(self, block: int, learner: Any) -> None:
        """Keep the weights for rows of a block, if it is a new one."""
        if not self._looks or block > self._looks[-1][0]:
            begun = hasattr(learner, "state_")
            coef = learner.additive_weights() if begun else np.empty(0)
            self._looks.append((block, coef))

    def at(self, number: int) -> NDArray[np.float64]:
        """Weights for a record of the last batch, of the features that were born then."""
        block = int(blocks_of(np.array(number)))
        return next(coef for known, coef in reversed(self._looks) if known <= block)

    def forget(self) -> None:
        """Keep only what the next batch may need."""
        del self._looks[:-1]

    def to_state(self) -> dict[str, Any]:
        """Return what `from_state` needs: an array, and a value that JSON can write."""
        block, coef = self._looks[-1] if self._looks else (-1, np.empty(0))
        return {"block": block, "coef": coef}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Weights":
        """Return the weights that `to_state` described."""
        weights = cls()
        if state["block"] >= 0:
            weights._looks = [(int(state["block"]), np.asarray(state["coef"], np.float64))]
        return weights


def reasons_of(
    raises: NDArray[np.float64],
    columns: Sequence[str],
    cells: dict[str, Any],
    most: int = 3,
) -> list[Reason]:
    """The columns of a row that raised its score most, the first one most: O(features).

    `raises` is what each feature does, by `OnlineRanker.raises` above a usual row: for a linear
    learner ``weight_j (x_j - usual_j)``, where usual is 0 for a scaled number, which is 0 at its
    running mean, and the share of rows with the value for a category. `columns` says of which
    column each feature is. Columns that do not raise the score are left out.
    """
    raised: dict[str, float] = {}
    for name, amount in zip(columns, raises.tolist(), strict=True):
        raised[name] = raised.get(name, 0.0) + amount
    best = sorted((name for name in raised if raised[name] > 0.0), key=lambda name: -raised[name])
    return [Reason(name, cells[name], raised[name]) for name in best[:most]]
