"""Types in files that skops makes of estimators."""

from collections.abc import Iterator
from importlib import import_module
from inspect import isclass
from pkgutil import walk_packages

from rareclass.model.model_file import our_types

# Of other packages, which parameters and fitted attributes of ours may be.
_FOREIGN_TYPES = (
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
)
# Rooms whose classes are estimators, their parameters and what they learn.
_ROOMS = ("decide", "ensemble", "folds", "hyperball", "kernels", "moments", "online", "ranking")
# With one of these a class says itself what building, or dropping, an object does.
_ACTING = ("__reduce__", "__reduce_ex__", "__setstate__", "__del__")


def _of_estimators() -> Iterator[str]:
    """Yield the full names of classes of these rooms whose building only sets attributes."""
    for room in _ROOMS:
        package = import_module(f"rareclass.{room}")
        for found in walk_packages(package.__path__, f"{package.__name__}."):
            try:
                module = import_module(found.name)
            except ImportError:  # of an extra that is not installed
                continue
            for name, each in vars(module).items():
                is_here = isclass(each) and each.__module__ == found.name
                if is_here and not any(method in vars(each) for method in _ACTING):
                    yield f"{found.name}.{name}"


SKOPS_TRUSTED: tuple[str, ...] = tuple(
    sorted(
        {
            *our_types(),
            *_FOREIGN_TYPES,
            *_of_estimators(),
            "rareclass.findings.Finding",
            "rareclass.metrics.intervals.Interval",
        }
    )
)
"""Names of all types in files of this package's estimators that skops does not trust by itself.

For ``skops.io.load(file, trusted=rareclass.SKOPS_TRUSTED)``, for MLflow, and whatever else saves
estimators with skops. Building any of these sets attributes; functions and kernels of your own are
not on the list. A model file of ``rareclass fit`` has a form of its own: `rareclass.load` opens it.
"""
