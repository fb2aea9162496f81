"""Labels of rows: two classes, ordered levels, partly unknown, arriving, or wrong."""

from rareclass.lazy_names import lazy_names

__all__ = ["audit"]

# It needs the rooms above this one.
__getattr__, __dir__ = lazy_names(__name__, {"rareclass.audit": ["audit"]})
