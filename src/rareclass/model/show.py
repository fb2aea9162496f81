"""``rareclass show``: what a model file holds, and what is known of the model."""

import math
from pathlib import Path
from typing import Any

from rareclass.encoding.tables import TableEncoder
from rareclass.model.facts import facts_as_json
from rareclass.model.model import Model
from rareclass.model.model_file import HUNT_SUMMARY, open_model
from rareclass.stream.checkpoint import is_checkpoint

_COLUMN_FACTS = ("name", "kind", "treatment", "n_missing", "n_distinct", "reads_as")


def describe(path: Path) -> dict[str, Any]:
    """What a model file of ``rareclass fit`` holds, or a folder of a stream or a hunt.

    Plain data: facts of the training as the file has them, the estimate, the columns, the
    thresholds with their rule, whether there are probabilities and held-out scores, the size.

    Raises `InputError` where it is neither.
    """
    model = open_model(path)
    facts = facts_as_json(model.facts)
    del facts["quantiles"]
    estimate = facts.pop("held_out", None)
    return {
        "file": str(path),
        "bytes": _size(path),
        "kind": _kind(path),
        "model": type(model.estimator).__name__,
        **facts,
        "columns": _columns(model),
        "estimate": estimate,
        "classes": list(model.classes),
        "thresholds": [float(each) for each in model.thresholds],
        "probabilities": _probabilities(model),
        "held_out_scores": None if model.held_out is None else len(model.held_out.scores),
        "rare_cases": None if model.cases is None else int((model.cases.number > 0).sum()),
        "needs": _needs(model),
        "notices": list(model.notices),
    }


def _probabilities(model: Model) -> dict[str, Any] | None:
    """How probabilities were learned, and at which share of rare rows; None for none."""
    calibration = model.rare_calibration
    if calibration is None:
        return None
    trained = calibration.trained_prevalence
    odds = trained / (1.0 - trained) * math.exp(calibration.shift)
    return {
        "method": calibration.method,
        "prevalence": odds / (1.0 + odds),
        "trained_prevalence": trained,
    }


def _needs(model: Model) -> list[str]:
    """Return the packages that scoring takes: skrub only where an encoder of skrub is held."""
    encoder = model.encoder
    if not isinstance(encoder, TableEncoder):
        return ["rareclass"]
    return ["rareclass", "scikit-learn", *(["skrub"] if encoder.vectorizer_ is not None else [])]


def _columns(model: Model) -> list[dict[str, Any]]:
    """Return name, kind and treatment of each column, used or not."""
    return [
        {name: getattr(column, name) for name in _COLUMN_FACTS} for column in model.facts.columns
    ]


def _kind(path: Path) -> str:
    if (path / HUNT_SUMMARY).is_file():
        return "hunt"
    return "stream" if is_checkpoint(path) else "model"


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(each.stat().st_size for each in path.iterdir() if each.is_file())
    return path.stat().st_size
