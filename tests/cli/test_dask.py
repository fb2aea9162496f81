"""Commands on the workers of a Dask cluster."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cli.conftest import Run, message, output_of
from faults import refusal
from rareclass.errors import ErrorKind, InputError
from rareclass.fit import rows_elsewhere as cluster
from rareclass.model.score_file import Scorer

# Slow as a whole: `make test-rest` runs it.
pytestmark = pytest.mark.sampled(0)

distributed = pytest.importorskip("distributed", reason='pip install "rareclass[dask]"')


@pytest.fixture(scope="module")
def address():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as workers:
        yield workers.scheduler_address


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of three files with numbers, words, codes, copies and rows without a label."""
    path, rng = tmp_path_factory.mktemp("table"), np.random.default_rng(0)
    for k, n in enumerate((500, 30, 400)):
        X = rng.normal(size=(n, 3)).round(2)
        frame = pl.DataFrame(
            {
                **{f"c{j}": X[:, j] for j in range(3)},
                "colour": np.where(X[:, 2] > 0, "red", "blue"),
                "code": [f"k{v}" for v in rng.integers(0, 60, n)],
                "y": np.where(X[:, 0] ** 2 + X[:, 1] / 2 > 3.5, "fraud", "ok"),
            }
        )
        frame = pl.concat([frame, frame[:9]])
        frame = frame.with_columns(pl.when(pl.int_range(pl.len()) != 5).then("y").alias("y"))
        frame.write_parquet(path / f"part-{k}.parquet", row_group_size=150)
    return path


@pytest.mark.parametrize("method", ["rankrc", pytest.param("mibc", marks=pytest.mark.thorough)])
def test_a_fit_on_workers_is_the_one_here(rareclass: Run, folder, tmp_path, address, method):
    told = []
    option = "--lam" if method == "rankrc" else "--cost"
    for name, more in (("here", ()), ("there", ("--dask", address))):
        done = rareclass(
            "fit", folder, "-t", "y", "--method", method, option, "0.1", "--no-refit",
            "--out", tmp_path / f"{name}.rareclass", "--json", tmp_path / name, *more,
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        told.append(json.loads((tmp_path / name).read_text()))
    assert "the model is trained on 2 Dask workers" in " ".join(done.output.split())
    here, there = told
    for name in ("thresholds", "n_rare", "n_copies_collapsed", "quantiles"):
        assert there[name] == pytest.approx(here[name], rel=1e-8), name
    for name, values in here["held_out"].items():
        if isinstance(values, float | list):
            assert there["held_out"][name] == pytest.approx(values, rel=1e-8), name


@pytest.mark.parametrize("memory", [(), ("--memory", "100MB")])
def test_members_are_learned_on_workers(rareclass: Run, folder, tmp_path, address, memory):
    told = []
    members = ("--members", "logistic regression,mibc", "--time-budget", "100", *memory)
    for name, more in (("here", ()), ("there", ("--dask", address))):
        done = rareclass(
            "fit", folder, "-t", "y", *members, "--out", tmp_path / f"{name}.rareclass",
            "--json", tmp_path / name, *more,
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        told.append(json.loads((tmp_path / name).read_text()))
    assert "the members are trained on 2 Dask workers" in " ".join(done.output.split())
    here, there = told
    assert there["held_out"] == here["held_out"]
    assert there["thresholds"] == here["thresholds"]


def test_what_cannot_be_learned_on_workers_is_refused(
    rareclass: Run, folder, tmp_path, address, monkeypatch
):
    monkeypatch.setattr(cluster, "_PATIENCE", 0.3)
    table = tmp_path / "t.csv"
    pl.read_parquet(folder / "part-0.parquet").write_csv(table)
    rankrc = ("--method", "rankrc")
    nowhere = "tcp://127.0.0.1:9"
    for data, more, kind, facts in (
        (table, (*rankrc, "--dask", address), ErrorKind.FILE_FORMAT, (table.name, "Parquet")),
        (folder, (*rankrc, "--dask", "here"), ErrorKind.SETTING, ("--dask here",)),
        (folder, (*rankrc, "--dask", nowhere), ErrorKind.CONNECTION, ("--dask", nowhere)),
    ):
        words = ("fit", data, "-t", "y", "--out", tmp_path / "m.rareclass", *more)
        refusal(rareclass(*words), kind, *facts)
        assert not (tmp_path / "m.rareclass").exists()


@pytest.fixture(scope="module")
def model(rareclass: Run, folder, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.rareclass"
    output_of(rareclass(
        "fit", folder, "-t", "y", "--method", "rankrc", "--lam", "0.1", "--holdout", "0", "-o",
        path,
    ))  # fmt: skip
    return path


def test_workers_score_a_part_each(rareclass: Run, folder, model, tmp_path, address):
    more = ("--id", "code", "--explain", "1")
    rareclass("score", model, folder, "--out", tmp_path / "here.parquet", *more)
    out = tmp_path / "there"
    words = ("score", model, folder, "--out", out, "--dask", address)
    output_of(rareclass(*words, *more))
    assert len(list(out.glob("part-*.parquet"))) > 2
    here, there = pl.read_parquet(tmp_path / "here.parquet"), pl.read_parquet(out / "*.parquet")
    assert there.columns == here.columns
    np.testing.assert_allclose(there["score"], here["score"], rtol=1e-9, atol=1e-12)
    assert there["code"].to_list() == here["code"].to_list()
    assert there["called_rare"].to_list() == here["called_rare"].to_list()
    assert "exists already" in " ".join(rareclass(*words).output.split())
    output_of(rareclass(*words, "--overwrite", "--json", tmp_path / "told"))
    again = pl.read_parquet(out / "*.parquet")
    assert again["row"].to_list() == list(range(1, len(here) + 1))
    assert json.loads((tmp_path / "told").read_text())["n_rows"] == len(here)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["here.parquet", "there", "told"]


def test_scores_appear_whole_or_not_at_all(
    rareclass: Run, folder, model, tmp_path, address, monkeypatch
):
    write = Scorer.write

    def fails(self, file, path, seen):
        if seen.n_rows > 500:
            raise InputError("row 501 cannot be scored.", "Leave it out.")
        return write(self, file, path, seen)

    monkeypatch.setattr(Scorer, "write", fails)
    done = message(rareclass("score", model, folder, "--out", tmp_path / "s", "--dask", address))
    assert "row 501 cannot be scored." in done
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_else_stays(rareclass: Run, folder, model, tmp_path, address):
    (tmp_path / "notes.txt").write_text("mine")
    for out, more, kind, fact in (
        (tmp_path, ("--overwrite",), ErrorKind.EXISTING_FILE, "'notes.txt'"),
        (tmp_path / "s.parquet", (), ErrorKind.COMBINATION, "s.parquet"),
        (tmp_path / "s", ("--top", "5"), ErrorKind.COMBINATION, "--top"),
        (folder, ("--overwrite",), ErrorKind.EXISTING_FILE, folder.name),
    ):
        words = ("score", model, folder, "--out", out, "--dask", address, *more)
        refusal(rareclass(*words), kind, fact)
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]
