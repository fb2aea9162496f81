"""skops, which writes and reads encoders of skrub and scikit-learn inside model files.

As it is imported, skops asks scikit-learn for all of its estimators, types that it trusts in any
file. For the list all of scikit-learn is imported, and dask and pytest where these are installed:
0.3 to 0.6 s, a fifth of a `rareclass score`. The process of the command line does without the list,
and asks of each type that a file names whether it would be on it (`is_estimator`).
"""

import inspect
import json
import sys
import warnings
import zipfile
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType, SimpleNamespace
from typing import Any

from rareclass.errors import ErrorKind, InputError

# Types that skops may build beside NumPy's dense arrays and scikit-learn's estimators. A type is
# named here only after a look at what building one does: nothing but setting attributes.
FOREIGN_TYPES = (
    "numpy.dtype",
    "polars.datatypes.classes.Datetime",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "skrub._apply_to_each_col.ApplyToEachCol",
    "skrub._apply_to_sub_frame.ApplyToSubFrame",
    "skrub._check_input.CheckInputDataFrame",
    "skrub._clean_categories.CleanCategories",
    "skrub._clean_null_strings.CleanNullStrings",
    "skrub._dataframe._common.is_any_date",
    "skrub._dataframe._common.is_categorical",
    "skrub._dataframe._common.is_numeric",
    "skrub._datetime_encoder.DatetimeEncoder",
    "skrub._drop_uninformative.DropUninformative",
    "skrub._duration_to_float.DurationToFloat",
    "skrub._string_encoder.StringEncoder",
    "skrub._table_vectorizer.PassThrough",
    "skrub._table_vectorizer.ShortReprDict",
    "skrub._table_vectorizer.TableVectorizer",
    "skrub._table_vectorizer._created_by_predicate",
    "skrub._to_datetime.ToDatetime",
    "skrub._to_float.ToFloat",
    "skrub._to_str.ToStr",
    "skrub.selectors._base.All",
    "skrub.selectors._base.And",
    "skrub.selectors._base.Cols",
    "skrub.selectors._base.Filter",
    "skrub.selectors._base.Sub",
    "skrub.selectors._selectors._cardinality_below",
)
# Parts of scikit-learn that its list of estimators leaves out.
_WITHOUT_ESTIMATORS = {"tests", "externals", "setup", "conftest", "experimental"}
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}
_process = SimpleNamespace(is_ours_alone=False)


def use_alone() -> None:
    """Declare that nothing in this process uses skops but this package."""
    _process.is_ours_alone = True


def skops_io() -> ModuleType:
    """Import `skops.io`; without its list of estimators where this package is alone with it."""
    if not _process.is_ours_alone or "skops" in sys.modules:
        return import_module("skops.io")
    import sklearn.utils

    every = sklearn.utils.all_estimators
    sklearn.utils.all_estimators = list
    try:
        return import_module("skops.io")
    finally:
        sklearn.utils.all_estimators = every


def dumps_foreign(value: Any) -> bytes:
    """Return an encoder of another package as skops writes it, its schema on one line.

    skops indents the schema, which the standard library does in Python, at the cost of every
    level of nesting for every piece: three quarters of the time of saving a model.

    Raises `TypeError` where it holds a type that `loads_foreign` would refuse.
    """
    skops = skops_io()
    persist: Any = import_module("skops.io._persist")
    persist.json = SimpleNamespace(dumps=lambda state, **_layout: json.dumps(state))
    try:
        content: bytes = skops.dumps(value, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
    finally:
        persist.json = json
    foreign = _unlisted(skops.get_untrusted_types(data=content))
    if foreign:
        raise TypeError(f"the model cannot be saved: it holds {', '.join(foreign)}")
    return content


def loads_foreign(content: bytes, kind: str) -> Any:
    """Return the encoder that `dumps_foreign` wrote, of the type `kind`, executing nothing.

    Raises `InputError` where the bytes hold types that are not listed, or that their package does
    not have here; `ValueError` where they hold another object.
    """
    skops = skops_io()
    asked_for = skops.get_untrusted_types(data=content)
    foreign = _unlisted(asked_for)
    if foreign:
        raise InputError(
            f"The file holds types that a rareclass model does not: {', '.join(foreign)}. It was "
            "not opened.",
            "Use a file from a source you trust, made by this version of rareclass and skrub.",
            ErrorKind.REFUSED,
        )
    if kind.startswith("skrub."):
        from rareclass.encoding.encoders import make_skrub_importable

        make_skrub_importable()
        import skrub  # noqa: F401
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of another release; the facts tell which
            found = skops.loads(content, trusted=asked_for)
    except Exception as error:  # the content of a file can be wrong in any way
        raise _of_another_release(asked_for) or ValueError(f"a {kind} cannot be read") from error
    if f"{type(found).__module__}.{type(found).__qualname__}" != kind:
        raise ValueError(f"a {type(found).__qualname__} in place of a {kind}")
    return found


def _unlisted(types: list[str]) -> list[str]:
    return [name for name in sorted(set(types) - set(FOREIGN_TYPES)) if not is_estimator(name)]


def _of_another_release(types: list[str]) -> InputError | None:
    """Return the error of a type that its package does not have here, if one is."""
    absent = next((name for name in types if not _is_here(name)), None)
    if absent is None:
        return None
    package = absent.partition(".")[0]
    package = _DISTRIBUTIONS.get(package, package)
    try:
        here = f"which is not in {package} {version(package)}, the release that is installed"
    except PackageNotFoundError:
        here = f"and {package} is not installed"
    return InputError(
        f"The file was made with another release of {package}: it holds {absent}, {here}.",
        "Install the release that the model was fitted with (rareclass show names it), or fit "
        "again.",
        ErrorKind.MISSING_PACKAGE,
    )


def _is_here(name: str) -> bool:
    module, _, kind = name.rpartition(".")
    try:
        return hasattr(import_module(module), kind)
    except ImportError:
        return False


def is_estimator(name: str) -> bool:
    """Say whether a type, by its full name, is one of scikit-learn's public estimators.

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
