"""Columns that speak for a row's class: the strongest, whichever column it is."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from draws import draws
from rareclass.explain import explaining
from rareclass.model.explained import _class_reasons


@draws(40)
@given(
    arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.integers(-3, 3)),
    st.integers(1, 3),
)
def test_reasons_are_the_columns_with_the_largest_effects_above_zero(
    effects: np.ndarray, k: int
) -> None:
    names = list("abcd")[: effects.shape[1]]
    told = SimpleNamespace(columns=names, contributions=effects)
    content = SimpleNamespace(estimator=SimpleNamespace(has_several=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explaining, "explain_class", lambda model, X: told)
        columns = [cells for cells, _ in _class_reasons(content, None, k)]
    for row, of_row in enumerate(effects):
        ranked = sorted(zip(-of_row, names, strict=True), key=lambda each: each[0])
        expected = [(name, -effect) for effect, name in ranked if effect < 0.0][:k]
        found = [(columns[2 * place][row], columns[2 * place + 1][row]) for place in range(k)]
        assert found == expected + [(None, None)] * (k - len(expected))
