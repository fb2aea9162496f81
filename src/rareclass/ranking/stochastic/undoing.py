"""A call that fails before it learned anything leaves the estimator as it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from rareclass.ranking.stochastic.feeding import State


@contextmanager
def undone_unless_learned(estimator: Any) -> Iterator[None]:
    """Put the attributes back when what is inside raises before it has learned a mini-batch.

    From the first mini-batch on what was learned stays: it can be used, and gone on from. Nothing
    large is held for this: until then the function learned is the one before.
    """
    before = {name: value for name, value in vars(estimator).items() if name != "_published"}
    state: State | None = before.pop("state_", None)
    n_batches = _n_batches(state)
    if state is not None:
        # Generators move in place.
        rng, chooser = deepcopy((state.rng, state.chooser))
        state = state._replace(learned=None, rng=rng, chooser=chooser)
    try:
        yield
    except BaseException:
        now: State | None = vars(estimator).get("state_")
        if _n_batches(now) == n_batches:
            vars(estimator).clear()
            vars(estimator).update(before)
            if state is not None and now is not None:
                estimator._keep(state._replace(learned=now.learned))
        raise


def _n_batches(state: State | None) -> int:
    return 0 if state is None or state.learned is None else state.learned.n_batches
