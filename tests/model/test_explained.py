"""Columns that speak for a row's class: the strongest, whichever column it is."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from draws import draws
from rareclass.explain import explaining
from rareclass.model.explained import _class_reasons, explainer_of
from rareclass.model.facts import RareCases


@draws(40)
@given(
    arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.integers(-3, 3)),
    st.integers(1, 3),
)
def test_reasons_are_the_columns_with_the_largest_effects_above_zero(effects, k):
    names = list("abcd")[: effects.shape[1]]
    told = SimpleNamespace(columns=names, contributions=effects)
    content = SimpleNamespace(estimator=SimpleNamespace(has_several=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explaining, "explain_class", lambda model, X: told)
        columns = _class_reasons(content, None, k)
    for row, of_row in enumerate(effects):
        ranked = sorted(zip(-of_row, names, strict=True), key=lambda each: each[0])
        expected = [(name, -effect) for effect, name in ranked if effect < 0.0][:k]
        found = [(columns[2 * place][row], columns[2 * place + 1][row]) for place in range(k)]
        assert found == expected + [(None, None)] * (k - len(expected))
    saw_one_class = SimpleNamespace(estimator=SimpleNamespace(has_several=False))
    assert _class_reasons(saw_one_class, effects, k) == [[None] * len(effects)] * (2 * k)


@pytest.mark.parametrize(
    ("cases", "kind"),
    [
        (None, None),
        (RareCases(np.array([1, 2])), pl.Int64),
        (RareCases(np.array([1, 2]), names=("a", "b")), pl.String),
    ],
)
def test_a_file_without_rows_has_the_columns_of_one_with_rows(cases, kind):
    content = SimpleNamespace(
        decision=None, facts=SimpleNamespace(method=None, format="csv"),
        cases=cases, rare_classes=None,
    )  # fmt: skip
    found = explainer_of(content, 2)(pl.DataFrame({"x": []})).schema
    of_case = {} if kind is None else {"case": kind, "distance": pl.Float64}
    assert dict(found) == {
        f"{name}_{place}": dtype
        for of_each in ({"reason": pl.String, "value": pl.String, "effect": pl.Float64}, of_case)
        for place in (1, 2)
        for name, dtype in of_each.items()
    }
