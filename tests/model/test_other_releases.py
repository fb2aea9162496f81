"""A model file made beside another release of a package names the package and that release."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rareclass import RankRC
from rareclass.encoding.tables import TableEncoder
from rareclass.errors import InputError
from rareclass.model import other_releases
from rareclass.model.model_file import ModelFile, load_model, save_model
from rareclass.tables.columns import Column

PART = "skrub._to_str.ToStr"


def of_today(folder: Path, skrub: str) -> Path:
    rng, y = np.random.default_rng(0), np.arange(60) < 20
    words = rng.choice(["red", "green", "blue fox", "the dog", "a cat"], 60)
    table = pl.DataFrame({"words": [f"{word} {k}" for k, word in enumerate(words)]})
    encoder = TableEncoder([Column("words", "high-cardinality category", "", "string")])
    model = RankRC(lam=0.1).fit(encoder.fit_transform(table, y), y)
    metadata = {"format": "table", "target": "rare", "columns": [], "versions": {"skrub": skrub}}
    save_model(folder / "model.skops", ModelFile(encoder, model, metadata))
    return folder / "model.skops"


def test_the_release_that_has_the_part_is_named(tmp_path, monkeypatch):
    path = of_today(tmp_path, "0.11.0")
    module, _, kind = PART.rpartition(".")
    monkeypatch.delattr(import_module(module), kind)
    said = rf"beside skrub 0\.11\.0: it holds skrub\.\S+, which is not in skrub {version('skrub')},"
    with pytest.raises(InputError, match=said) as caught:
        load_model(path)
    assert caught.value.remedy == "Install skrub 0.11.0, or fit again."
    assert "damaged" not in str(caught.value)


def test_a_package_that_is_not_installed_and_metadata_that_say_nothing(monkeypatch):
    def none_of_them(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr(other_releases, "version", none_of_them)
    types = ["numpy.dtype", "sklearn.nowhere.Thing"]
    found = other_releases.of_another_release(Path("m"), b"no archive", types)
    assert str(found) == (
        "m was made beside scikit-learn: it holds sklearn.nowhere.Thing, and scikit-learn is not "
        "installed. Install scikit-learn, or fit again."
    )


def test_a_file_whose_parts_are_all_here_is_of_no_other_release():
    assert other_releases.of_another_release(Path("m"), b"no archive", ["numpy.dtype"]) is None
