"""AutoGluon, FLAML and RealMLP, with environments of their own: `make automl-env neural-env`.

AutoGluon pins other versions of what this project uses, and RealMLP needs PyTorch. A process of
that interpreter (`automl_process`) gets the table as a Parquet file, words as words, and gives
probabilities back. AutoGluon and FLAML search by average precision within the seconds that
RareClassifier has. All have one core; the time is that of the fit alone, as for all other methods,
without the start of the interpreter.
"""

import json
import subprocess
import weakref
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from benchmarks.cells import ROOT

ENVIRONMENTS = {"autogluon": "automl", "flaml": "automl", "realmlp": "neural"}
_PROCESS = Path(__file__).with_name("automl_process.py")


def python_of(library: str) -> Path:
    """Return the interpreter that has the library."""
    return ROOT / "build" / ENVIRONMENTS[library] / "bin" / "python"


class OtherInterpreter:
    """An estimator that a process of another interpreter learns and holds.

    Parameters
    ----------
    library : str
        One of `ENVIRONMENTS`.
    time_budget : float or None
        Seconds; None where the library has no such setting.
    seed : int
    """

    seconds_: float
    version_: str

    def __init__(self, library: str, time_budget: float | None, seed: int) -> None:
        self.library, self.time_budget, self.seed = library, time_budget, seed

    def fit(self, X: pl.DataFrame, y: np.ndarray) -> Self:
        """Start the process and let it learn."""
        self._process = subprocess.Popen(
            [python_of(self.library), "-I", _PROCESS, self.library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        weakref.finalize(self, _end, self._process)
        begun = self._answer()
        self._folder, self.version_ = Path(begun["folder"]), begun["version"]
        rows = _renamed(X).with_columns(pl.Series("target", y))
        how = {"library": self.library, "budget": self.time_budget, "seed": self.seed}
        self.seconds_ = self._asked("fit", rows, **how)["seconds"]
        return self

    def predict_proba(self, X: pl.DataFrame) -> np.ndarray:
        """Probabilities of both classes."""
        rare = pl.read_parquet(self._asked("score", _renamed(X))["file"]).to_series().to_numpy()
        return np.column_stack([1.0 - rare, rare]).astype(np.float64)

    def _asked(self, do: str, rows: pl.DataFrame, **how: Any) -> dict[str, Any]:
        """Send an order with a table, and wait for the answer."""
        file = self._folder / "rows.parquet"
        rows.write_parquet(file)
        self._process.stdin.write(json.dumps({"do": do, "file": str(file), **how}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        found = json.loads(line) if line else {"error": f"exit code {self._process.wait()}"}
        if "error" in found:
            raise RuntimeError(f"{self.library}: {found['error']}")
        return found


def _renamed(X: pl.DataFrame) -> pl.DataFrame:
    """Columns called c0, c1, ...: some libraries refuse some names."""
    return X.rename({name: f"c{k}" for k, name in enumerate(X.columns)})


def _end(process: subprocess.Popen[str]) -> None:
    process.stdin.close()
    process.stdout.close()
    process.wait()
