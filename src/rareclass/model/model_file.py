"""A fitted model on disk: JSON and arrays, by kinds that are names of ours.

A model file is a zip file of arrays with one JSON text among them (`rareclass.stored`); nothing in
it can execute. Models, hunts and streams have the same form.
"""

import zipfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

from rareclass.decide.calibration.calibration import Calibration, LevelCalibration
from rareclass.errors import ErrorKind, InputError
from rareclass.files import replacing
from rareclass.model.archive import UNREADABLE, DamagedArchiveError, check_archive, seal
from rareclass.model.facts import facts_as_json, facts_from_json
from rareclass.model.kinds import STORED
from rareclass.model.model import Model, damaged, in_brief
from rareclass.model.rare_cases import RareCases
from rareclass.model.soundness import check_parts, finite_vector
from rareclass.model.threshold import ScoredRows
from rareclass.stored import Stored, pack, read_stored, unpack, write_stored

FORMAT = 2
# Files that the folder of a hunt holds: its summary, and its balls as a model file.
HUNT_SUMMARY, HUNT_MODEL = "hunt.json", "balls.rareclass"
_MARK = "rareclass model"


def save_model(path: Path, model: Model) -> None:
    """Write a model file; `path` is replaced only once the new file is whole.

    Raises `InputError` when `path` cannot be written. `TypeError` when the model holds an object of
    a class that `STORED` does not list: nothing is written then.
    """
    parts = {
        "facts": facts_as_json(model.facts),
        "encoder": model.encoder,
        "estimator": model.estimator,
        "thresholds": np.asarray(model.thresholds, dtype=np.float64),
        "calibration": model.calibration,
        "held_out": model.held_out,
        "cases": model.cases,
    }
    tree, arrays = pack(parts, STORED)
    whole = {_MARK: FORMAT, "parts": tree}
    with replacing(path) as temporary:
        with temporary.open("wb") as file:
            write_stored(file, Stored(whole, arrays), compress=True)
        seal(temporary)


def load_model(path: Path) -> Model:
    """Open a model file; nothing in it is executed.

    Raises `InputError` when the file is missing, is no model file, has another format, or is
    damaged.
    """
    if not path.is_file():
        what = "is not a regular file" if path.exists() else "does not exist"
        what = "is a folder without a checkpoint" if path.is_dir() else what
        raise InputError(
            f"The model file {path} {what}.",
            "Give a file of rareclass fit, or a folder of rareclass stream or hunt.",
            ErrorKind.MISSING_FILE,
        )
    stored = _read_archive(path)
    found = stored.tree[_MARK]
    if found != FORMAT:
        raise InputError(
            f"{path} has format {str(found)[:80]}; rareclass {version('rareclass')} reads format "
            f"{FORMAT} alone.",
            "Fit again, or use the version that made it.",
            ErrorKind.FILE_FORMAT,
        )
    try:
        parts = unpack(stored._replace(tree=stored.tree["parts"]), STORED)
        facts = facts_from_json(parts.pop("facts"))
        model = Model(facts=facts, file=path, **parts)
        _check_content(model)
    except ModuleNotFoundError:
        raise
    except InputError as error:  # what is wrong inside, with the file's name
        raise InputError(f"{path}: {error.message}", error.remedy, error.kind) from error
    except Exception as error:  # the content of a file can be wrong in any way
        raise damaged(path, in_brief(error)) from error
    return model


def check_content(path: Path, model: Model) -> None:
    """Raise `InputError` where a part is none that a training makes: numbers, indices, facts."""
    try:
        _check_content(model)
    except Exception as error:  # the content of a file can be wrong in any way
        raise damaged(path, in_brief(error)) from error


def _check_content(model: Model) -> None:
    """Raise `ValueError` where a part is none that a training makes."""
    held_out, cases = model.held_out, model.cases
    if not isinstance(model.calibration, Calibration | LevelCalibration | None):
        raise ValueError("its calibration is none")
    if not isinstance(held_out, ScoredRows | None) or not isinstance(cases, RareCases | None):
        raise ValueError("its held-out rows or its cases are none")
    for part, methods in ((model.encoder, ("transform",)), (model.estimator, ("score_samples",))):
        if not all(callable(getattr(part, name, None)) for name in methods):
            raise ValueError(f"a {type(part).__name__} stands in a place of another part")
    check_parts(model.encoder, model.estimator, model.calibration)
    if held_out is not None:
        y = finite_vector(held_out.y, "y")
        finite_vector(held_out.scores, "scores", len(y))
        if (
            held_out.weight is not None
            and (finite_vector(held_out.weight, "weight", len(y)) < 0).any()
        ):
            raise ValueError("a weight is below 0")
    if cases is not None:
        cases.check()
    n_codes = model.decision.n_codes
    if np.shape(model.thresholds) != (n_codes - 1,):
        raise ValueError(f"it has not one threshold fewer than {n_codes} classes")
    if np.isnan(np.asarray(model.thresholds, dtype=np.float64)).any():
        raise ValueError("a threshold is no number")


def _read_archive(path: Path) -> Stored:
    """Read the JSON and the arrays of a model file, the archive's bytes checked first."""
    with path.open("rb") as file:
        is_zip = zipfile.is_zipfile(file)
        file.seek(0)
        begins_well = file.read(2) == b"PK"
    if not is_zip and begins_well:
        raise damaged(path)
    no_model = InputError(
        f"{path} is not a model file.", "rareclass fit makes one.", ErrorKind.FILE_FORMAT
    )
    if not is_zip:
        raise no_model
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
        if any(entry.flag_bits & 1 for entry in entries):
            raise InputError(
                f"{path} is an encrypted zip file, not a rareclass model.",
                "rareclass fit makes one.",
                ErrorKind.FILE_FORMAT,
            )
        check_archive(path)
        if "json.npy" not in {entry.filename for entry in entries}:
            raise no_model
        with path.open("rb") as file:
            stored = read_stored(file)
    except DamagedArchiveError as error:
        raise damaged(path, str(error)) from error
    except (*UNREADABLE, ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise damaged(path) from error
    if not isinstance(stored.tree, dict) or _MARK not in stored.tree:
        raise no_model
    return stored
