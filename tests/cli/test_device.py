"""``--device``: where kernels of fit and score are worked out, and what is said where none is."""

import sys

import numpy as np
import polars as pl
import pytest

from cli.conftest import Run, message
from rareclass import load
from rareclass.errors import InputError
from rareclass.model import device as verb
from rareclass.model.device import check_dense
from rareclass.rows.devices import ArrayLibrary

FIT = ("--target", "fraud", "--method", "rankrc", "--lam", "2^-4", "--no-refit")


def scores(path):
    return pl.read_csv(path)["score"].to_numpy()


def test_a_model_is_the_same_wherever_it_is_learned_and_scored(
    rareclass: Run, fitted, tmp_path, monkeypatch
):
    done = rareclass("fit", fitted / "train.csv", *FIT, "--out", tmp_path / "here.skops")
    assert done.exit_code == 0, done.output
    rareclass("score", tmp_path / "here.skops", fitted / "new.csv", "--out", tmp_path / "here.csv")
    used = []

    class Strict(ArrayLibrary):
        def put(self, array):
            used.append(array.shape)
            return super().put(array)

    monkeypatch.setattr(verb, "find_device", lambda name: name and Strict("array_api_strict"))
    on = ("--device", "cuda")
    done = rareclass("fit", fitted / "train.csv", *FIT, *on, "--out", tmp_path / "there.skops")
    assert done.exit_code == 0, done.output
    assert used
    used.clear()
    new = fitted / "new.csv"
    for name, more in (("there", on), ("back", ())):
        out = tmp_path / f"{name}.csv"
        done = rareclass("score", tmp_path / "there.skops", new, "--out", out, *more)
        assert done.exit_code == 0, done.output
        assert bool(used) == bool(more)  # a saved model has no device of its own
        np.testing.assert_allclose(scores(out), scores(tmp_path / "here.csv"), atol=1e-8)
        used.clear()
    assert load(tmp_path / "there.skops")._content.model.device is None


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--method", "rankrc", "--device", "cuda"), 'pip install "rareclass[gpu]"'),
        (("--method", "ordinal-rankrc", "--device", "gpu"), "--device gpu names no device"),
        (("--method", "mibc", "--device", "cuda"), "--device cuda belongs to --method rankrc"),
        (("--device", "cuda"), "auto works on the processor"),
        (("--method", "rankrc", "--device", "cuda", "--dask", "local"), "Give one of them"),
    ],
)
def test_where_there_is_no_device_the_remedy_is_named(
    rareclass: Run, train_csv, tmp_path, monkeypatch, more, told
):
    monkeypatch.setitem(sys.modules, "cupy", None)
    out = tmp_path / "model.skops"
    assert told in message(rareclass("fit", train_csv, "--target", "fraud", "--out", out, *more))
    assert not out.exists()


def test_score_without_cupy_names_the_extra(rareclass: Run, fitted, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    asked = ("score", fitted / "model.skops", fitted / "new.csv", "--device", "cuda")
    assert "rareclass[gpu]" in message(rareclass(*asked, "--out", tmp_path / "new.csv"))


def test_a_model_without_a_kernel_and_sparse_rows_are_refused():
    content = verb.ModelFile(None, object(), {})
    with pytest.raises(InputError, match="object works out no kernel there"):
        verb.scoring_on(content, ArrayLibrary("numpy"))
    assert verb.scoring_on(content, None) is content
    with pytest.raises(InputError, match="sparse once they are encoded"):
        check_dense(ArrayLibrary("numpy"), True)
