"""Every benchmark can be imported: names that moved are found before a long run."""

import pkgutil
from importlib import import_module

import pytest

import benchmarks

OPTIONAL = ("xgboost", "catboost", "river", "imblearn", "mord", "dask", "vowpalwabbit")


@pytest.mark.parametrize(
    "name",
    [
        each.name
        for each in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")
        if not each.name.endswith("__main__")
    ],
)
def test_a_benchmark_is_imported(name):
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"{error.name} is not installed")
