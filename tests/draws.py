"""How many examples Hypothesis draws: few and always the same ones, or many and new ones.

``make test`` and ``make test-rest`` judge a change, so they draw the same examples every time; the
second one more of them. ``make test-thorough`` looks for what nobody has met yet. An example that
ever failed is kept as ``@example`` and is tried by all.
"""

import pytest
from hypothesis import HealthCheck, settings

# Of the number that a test asks for: a part each time, three times as many to look for trouble.
_SHARES = {"repeatable": 0.15, "rest": 0.25, "thorough": 3.0}
_FEWEST = 3
_USUAL = 100


def _examples(asked, profile):
    return max(_FEWEST, round(asked * _SHARES[profile]))


def register():
    """Make the profiles known, and the repeatable one the one that is taken unless named."""
    # No deadline and no check of speed: the first call of a process may compile, and the machine
    # may be busy. No database: a run repeats nothing of another one, `@example` is for everybody.
    given = {
        "deadline": None,
        "database": None,
        "print_blob": True,
        "suppress_health_check": [HealthCheck.too_slow],
    }
    for name in _SHARES:
        drawn = {"derandomize": name != "thorough", "max_examples": _examples(_USUAL, name)}
        settings.register_profile(name, **drawn, **given)
    settings.load_profile("repeatable")


def thorough():
    """Whether this run looks for trouble; tests then take their full sizes, too."""
    return settings.get_current_profile_name() == "thorough"


def quick(n, cases):
    """Cases of a parametrization of which each run takes the first n, and a thorough one all.

    A case is a tuple where several names are given, or what `pytest.param` makes.
    """
    return [case if k < n else _made_thorough(case) for k, case in enumerate(cases)]


def _made_thorough(case):
    if hasattr(case, "marks"):
        return case._replace(marks=(*case.marks, pytest.mark.thorough))
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.thorough)


def draws(asked):
    """Settings of a test whose examples cost more, or tell more, than most: how many to draw."""
    return settings(max_examples=_examples(asked, settings.get_current_profile_name()))
