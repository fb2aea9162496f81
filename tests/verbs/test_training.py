"""Training: copies, and what is refused beforehand."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rareclass.errors import InputError
from rareclass.tables.table_file import open_table
from rareclass.verbs.fit.kernel_methods import RankRCMethod
from rareclass.verbs.fit.training import train
from rareclass.verbs.fit.training_set import FitSettings, TrainingSet, read_training_set


def noise(path: Path, n_copies: int) -> Path:
    """Write 1,000 rows of noise; each of the 20 rare ones stands there `n_copies` times."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(1000, 4)).round(6)
    rare = np.arange(1000) < 20
    rows = np.repeat(np.arange(1000), np.where(rare, n_copies, 1))
    if path.suffix == ".svmlight":
        # Copies with an explicit zero more are copies.
        lines = [
            f"{int(rare[row])} " + " ".join(f"{j}:{v}" for j, v in enumerate(X[row]))
            + (" 7:0" if k % 2 else "") + "\n"
            for k, row in enumerate(rows)
        ]  # fmt: skip
        path.write_text("".join(lines) + "0 7:1\n")
    else:
        table = pl.DataFrame(X[rows], schema=list("abcd"))
        table.with_columns(y=pl.Series(rare[rows].astype(int))).write_csv(path)
    return path


def read(path: Path, **settings: object) -> TrainingSet:
    target = None if path.suffix == ".svmlight" else "y"
    return read_training_set(open_table(path), FitSettings(target=target, **settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", [".csv", ".svmlight"])
def test_copied_rare_rows_do_not_flatter_the_estimate(tmp_path: Path, suffix: str) -> None:
    data = read(noise(tmp_path / f"t{suffix}", 3))
    # Fewer than a tenth of the rows.
    assert data.n_copies == 40
    assert data.rare.sum() == 20
    assert data.target.n_rare == 60
    assert data.weight is not None
    np.testing.assert_array_equal(data.weight, np.where(data.rare, 3, 1))
    trained = train(data, FitSettings(target="y", method=RankRCMethod(0.01)))
    assert trained.estimate is not None
    assert trained.estimate.measures[0].value < 0.8
    assert any("15 rare rows held out are copies of 5 distinct" in note for note in trained.notes)


@pytest.mark.parametrize("suffix", [".csv", ".svmlight"])
def test_without_copies_nothing_is_weighed(tmp_path: Path, suffix: str) -> None:
    data = read(noise(tmp_path / f"t{suffix}", 1))
    assert (data.n_copies, data.weight) == (0, None)
    dropped = read(noise(tmp_path / f"t{suffix}", 3), weigh_copies=False)
    assert (dropped.n_copies, dropped.weight, dropped.rare.sum()) == (40, None, 20)


def test_rows_of_both_classes_stay_two(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "1.5,0\n" * 3 + "1.5,1\n" * 2 + "2.5,0\n")
    data = read(path)
    assert data.rare.tolist() == [False, True, False]
    assert data.weight is not None
    assert data.weight.tolist() == [3, 2, 1]


def test_labels_are_told_apart_by_case(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{k}.5,{'aAb'[k % 3]}\n" for k in range(30)))
    data = read(path, positive="a")
    assert data.rare.sum() == data.target.n_rare == 10


def test_parquet_categories_keep_the_label_none(tmp_path: Path) -> None:
    labels = pl.Series("y", ["none", "x", "x"] * 10, dtype=pl.Categorical)
    pl.DataFrame({"x": np.arange(30) + 0.5, "y": labels}).write_parquet(tmp_path / "t.parquet")
    data = read(tmp_path / "t.parquet")
    assert (data.target.rare_class.label, data.target.n_rare, data.n_unlabelled) == ("none", 10, 0)


def test_too_little_kernel_memory_is_refused(tmp_path: Path) -> None:
    data = read(noise(tmp_path / "t.csv", 1))
    with pytest.raises(InputError, match="Raise --memory"):
        train(data, FitSettings(target="y", method=RankRCMethod(), kernel_memory=1 << 20))


def test_a_mistake_of_the_program_is_not_called_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("a bug")

    data = read(noise(tmp_path / "t.csv", 1))
    monkeypatch.setattr("rareclass.verbs.fit.kernel_methods.RankRCCV.fit", fail)
    with pytest.raises(ValueError, match="a bug"):
        train(data, FitSettings(target="y", method=RankRCMethod()))
