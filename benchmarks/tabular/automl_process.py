"""The other end of `automl`: run by an interpreter that has the library, and nothing of us.

Orders are lines of JSON on standard input, answers lines on standard output; what the libraries
print goes to standard error. The process ends, and removes its folder, with its input.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

TARGET = "target"


def autogluon(table: pd.DataFrame, budget: float, seed: int, folder: Path) -> Any:
    """Best quality within the time, on one core, its folds one after the other."""
    from autogluon.tabular import TabularPredictor

    predictor = TabularPredictor(
        TARGET, "binary", "average_precision", path=str(folder / "models"), verbosity=1
    )
    return predictor.fit(
        table,
        presets="best_quality",
        time_limit=budget,
        num_cpus=1,
        ag_args_ensemble={"fold_fitting_strategy": "sequential_local", "model_random_seed": seed},
    )


def flaml(table: pd.DataFrame, budget: float, seed: int, folder: Path) -> Any:
    """The library's own search within the time, on one core."""
    from flaml import AutoML

    model = AutoML()
    model.fit(
        table.drop(columns=TARGET),
        table[TARGET],
        task="classification",
        metric="ap",
        time_budget=budget,
        n_jobs=1,
        seed=seed,
        verbose=0,
    )
    return model


class RealMLP:
    """RealMLP with tuned defaults (Holzmueller, Grinsztajn and Steinwart, 2024), on one core.

    As its documentation advises where probabilities matter, there is no label smoothing, and the
    best epoch is that of the least log loss, on a fifth of the rows that it holds out. Words are
    categories.
    """

    def __init__(self, table: pd.DataFrame, budget: None, seed: int, folder: Path) -> None:
        from pytabkit import RealMLP_TD_Classifier

        self.words = table.select_dtypes(exclude="number").columns
        self.model = RealMLP_TD_Classifier(
            device="cpu",
            random_state=seed,
            n_threads=1,
            use_ls=False,
            val_metric_name="cross_entropy",
        )
        self.model.fit(self._typed(table.drop(columns=TARGET)), table[TARGET])

    def predict_proba(self, rows: pd.DataFrame) -> Any:
        """Probabilities of both classes."""
        return self.model.predict_proba(self._typed(rows))

    def _typed(self, rows: pd.DataFrame) -> pd.DataFrame:
        return rows.astype(dict.fromkeys(self.words, "category"))


LIBRARIES: dict[str, Callable[[pd.DataFrame, Any, int, Path], Any]] = {
    "autogluon": autogluon,
    "flaml": flaml,
    "realmlp": RealMLP,
}
MODULES = {"autogluon": "autogluon.tabular", "flaml": "flaml", "realmlp": "pytabkit"}


def answer(order: dict[str, Any], state: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Fit on the rows of a file, or write the probabilities of another's."""
    table = pd.read_parquet(order["file"])
    if order["do"] == "fit":
        library = LIBRARIES[order["library"]]
        start = time.perf_counter()
        state["model"] = library(table, order["budget"], order["seed"], folder)
        return {"seconds": time.perf_counter() - start}
    chances = pd.DataFrame(state["model"].predict_proba(table)).iloc[:, 1]
    file = folder / "probabilities.parquet"
    pd.DataFrame({"probability": chances.to_numpy()}).to_parquet(file)
    return {"file": str(file)}


def main() -> None:
    """Answer until the input ends; a fault ends it as well, after it was told."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import_module(MODULES[sys.argv[1]])  # before the first fit is timed
    with tempfile.TemporaryDirectory(prefix="automl-") as name:
        state: dict[str, Any] = {}
        begun = {"folder": name, "version": version(MODULES[sys.argv[1]])}
        print(json.dumps(begun), file=answers, flush=True)
        for line in sys.stdin:
            try:
                found = answer(json.loads(line), state, Path(name))
            except Exception as error:
                message = f"{type(error).__name__}: {error}"
                print(json.dumps({"error": message}), file=answers, flush=True)
                raise
            print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
