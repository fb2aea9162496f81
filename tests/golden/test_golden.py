"""Model files and checkpoints of every released version load, score to the same, and go on.

The files were written by `golden.make`, once by each version. "The same" is to 1e-12: on the
machine that wrote them it is to the bit, on another one BLAS may round otherwise. Of float32 it is
to 1e-5, percentiles to 1e-4: exponentials in it are rounded as this version does.
"""

import json
import shutil
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from packaging.version import Version

from golden.ways_in import (
    CASES,
    HERE,
    evaluate_file,
    newest_checkpoint,
    open_model,
    read_checkpoint,
    relocate,
    run,
    score_file,
    tables_beside,
    unpack,
)
from rareclass.errors import InputError

RTOL, ATOL = 1e-12, 1e-13
NARROW = 1e7  # by which float32 is less exact
BETWEEN = 10.0  # and percentiles, which lie between near scores, still less
VERSIONS = sorted(path.parent.name for path in HERE.glob(f"*/{CASES}"))


def cases(kind: str) -> list[Any]:
    """Return version and name of each case, from the lists that lie beside the files."""
    return [
        pytest.param(version, name, id=f"{version}-{name}")
        for version in VERSIONS
        for name in json.loads((HERE / version / CASES).read_text())[kind]
    ]


def assert_close(found: Any, expected: Any, where: str = "", times: float = 1.0) -> None:
    """Check nested dictionaries, lists and arrays: numbers closely, all else exactly."""
    rtol, atol = times * RTOL, times * ATOL
    if isinstance(expected, dict):
        assert isinstance(found, dict), where
        assert list(found) == list(expected), where
        for key in expected:
            assert_close(found[key], expected[key], f"{where}.{key}", times)
    elif isinstance(expected, list):
        assert isinstance(found, list), where
        assert len(found) == len(expected), where
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_close(one, other, f"{where}[{place}]", times)
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), where
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol, atol, err_msg=where)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=where)
    elif isinstance(expected, float):
        assert isinstance(found, float | int), where  # counts became whole numbers
        assert found == pytest.approx(expected, rel=rtol, abs=atol, nan_ok=True), where
    else:
        assert (type(found), found) == (type(expected), expected), where


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return for each version the folder with its files, where they may be written to."""
    folders = {version: tmp_path_factory.mktemp("golden") / version for version in VERSIONS}
    for version, folder in folders.items():
        unpack(HERE / version, folder)
    return folders


def case_of(folder: Path, kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / CASES).read_text())[kind][name]
    return found


def check_scores(model: Path, beside: Path, rows: Path, tmp_path: Path) -> None:
    """Check that a model loads without a notice and scores and measures rows as it did."""
    content = open_model(model)
    # A later scikit-learn is noticed, and no reason for other scores.
    assert all("made with scikit-learn" in notice for notice in content.notices)
    score_file(content, rows, tmp_path / "scores.csv", None)
    found, expected = (
        pl.read_csv(path) for path in (tmp_path / "scores.csv", Path(f"{beside}.csv"))
    )
    assert found.schema == expected.schema
    times = NARROW if "float32" in model.stem else 1.0
    before = expected.to_dict(as_series=False)
    after = found.to_dict(as_series=False)
    for column, cells in before.items():
        more = BETWEEN if times > 1.0 and column == "percentile" else 1.0
        assert_close(after[column], cells, f"scores.{column}", more * times)
    measures = json.loads(Path(f"{beside}.json").read_text())
    measured = json.loads(json.dumps(evaluate_file(content, rows).as_plain_data()))
    # There may be more of them one day.
    assert_close({name: measured[name] for name in measures}, measures, "measures", times)


def test_no_file_is_passed_over(unpacked: dict[str, Path]) -> None:
    assert "0.1.0" in VERSIONS
    for folder in unpacked.values():
        listed = json.loads((folder / CASES).read_text())
        assert {path.stem for path in (folder / "models").glob("*.skops")} == set(listed["models"])
        streams = {path.name for path in (folder / "streams").iterdir() if path.is_dir()}
        assert streams == set(listed["streams"])


@pytest.mark.parametrize(("version", "name"), cases("models"))
def test_a_model_scores_as_it_did(
    version: str, name: str, unpacked: dict[str, Path], tmp_path: Path
) -> None:
    folder = unpacked[version]
    beside = folder / "models" / name
    rows = folder / "rows" / case_of(folder, "models", name)["rows"]
    try:
        check_scores(Path(f"{beside}.skops"), beside, rows, tmp_path)
    except InputError as error:
        # With the oldest releases: skrub has a part of its encoders since 0.11 only.
        if Version(metadata.version("skrub")) < Version("0.11") and "beside skrub" in str(error):
            pytest.skip(str(error))
        raise


@pytest.mark.parametrize(("version", "name"), cases("streams"))
def test_a_checkpoint_scores_as_it_did(
    version: str, name: str, unpacked: dict[str, Path], tmp_path: Path
) -> None:
    folder = unpacked[version]
    beside = folder / "streams" / name
    check_scores(
        beside, beside, folder / "rows" / case_of(folder, "streams", name)["rows"], tmp_path
    )


@pytest.mark.parametrize(("version", "name"), cases("streams"))
def test_a_stream_goes_on_as_it_did(
    version: str,
    name: str,
    unpacked: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, streams = unpacked[version] / "rows", unpacked[version] / "streams"
    case = case_of(unpacked[version], "streams", name)
    folder = tmp_path / "run"
    shutil.copytree(streams / name, folder)
    before, end = newest_checkpoint(folder), streams / f"{name}.end.npz"
    monkeypatch.chdir(rows)
    relocate(before, str((rows / case["words"][0]).resolve()))
    stdin = None if case["stdin"] is None else (rows / case["stdin"]).read_bytes()
    said = run("stream", *case["words"], "--checkpoint", folder, stdin=stdin).stdout
    # Begun anew, it would end the same.
    assert "Going on after row 150" in said
    besides = json.loads(Path(f"{streams / name}.end.json").read_text())
    assert newest_checkpoint(folder).name == besides.pop("checkpoint")
    assert newest_checkpoint(folder) != before
    assert (folder / "rejected.jsonl").read_text() == besides.pop("rejected")
    if besides:
        tables = tables_beside(folder)
        tables["log"] = {name: tables["log"][name] for name in besides["log"]}  # it may have more
        assert_close(tables, besides)
    relocate(newest_checkpoint(folder), case["words"][0])
    # With the number of the format, and the state of every generator of random numbers.
    found, expected = read_checkpoint(newest_checkpoint(folder)), read_checkpoint(end)
    # There may be more of it one day.
    state = found["json"]["state"]
    found["json"]["state"] = {key: state[key] for key in expected["json"]["state"]}
    found["arrays"] = {name: found["arrays"][name] for name in expected["arrays"]}
    assert_close(found, expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_earlier_hunt_is_known_and_replaced_by_its_like(
    version: str, unpacked: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "found"
    shutil.copytree(unpacked[version] / "hunt", folder)
    words = json.loads((unpacked[version] / CASES).read_text())["hunt"]["words"]
    earlier = json.loads((folder / "hunt.json").read_text())
    earlier_rows = pl.read_csv(folder / "found.csv")
    monkeypatch.chdir(unpacked[version] / "rows")
    run("hunt", *words, "--out", folder, "--overwrite")
    found = json.loads((folder / "hunt.json").read_text())
    # What there was is there still, and there may be more.
    assert earlier.keys() <= found.keys()
    assert datetime.fromisoformat(earlier["date"]) < datetime.fromisoformat(found["date"])
    assert earlier["settings"].pop("n_balls") == 1
    assert found["settings"].pop("n_balls") is None  # chosen since
    for key in ("options", "settings", "counts", "columns"):
        assert_close(found[key], earlier[key], key)
    assert set(earlier["files"]) <= set(found["files"])
    assert found["chosen"].keys() >= earlier["chosen"].keys()
    assert [ball.keys() for ball in found["balls"]] == [ball.keys() for ball in earlier["balls"]]
    rows = pl.read_csv(folder / "found.csv")
    assert rows.select(earlier_rows.columns).schema == earlier_rows.schema
    assert set(rows["row"]) == set(earlier_rows["row"])
