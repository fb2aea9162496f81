"""Results on disk: one JSON file per benchmark, with what is needed to judge the figures."""

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from rareclass.files import replacing

RESULTS = Path(__file__).parent / "results"
_PACKAGES = (
    "rareclass",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "pyarrow",
    "imbalanced-learn",
    "polars",
    "catboost",
    "lightgbm",
    "mord",
    "xgboost-cpu",
    "xgboost",
    "river",
    "dask",
    "MAPIE",
)


def environment() -> dict[str, Any]:
    """Versions, processor count and date: what a figure depends on besides the code."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def write(name: str, body: dict[str, Any], file: str | Path | None = None) -> Path:
    """Write `body` with the environment to results/NAME.json, or to `file`.

    The file appears whole or not at all: it is written under a temporary name in the same
    folder and then renamed.
    """
    path = RESULTS / f"{name}.json" if file is None else Path(file)
    text = json.dumps({"benchmark": name, **environment(), **body}, indent=1, default=plain)
    replace_file(path, (text + "\n").encode())
    return path


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def plain(value: Any) -> Any:
    """numpy values as JSON knows them."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
