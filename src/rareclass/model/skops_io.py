"""skops, which writes and reads model files: as it is, or sooner where nobody else uses it.

As it is imported, skops asks scikit-learn for all of its estimators, types that it trusts in any
file. For the list all of scikit-learn is imported, and dask and pytest where these are installed:
0.3 to 0.6 s, a fifth of a `rareclass score`. The process of the command line does without the list,
and asks of each type that a file names whether it would be on it (`is_estimator`).
"""

import inspect
import json
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

_process = SimpleNamespace(is_ours_alone=False)
# Parts of scikit-learn that its list leaves out.
_WITHOUT_ESTIMATORS = {"tests", "externals", "setup", "conftest", "experimental"}


def use_alone() -> None:
    """Say that nothing in this process uses skops but this package."""
    _process.is_ours_alone = True


def skops_io() -> ModuleType:
    """The module `skops.io`; without its list of estimators where this package is alone with it."""
    if not _process.is_ours_alone or "skops" in sys.modules:
        return import_module("skops.io")
    import sklearn.utils

    every = sklearn.utils.all_estimators
    sklearn.utils.all_estimators = list
    try:
        return import_module("skops.io")
    finally:
        sklearn.utils.all_estimators = every


def dump(parts: dict[str, Any], path: Path) -> None:
    """Write a file of skops, compressed as quickly as can be, its schema on one line.

    skops indents the schema, which the standard library does in Python, at the cost of every
    level of nesting for every piece: that was three quarters of the time of saving a model. Who
    calls skops at the same moment gets a schema on one line as well, which reads back the same.
    """
    io = skops_io()
    persist: Any = import_module("skops.io._persist")
    persist.json = SimpleNamespace(dumps=_on_one_line)
    try:
        io.dump(parts, path, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
    finally:
        persist.json = json


def _on_one_line(state: Any, **_layout: Any) -> str:
    return json.dumps(state)


def is_estimator(name: str) -> bool:
    """Whether a type, by its full name, is one of scikit-learn's public estimators.

    These are what `sklearn.utils.all_estimators` lists: classes that can be made, which a public
    module of scikit-learn offers by this name. Nothing but modules of scikit-learn is imported.

    >>> is_estimator("sklearn.linear_model._logistic.LogisticRegression"), is_estimator("os.system")
    (True, False)
    """
    module, _, kind = name.rpartition(".")
    parts = module.split(".")
    if parts[0] != "sklearn" or _WITHOUT_ESTIMATORS & {*parts} or kind.startswith("_"):
        return False
    n_public = next((k for k, part in enumerate(parts) if part.startswith("_")), len(parts))
    from sklearn.base import BaseEstimator

    try:
        found = getattr(import_module(".".join(parts[:n_public])), kind, None)
    except ImportError:
        return False
    return (
        inspect.isclass(found)
        and issubclass(found, BaseEstimator)
        and found is not BaseEstimator
        and not inspect.isabstract(found)
        and f"{found.__module__}.{found.__name__}" == name
    )
