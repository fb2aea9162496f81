"""Public names of a package that are imported on first use, so that a command starts quickly."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package; the latter is its ``__all__``.

    `homes` maps modules, relative to the package, to names that they define.

    >>> get, names = lazy_names("rareclass.moments", {".mibc": ["MIBC"]})
    >>> get("MIBC").__module__, names()
    ('rareclass.moments.mibc', ['MIBC', 'MIBCCV'])
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home_of[name], package), name)

    return get, lambda: sorted(import_module(package).__all__)
