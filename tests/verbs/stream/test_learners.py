"""Learners by name: what they begin with, and what ``--param`` makes of it."""

import pytest

from rareclass.errors import InputError
from rareclass.online import CBR, OAM
from rareclass.verbs.stream.learners import LEARNERS, make_learner, parse_parameters


@pytest.mark.parametrize("name", ["cbr", "cbr-diagonal"])
def test_cbr_begins_with_small_balanced_steps(name: str) -> None:
    found = parse_parameters(name, [])
    assert (found["C"], found["class_weight"]) == (2**-10, "balanced")
    model = make_learner(name, found)
    assert model.get_params()["class_weight"] == "balanced"
    assert model.get_params()["covariance"] == {"cbr": "full"}.get(name, "diagonal")
    # The library's own default is the paper's.
    assert (CBR().C, CBR().class_weight) == (1.0, None)


def test_the_library_s_defaults_may_be_asked_for() -> None:
    found = parse_parameters("cbr", ["C=1", "class_weight=none"])
    assert (found["C"], found["class_weight"]) == (1.0, None)
    assert make_learner("cbr", found).get_params() == CBR(random_state=0).get_params()
    with pytest.raises(InputError, match="class_weight='even' is not None or 'balanced'"):
        parse_parameters("cbr", ["class_weight=even"])


def test_others_begin_as_in_the_library() -> None:
    assert make_learner("oam", parse_parameters("oam", [])).get_params() == (
        OAM(random_state=0).get_params()
    )
    for name in LEARNERS:
        assert parse_parameters(name, []).get("random_state", 0) == 0


@pytest.mark.parametrize(
    ("text", "value"), [("2^-3", 0.125), ("2**3", 8.0), (" 1e-3 ", 0.001), ("7", 7.0)]
)
def test_numbers_and_powers(text: str, value: float) -> None:
    assert parse_parameters("cbr", [f"C={text}"])["C"] == value
    assert type(parse_parameters("cbr", ["buffer_size=2^4"])["buffer_size"]) is int
    assert parse_parameters("opauc", ["rank=none"])["rank"] is None
    assert parse_parameters("opauc", ["rank=5"])["rank"] == 5
