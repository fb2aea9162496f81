"""skops is imported without its list of estimators, and trusts the same types nevertheless."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import skops.io
from skops.io._trusted_types import SKLEARN_ESTIMATOR_TYPE_NAMES

from rareclass.model import skops_io
from rareclass.model.skops_io import is_estimator

NO_ESTIMATORS = [
    "os.system",
    "sklearn.base.BaseEstimator",
    "sklearn.base.clone",
    "sklearn.conftest.LinearRegression",
    "sklearn.ensemble._forest.BaseForest",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.linear_model.LogisticRegression",  # stands in a module of that package
    "sklearn.model_selection._split.KFold",
    "sklearn.no_such_module.Estimator",
    "sklearn.utils._testing.MinimalClassifier",
    "sklearnother.linear_model._logistic.LogisticRegression",
    "LogisticRegression",
    "",
]


def test_what_skops_lists_is_an_estimator_and_nothing_else_is() -> None:
    assert len(SKLEARN_ESTIMATOR_TYPE_NAMES) > 100
    assert [name for name in sorted(SKLEARN_ESTIMATOR_TYPE_NAMES) if not is_estimator(name)] == []
    assert [name for name in NO_ESTIMATORS if is_estimator(name)] == []


@pytest.mark.parametrize("alone", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_only_who_is_alone_with_skops_goes_without_the_list(alone: bool) -> None:
    code = f"""
import sys, sklearn.utils
from rareclass.model import skops_io
every = sklearn.utils.all_estimators
if {alone}:
    skops_io.use_alone()
assert skops_io.skops_io() is skops_io.skops_io() is sys.modules["skops.io"]
assert sklearn.utils.all_estimators is every
from skops.io._trusted_types import SKLEARN_ESTIMATOR_TYPE_NAMES
print(len(SKLEARN_ESTIMATOR_TYPE_NAMES) > 100, "sklearn.gaussian_process" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == [str(not alone)] * 2, done.stderr


def test_the_schema_is_on_one_line_and_skops_is_left_as_it_was(tmp_path: Path) -> None:
    skops_io.dump({"a": [1, {"b": 2.5}]}, tmp_path / "parts")
    with zipfile.ZipFile(tmp_path / "parts") as archive:
        assert archive.read("schema.json").count(b"\n") == 0
    assert skops.io.load(tmp_path / "parts") == {"a": [1, {"b": 2.5}]}
    assert skops.io._persist.json is json
