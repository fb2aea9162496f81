"""``rareclass show``: what a model file holds, and what is known of the model."""

import math
import re
import zipfile
from pathlib import Path
from typing import Any

from rareclass.model.model import HUNT_SUMMARY, open_model
from rareclass.model.model_file import ModelFile
from rareclass.model.targets import decision_of
from rareclass.stream.checkpoint import is_checkpoint

# Of the metadata, as they are.
_FACTS = (
    "method", "format", "target", "target_kind", "rare_label", "rest_label", "n_rare", "levels",
    "level_counts", "label_counts", "n_rows", "n_copies_collapsed", "copies_count",
    "n_rows_without_target", "groups", "time", "seed", "date", "versions", "holdout",
    "trained_on_all_rows", "estimated_by", "objective", "time_budget", "leaderboard", "also_tried",
    "importances", "lam", "width", "n_landmarks", "solver", "cost",
)  # fmt: skip


def describe(path: Path) -> dict[str, Any]:
    """What a model file of ``rareclass fit`` holds, or a folder of a stream or a hunt.

    Plain data: facts of the training as the file has them, the estimate, the columns, the
    thresholds with their rule, whether there are probabilities and held-out scores, the size.

    Raises `InputError` where it is neither.
    """
    content = open_model(path)
    known = {name: content.metadata[name] for name in _FACTS if name in content.metadata}
    decision = decision_of(content.model, content.metadata)
    held_out = content.held_out
    return {
        "file": str(path),
        "bytes": _size(path),
        "kind": _kind(path),
        "model": type(content.model).__name__,
        **known,
        "columns": _columns(content),
        "estimate": content.metadata.get("held_out"),
        "classes": list(decision.names),
        "thresholds": [float(each) for each in decision.thresholds],
        "rule": content.metadata.get("rule"),
        "probabilities": _probabilities(content),
        "held_out_scores": None if held_out is None else len(held_out.scores),
        "rare_cases": None if content.cases is None else int((content.cases.number > 0).sum()),
        "needs": _needs(path),
        "notices": list(content.notices),
    }


def _probabilities(content: ModelFile) -> dict[str, Any] | None:
    """How probabilities were learned, and at which share of rare rows; None for none."""
    calibration = content.calibration
    if calibration is None:
        return None
    trained = calibration.trained_prevalence
    odds = trained / (1.0 - trained) * math.exp(calibration.shift)
    return {
        "method": calibration.method,
        "prevalence": odds / (1.0 + odds),
        "trained_prevalence": trained,
    }


def _needs(path: Path) -> list[str]:
    """The packages whose types a file names; a checkpoint has none but ours."""
    if not path.is_file():
        return ["rareclass"]
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            return ["rareclass"]
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        if "schema.json" not in archive.namelist():
            return ["rareclass"]
        named = set(re.findall(rb'"__module__": "(\w+)', archive.read("schema.json")))
    return sorted({"skops", *(name.decode() for name in named)} - {"builtins", "_codecs", "json"})


def _columns(content: ModelFile) -> list[dict[str, Any]]:
    """Name, kind and treatment of each column, used or not."""
    told = content.metadata["columns"]
    if told and "kind" in told[0]:
        facts = ("name", "kind", "treatment", "n_missing", "n_distinct", "reads_as")
        return [{name: column[name] for name in facts if name in column} for column in told]
    known = getattr(content.encoder, "columns", ())
    return [
        {"name": column.name, "kind": column.kind, "treatment": column.treatment}
        for column in known
    ]


def _kind(path: Path) -> str:
    if (path / HUNT_SUMMARY).is_file():
        return "hunt"
    return "stream" if is_checkpoint(path) else "model"


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(each.stat().st_size for each in path.iterdir() if each.is_file())
    return path.stat().st_size
