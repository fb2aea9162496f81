"""Learners by name: what they begin with, and what ``--param`` makes of it."""

import pytest

from rareclass.errors import InputError
from rareclass.online import CBR, OAM
from rareclass.stream.log import read_log
from rareclass.stream.options import (
    LEARNERS,
    StreamOptions,
    make_learner,
    parse_parameters,
    usual_tails,
)
from rareclass.stream.state import settled
from stream.messy_stream import messy_records, run, write_csv


def test_cbr_begins_with_small_balanced_steps_and_the_library_s_may_be_asked_for():
    for name, covariance in (("cbr", "full"), ("cbr-diagonal", "diagonal")):
        found = parse_parameters(name, [])
        assert (found["C"], found["class_weight"]) == (2**-10, "balanced")
        assert make_learner(name, found).get_params()["covariance"] == covariance
    # The library's own default is the paper's.
    assert (CBR().C, CBR().class_weight) == (1.0, None)
    for name, given, library in (
        ("cbr", ["C=1", "class_weight=none"], CBR(random_state=0, diagonal_step="printed")),
        ("oam", [], OAM(random_state=0)),
    ):
        model = make_learner(name, parse_parameters(name, given))
        assert model.get_params() == library.get_params()
    with pytest.raises(InputError, match="class_weight='even' is not one of None, 'balanced'"):
        parse_parameters("cbr", ["class_weight=even"])
    assert {parse_parameters(name, []).get("random_state", 0) for name in LEARNERS} == {0}


@pytest.mark.parametrize(
    ("text", "value"), [("2^-3", 0.125), ("2**3", 8.0), (" 1e-3 ", 0.001), ("7", 7.0)]
)
def test_numbers_and_powers(text, value):
    assert parse_parameters("cbr", [f"C={text}"])["C"] == value
    assert type(parse_parameters("cbr", ["buffer_size=2^4"])["buffer_size"]) is int
    assert parse_parameters("opauc", ["rank=none"])["rank"] is None
    assert parse_parameters("opauc", ["rank=5"])["rank"] == 5


def test_a_stream_begins_with_a_mixture_and_goes_on_with_its_own(tmp_path):
    source = write_csv(tmp_path / "rows.csv", messy_records(300, n_sure=250))
    assert settled("auto", "auto", tmp_path / "new") == ("mixture", "reset")
    assert settled("oam", "auto", tmp_path / "new") == ("oam", "report")
    for name in ("oam", "mixture"):
        options = StreamOptions(
            str(source), "fraud", name, parse_parameters(name, []), tails=usual_tails(name)
        )
        report = run(options, tmp_path / name)[-2].report
        assert settled("auto", "auto", tmp_path / name) == (name, "report")
        assert len(report.members) == (8 if name == "mixture" else 0)
        logged = read_log(tmp_path / name)["members"].to_pylist()[-1]
        assert logged == [each._asdict() for each in report.members]
    assert sum(each.weight for each in report.members) == pytest.approx(1.0)
    assert report.members[0].name == "OnlineLogistic(eta=1.0, steps='newton') on linear"
    assert usual_tails("cbr") == "asinh"
    with pytest.raises(InputError, match="mixture has no parameter 'C'") as told:
        parse_parameters("mixture", ["C=1"])
    assert "learner=, such as cbr" in (told.value.remedy)
