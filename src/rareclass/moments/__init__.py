"""MIBC: the majority as two moments, the rare rows one by one."""

from typing import TYPE_CHECKING

from rareclass.lazy_names import lazy_names

if TYPE_CHECKING:
    from rareclass.moments.mibc import MIBC
    from rareclass.moments.mibc_cv import MIBCCV

__all__ = ["MIBC", "MIBCCV"]

__getattr__, __dir__ = lazy_names(__name__, {".mibc": ["MIBC"], ".mibc_cv": ["MIBCCV"]})
