"""Load the demo model and score its table with `pip install rareclass` alone: `make test-alone`.

No test of the usual run: it is a plain script, for an environment without pytest.
"""

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

# What training from the command line needs, and a scoring service need not have.
TRAINING = ("typer", "rich", "pandas", "matplotlib", "jinja2", "fsspec", "onnx", "pytest")


def main(folder):
    there = [name for name in TRAINING if find_spec(name)]
    assert not there, f"this environment has {there}"
    begun = time.perf_counter()
    import polars as pl

    import rareclass

    model = rareclass.load(folder / "model.rareclass")
    loaded = time.perf_counter()
    rows = folder / "last_weeks.csv"
    scores = model.score_samples(rows)
    expected = pl.read_csv(folder / "scores.csv")["score"].to_numpy()
    np.testing.assert_allclose(scores, expected, rtol=1e-9)
    table = pl.read_csv(rows, infer_schema=False)
    np.testing.assert_array_equal(model.score_samples(table), scores)
    np.testing.assert_array_equal(model.score_samples(table.to_arrow()), scores)
    assert model.predict_proba(table).shape == (len(scores), 2)
    learned = [name for name in sys.modules if name.startswith("rareclass.ensemble.cross_fitting")]
    assert not learned, "what members are learned by was imported"
    print(f"imported and loaded in {loaded - begun:.2f} s; {len(scores)} rows scored as they were")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
