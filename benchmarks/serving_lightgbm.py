"""LightGBM behind the service of rareclass: `python -m benchmarks.serving_lightgbm FOLDER`."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import polars as pl

from rareclass.serving import Address
from rareclass.serving.live_model import LiveModel, RowScores
from rareclass.serving.service import Settings, serve
from rareclass.tables.columns import Column

_BOOSTER = "booster.txt"


def save(folder: Path, X: np.ndarray, y: np.ndarray) -> None:
    """Fit with all defaults and write the trees."""
    folder.mkdir(exist_ok=True)
    model = lightgbm.LGBMClassifier(random_state=0, verbose=-1).fit(X, y)
    model.booster_.save_model(folder / _BOOSTER)


class ServedBooster:
    """A booster of numbers behind the interface of `ServedModel`."""

    target, classes = "target", ("0", "1")
    choices: Mapping[str, Sequence[str]] = {}
    score_edges = np.linspace(0.0, 1.0, 11)
    facts: Mapping[str, Any] = {"method": "lightgbm"}

    def __init__(self, folder: Path) -> None:
        self._booster = lightgbm.Booster(model_file=folder / _BOOSTER)
        names = [f"x{k:02}" for k in range(self._booster.num_feature())]
        self.columns: Sequence[Column] = [Column(name, "number", "", "number") for name in names]
        self.example: Mapping[str, Any] = dict.fromkeys(names, 0.0)
        self.name, self.drift = folder.name, self  # nothing is known of rows unlike training

    def answer(self, rows: pl.DataFrame) -> RowScores:
        """Probabilities of typed rows, by one thread."""
        scores = self._booster.predict(rows.to_numpy(), num_threads=1)
        called = (scores > 0.5).astype(np.intp)
        percentile = np.interp(scores, self.score_edges, np.linspace(0.0, 100.0, 11))
        columns = {
            "score": scores,
            "probability": scores,
            "decision": [self.classes[k] for k in called.tolist()],
            "called_rare": called == 1,
            "percentile": percentile,
        }
        return RowScores(called, pl.DataFrame(columns))

    def add(self, rows: pl.DataFrame, n_alerts: int) -> bool:
        """Count nothing: it is never time to look at the rows."""
        return False


def main() -> int:
    """Serve the booster of a folder at a free port."""
    serve(
        LiveModel(sys.argv[1], ServedBooster),
        Address(port=0),
        Settings(),
        announce=lambda address: print(f"Serving at {address.url}", flush=True),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
