"""MIBC: the majority as two moments, the rare rows one by one."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rareclass.moments.mibc import MIBC
    from rareclass.moments.mibc_cv import MIBCCV

__all__ = ["MIBC", "MIBCCV"]

_HOME = {"MIBC": "mibc", "MIBCCV": "mibc_cv"}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: compiled loops load only when they run."""
    if name in _HOME:
        return getattr(import_module(f"rareclass.moments.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rareclass.moments' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
