"""New rows are scored with the balls of a hunt as the hunt itself placed them."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cli.conftest import Run, message
from cli.test_hunt import payments
from rareclass.verbs.hunt import files


@pytest.mark.parametrize("kernel", [("none",), ("gaussian", "--width", "2")])
@pytest.mark.thorough
def test_scores_are_the_depths_that_the_hunt_found(
    tmp_path: Path, rareclass: Run, kernel: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_draw", lambda folder, hunt: [])  # most of the time, and no matter
    data, folder, out = tmp_path / "data.csv", tmp_path / "found", tmp_path / "s.parquet"
    table = payments()
    table.write_csv(data)
    words = ("--kernel", *kernel, "--c1", "1", "--c2", "1e-4", "--folds", "3", "--top", "120")
    labels = ("--target", "checked", "--rare", "fraud", "--cleared", "ok")
    result = rareclass("hunt", data, *labels, *words, "-o", folder)
    assert result.exit_code == 0, result.output
    new = table.drop("checked")
    new.write_csv(tmp_path / "new.csv")
    result = rareclass("score", folder, tmp_path / "new.csv", "-o", out)
    assert result.exit_code == 0, result.output
    scores = pl.read_parquet(out)
    found = pl.read_csv(folder / "found.csv")
    assert len(found) == 120
    at = scores[(found["row"] - 1).to_numpy()]
    np.testing.assert_allclose(at["score"], found["depth"], atol=1e-9)
    np.testing.assert_array_equal(at["called_rare"], found["found"] == 1)
    new[:20].with_columns(amount=pl.lit(1e6), country=pl.lit("??")).write_csv(data)
    words = ("score", folder, data, "-o", out, "--overwrite")
    assert "amount (20, 100.0%)" in " ".join(rareclass(*words).stdout.split())
    assert "are unlike any of training" in message(rareclass(*words, "--strict"))
    assert "near its centre in all columns" in message(rareclass(*words, "--explain", 1))
    result = rareclass("show", folder)
    assert result.exit_code == 0, result.output
    assert "Rare class: checked = fraud" in result.stdout


def test_a_damaged_file_of_balls_is_refused(tmp_path: Path, rareclass: Run) -> None:
    (tmp_path / "hunt.json").write_text("{}")
    (tmp_path / "balls.skops").write_bytes(b"PK nothing")
    payments().write_csv(tmp_path / "new.csv")
    words = ("score", tmp_path, tmp_path / "new.csv", "-o", tmp_path / "s.csv")
    assert "is damaged or cut short" in message(rareclass(*words))
