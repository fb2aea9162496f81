"""skops is imported without its list of estimators, and trusts the same types nevertheless."""

import io
import json
import os
import subprocess
import sys
import zipfile

import pytest
import skops.io
from sklearn.preprocessing import StandardScaler
from skops.io._trusted_types import SKLEARN_ESTIMATOR_TYPE_NAMES

from faults import refused
from rareclass.errors import ErrorKind
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


def test_an_encoder_is_kept_whole_and_skops_is_left_as_it_was() -> None:
    scaler = StandardScaler().fit([[1.0], [4.0]])
    content = skops_io.dumps_foreign(scaler)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.read("schema.json").count(b"\n") == 0
    kind = "sklearn.preprocessing._data.StandardScaler"
    assert skops_io.loads_foreign(content, kind).mean_.tolist() == [2.5]
    assert skops.io._persist.json is json
    with pytest.raises(ValueError, match="in place of"):
        skops_io.loads_foreign(content, "sklearn.preprocessing._data.MaxAbsScaler")


def test_types_that_are_not_listed_are_neither_kept_nor_built() -> None:
    with pytest.raises(TypeError, match="Foreign"):
        skops_io.dumps_foreign(Foreign())
    with refused(ErrorKind.REFUSED, says="system"):
        skops_io.loads_foreign(skops.io.dumps(os.system), "sklearn.preprocessing._data.Scaler")


class Foreign:
    """A class of somebody else."""

    def __init__(self) -> None:
        self.harm = 1


def test_a_type_that_its_package_does_not_have_here_is_named() -> None:
    error = skops_io._of_another_release(["numpy.dtype", "sklearn.nowhere.Thing"])
    assert error is not None
    assert error.kind is ErrorKind.MISSING_PACKAGE
    assert "scikit-learn: it holds sklearn.nowhere.Thing" in str(error)
    assert skops_io._of_another_release(["numpy.dtype"]) is None
