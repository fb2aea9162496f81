"""Registered estimators pass scikit-learn's checks; none can miss a contract or an oracle.

Losses say it for themselves in `ranking/test_losses.py`, kernels in
`kernels/test_kernels.py`, landmark rules in `kernels/test_landmarks.py`.
"""

import inspect
import re
from importlib import import_module

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import rareclass
from expected_failures import TABLE, expected_failures
from moments.mibc_cases import COVARIANCES
from oracles.ordinal import PENALTY_MINIMA
from rareclass.moments.covariance import make_covariance
from rareclass.online import OnlineRanker
from rareclass.ranking.solve import PENALTIES
from rareclass.stream.options import LEARNERS
from registered import ESTIMATORS, MORE_ESTIMATORS, ONLINE

pytestmark = [
    # What small tables of scikit-learn's own are rightly told.
    pytest.mark.filterwarnings("ignore:only .* rows of the smaller class:UserWarning"),
    pytest.mark.filterwarnings("ignore:The covariance of the majority has no inverse:UserWarning"),
    pytest.mark.filterwarnings("ignore:(the ball of|.* has a single labelled row):UserWarning"),
    pytest.mark.filterwarnings("ignore:rare classes of fewer than 5 rows:UserWarning"),
    pytest.mark.filterwarnings("ignore:column .* alone ranks the rows:UserWarning"),
    pytest.mark.filterwarnings("ignore:lam=.*:sklearn.exceptions.ConvergenceWarning"),
]
ROOMS = ("decide", "ranking", "moments", "hyperball", "online")


def public_estimators():
    packages = [rareclass, *(import_module(f"rareclass.{room}") for room in ROOMS)]
    named = (getattr(package, name) for package in packages for name in package.__all__)
    kinds = {one for one in named if isinstance(one, type) and issubclass(one, BaseEstimator)}
    return kinds - {OnlineRanker}


def test_every_estimator_is_held_to_scikit_learn_s_contract():
    assert {type(one) for one in ESTIMATORS} == public_estimators()
    assert {type(one) for one in MORE_ESTIMATORS} <= public_estimators()


PARAMETERS = re.compile(r"^    (\w+(?:, \w+)*) : (.*)$", re.MULTILINE)
DEFAULT, OF_ANOTHER = re.compile(r"default=(.+)"), re.compile(r"as in `(\w+)`")


def defaults_of(kind):
    given = inspect.signature(kind).parameters.values()
    return {each.name: each.default for each in given}


@pytest.mark.parametrize("name", sorted(kind.__name__ for kind in public_estimators()))
def test_a_documented_default_is_that_of_the_signature(name):
    kinds = {kind.__name__: kind for kind in public_estimators()}
    own, told = defaults_of(kinds[name]), kinds[name].__doc__.partition("Parameters\n    ---")[2]
    for names, said in PARAMETERS.findall(told.partition("\n    ---")[0]):
        for parameter in names.split(", "):
            if same := OF_ANOTHER.match(said):
                wanted = defaults_of(kinds[same[1]])[parameter]
            elif value := DEFAULT.search(said):
                wanted = eval(value[1])
            else:
                continue
            if isinstance(wanted, tuple) and ... in wanted:
                *wanted, last = (each for each in wanted if each is not ...)
                assert own[parameter][-1] == pytest.approx(last)
                own[parameter] = own[parameter][: len(wanted)]
            assert own[parameter] == pytest.approx(wanted), parameter


def test_every_online_learner_is_held_to_the_contract_of_streams():
    kinds = {one for one in public_estimators() if issubclass(one, OnlineRanker)}
    assert {type(one) for one in ONLINE.values()} == kinds
    assert {learner.class_name for learner in LEARNERS.values()} == {k.__name__ for k in kinds}


def test_every_penalty_has_its_oracle():
    assert PENALTIES.keys() == PENALTY_MINIMA.keys()


def test_every_covariance_is_tried():
    with pytest.raises(ValueError, match="is not one of") as told:
        make_covariance("none", 1, "auto")
    known = re.findall(r"'(\w+)'", str(told.value).split("is not one of")[1])
    assert COVARIANCES.keys() == {*known}


def test_nothing_is_excused_that_is_not_tried():
    """A row of the table that no estimator meets any more is to go."""
    tried = [*ESTIMATORS, *MORE_ESTIMATORS]
    for kind, some, _, _ in TABLE:
        assert any(
            isinstance(one, kind) and some.items() <= one.get_params().items() for one in tried
        )


@pytest.mark.sampled(60)
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.thorough
@parametrize_with_checks(MORE_ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract_of_other_parameters(estimator, check):
    check(estimator)
