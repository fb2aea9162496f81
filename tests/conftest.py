"""Which tests run: each but the slow ones, or with ``--hypothesis-profile=thorough`` all."""

import gc
import os
import signal

# Before numpy is imported. Tests run side by side, one process a core: threads of BLAS beside them
# would spend two thirds of the time waiting for each other.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

from database_servers import postgresql as postgresql  # noqa: E402
from draws import register, thorough  # noqa: E402
from object_store import _store as _store  # noqa: E402
from object_store import memory as memory  # noqa: E402
from object_store import s3 as s3  # noqa: E402
from object_store import web as web  # noqa: E402

register()
# A shell that starts a command in the background has it ignore Ctrl-C, and so do the processes
# that tests start: tests of interrupts need Python's own handler, which exec resets to the default.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The interpreter would look for cycles among all that thousands of tests are made of, all the time.
gc.set_threshold(50_000)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What an estimator without a random_state draws is the same in every run, too."""
    if not thorough():
        np.random.seed(0)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if thorough():
        return
    slow = [item for item in items if item.get_closest_marker("thorough")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if not item.get_closest_marker("thorough")]
