"""Packages that are imported when they are first used, as scoring a row needs little of them.

Importing parts of SciPy, narwhals and Arrow's functions takes longer than all of the work on a row.
``from rareclass.later import sparse`` stands for ``from scipy import sparse``; its `issparse` knows
the answer without the import, as do `expit` and `logit` of few numbers.
"""

import math
import sys
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

# So many numbers take a hundredth of the time of the import.
_FEW = 10_000


class _Later:
    """A module that is imported for its first attribute."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        found = vars(self)[attribute] = attrgetter(attribute)(import_module(self._name))
        return found


class _Sparse(_Later):
    def issparse(self, X: Any) -> bool:
        """Say whether X is a sparse matrix: before the import there is none."""
        known = sys.modules.get(self._name)
        return known is not None and bool(known.issparse(X))


class _Special(_Later):
    """SciPy's functions; few numbers get the same bits by `math`, before the import."""

    def expit(self, x: Any) -> Any:
        return self._of_each("expit", _expit, x)

    def logit(self, p: Any) -> Any:
        return self._of_each("logit", _logit, p)

    def _of_each(self, name: str, function: Any, x: Any) -> Any:
        values = np.asarray(x)
        if self._name not in sys.modules and values.size <= _FEW and values.dtype == np.float64:
            with suppress(ArithmeticError, ValueError):  # of infinity and the like: SciPy knows it
                each = [function(value) for value in values.ravel().tolist()]
                return np.array(each, np.float64).reshape(values.shape)[()]
        return attrgetter(name)(import_module(self._name))(x)


def _expit(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def _logit(p: float) -> float:
    if p < 0.3 or p > 0.65:
        return math.log(p / (1.0 - p))
    s = 2.0 * (p - 0.5)  # near 0 where the quotient is near 1 and its logarithm loses digits
    return math.log1p(s) - math.log1p(-s)


if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from scipy import sparse, special
else:
    nw, pc, pq = (_Later(name) for name in ("narwhals", "pyarrow.compute", "pyarrow.parquet"))
    sparse, special = _Sparse("scipy.sparse"), _Special("scipy.special")

__all__ = ["nw", "pc", "pq", "sparse", "special"]
