"""Loads a model file and scores a table with `pip install rareclass` alone: `make test-alone`.

No test of the usual run: it is a plain script, for an environment without pytest.
"""

import io
import sys
import tarfile
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parent.parent / "golden" / "0.1.0"
# What training from the command line needs, and a scoring service need not have.
TRAINING = ("typer", "rich", "skrub", "pandas", "matplotlib", "jinja2", "fsspec", "onnx", "pytest")


def main() -> None:
    """Score rows as a file, a polars and a pyarrow table, and one row again and again."""
    there = [name for name in TRAINING if find_spec(name)]
    assert not there, f"this environment has {there}"
    begun = time.perf_counter()
    import rareclass

    with tempfile.TemporaryDirectory() as folder:
        for name in ("models-auto", "models-auto-all"):
            with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
                archive.extractall(folder, filter="data")
        models = Path(folder) / "models"
        model = rareclass.load(models / "auto.skops")
        loaded = time.perf_counter()
        rows = GOLDEN / "rows" / "orders.csv"
        scores = model.score_samples(rows)
        expected = np.genfromtxt(io.BytesIO((models / "auto.csv").read_bytes()), delimiter=",",
                                 names=True, dtype=None, encoding="utf-8")  # fmt: skip
    np.testing.assert_allclose(scores, expected["score"], rtol=1e-4)
    import polars as pl

    table = pl.read_csv(rows, infer_schema=False)
    np.testing.assert_array_equal(model.score_samples(table), scores)
    np.testing.assert_array_equal(model.score_samples(table.to_arrow()), scores)
    assert model.predict_proba(table).shape == (len(scores), 2)
    learned = [name for name in sys.modules if name.startswith("rareclass.ensemble.race")]
    assert not learned, "what members are learned by was imported"
    print(f"imported and loaded in {loaded - begun:.2f} s; {len(scores)} rows scored as they were")


if __name__ == "__main__":
    main()
