"""Choice of the tests that run.

``make test`` takes each but the slow ones, and of the cases of a test that is marked ``sampled(n)``
n, spread evenly. ``--cases rest`` takes the others of these, and tests of drawn examples again with
more of them (``make test-rest``, as continuous integration does after ``make test``), and
``--hypothesis-profile=thorough`` takes everything.
"""

import atexit
import gc
import os
import signal
from collections import defaultdict
from functools import cache
from types import FunctionType

# Before numpy is imported. Tests run side by side, one process a core: threads of BLAS beside them
# would spend two thirds of the time waiting for each other.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
os.environ.setdefault("OMP_THREAD_LIMIT", "1")  # of boosters, which ask for one a core

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import is_hypothesis_test, settings  # noqa: E402

from database_servers import postgresql as postgresql  # noqa: E402
from draws import register, thorough  # noqa: E402
from object_store import _store as _store  # noqa: E402
from object_store import memory as memory  # noqa: E402
from object_store import s3 as s3  # noqa: E402
from object_store import web as web  # noqa: E402

# Of an environment of its own: `make test-service`.
collect_ignore = ["with_schemathesis"]

register()
# A shell that starts a command in the background has it ignore Ctrl-C, and nohup has it ignore the
# end of the terminal; so do the processes that tests start. Handlers of Python's, which exec resets
# to the default, are what tests of signals need.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)
# The interpreter would look for cycles among all that thousands of tests are made of, all the time.
gc.set_threshold(100_000)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """Import what tests need, but not in the process that only hands them out to others."""
    if session.config.getoption("dist", "no") != "no":
        return
    # Where it is there compiled code is what runs, for few rows as well: in every test alike. Tests
    # of the forms in NumPy ask for these.
    import numba  # noqa: F401
    import typer.testing

    # Typer makes all commands of an application anew, each time a test runs one of them.
    typer.testing._get_command = cache(typer.testing._get_command)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for no examples in docstrings of tests, which would import all that they share."""
    return [each for each in (yield) if type(each) is pytest.Module]


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector, obj):
    """Make no cases of a test that is left to thorough runs as a whole: they are thousands."""
    marks = getattr(obj, "pytestmark", ()) if isinstance(obj, FunctionType) else ()
    if thorough() or not any(mark.name == "thorough" for mark in marks):
        return None
    is_named = any("::" in words for words in collector.config.args)  # then it is deselected
    return None if is_named else []


def pytest_collection_finish():
    """Leave what lives as long as the process out of the search for cycles, until its end."""
    gc.freeze()
    atexit.register(gc.unfreeze)  # DuckDB tells of what it finds alive then


def pytest_runtest_setup(item):
    """What an estimator without a random_state draws is the same in every run, too."""
    if not thorough():
        np.random.seed(0)


def pytest_addoption(parser):
    words = "cases of tests that are marked sampled(n): n of each, or the rest of them"
    parser.addoption("--cases", choices=["some", "rest"], default="some", help=words)


def pytest_configure(config):
    """Draw more examples with the rest of the cases; a profile that is named comes after this."""
    if config.getoption("--cases") == "rest":
        settings.load_profile("rest")


def pytest_collection_modifyitems(config, items):
    if thorough():
        return
    usual = [item for item in items if not item.get_closest_marker("thorough")]
    sample, rest = set(_sample(usual)), config.getoption("--cases") == "rest"
    taken = [i for i in usual if (i in sample) != rest or (rest and is_hypothesis_test(i.obj))]
    config.hook.pytest_deselected(items=list(set(items) - set(taken)))
    items[:] = taken


def _sample(items):
    """Yield every case of tests without the mark, and n cases, spread evenly, of those with it."""
    cases = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is None:
            yield item
        else:
            cases[item.nodeid.partition("[")[0], mark.args[0]].append(item)
    for (_, n), alike in cases.items():
        for k, item in enumerate(alike):
            if (k + 1) * n // len(alike) > k * n // len(alike) or n >= len(alike):
                yield item
