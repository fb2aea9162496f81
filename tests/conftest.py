"""Which tests run: each but the slow ones, or with ``--hypothesis-profile=thorough`` all."""

import pytest

from draws import register, thorough

register()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if thorough():
        return
    slow = [item for item in items if item.get_closest_marker("thorough")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if not item.get_closest_marker("thorough")]
