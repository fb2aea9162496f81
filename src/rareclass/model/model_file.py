"""A fitted model on disk: JSON and arrays, by kinds that are names of ours.

A model file is a zip file of arrays with one JSON text among them (`rareclass.stored`); nothing in
it can execute. Models, hunts and streams have the same form. A file opens without executing
anything, but its numbers may be anything: damaged, exchanged, or made up to do harm. Compiled code
takes indices at their word and reads wherever they point. So each class whose arrays are indices,
or go to compiled code, has a method ``check_parts``, which raises `ValueError`; `check_model` calls
it on every part of a model, and looks at numbers.
"""

import zipfile
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from rareclass.decide.calibration import Calibration, LevelCalibration
from rareclass.errors import ErrorKind, InputError
from rareclass.model.archive import (
    DamagedArchiveError,
    damaged,
    in_brief,
    read_archive,
    write_archive,
)
from rareclass.model.facts import RareCases, ScoredRows, facts_as_json, facts_from_json
from rareclass.model.model import Model
from rareclass.model.table_scorer import Encoder, Ranker
from rareclass.stored import Kinds, Stored, pack, unpack

FORMAT = 7
# Files that the folder of a hunt holds: its summary, and the score of its list as a model file.
HUNT_SUMMARY, HUNT_MODEL = "hunt.json", "score.rareclass"
_MARK = "rareclass model"
# Attributes of this package that say by NaN that there is nothing to say.
_MAY_BE_NAN = {
    # What a training tells of itself; no score depends on it.
    ("CombinedRanking", "feature_importances_"),
    # Infinite where a split parts missing values from all others; NaN is refused there.
    ("TreeSum", "threshold"),
}
_OPAQUE = (str, bytes, int, bool, np.dtype, type)
_MOST_PARTS = 5_000_000
# Kinds of the objects in a model file: moving a class changes this table and no file. A class is
# listed here only after a look at what building one does: nothing but setting attributes.
STORED: Kinds = {
    "beta map": "rareclass.decide.calibration_map:BetaMap",
    "bounded numbers": "rareclass.encoding.bounded_numbers:BoundedNumbers",
    "calibration": "rareclass.decide.calibration:Calibration",
    "case score": "rareclass.hunt.case_score:CaseScore",
    "category statistics": "rareclass.encoding.log_odds:CategoryStatistics",
    "class ranking": "rareclass.ensemble.which_class:ClassRanking",
    "column": "rareclass.tables.columns:Column",
    "combination": "rareclass.ensemble.combined_ranking:CombinedRanking",
    "coordinate": "rareclass.encoding.hunt:Coordinate",
    "cumulative counts": "rareclass.hunt.case_score:CumulativeCounts",
    "dense view": "rareclass.encoding.views:DenseView",
    "false-positive rate": "rareclass.ensemble.score_functions:FalsePositiveRate",
    "hunt encoder": "rareclass.encoding.hunt:HuntEncoder",
    "isotonic map": "rareclass.decide.calibration_map:IsotonicMap",
    "isotonic map of parts": "rareclass.decide.calibration_map:IsotonicOfParts",
    "kernel function": "rareclass.ensemble.score_functions:KernelFunction",
    "kernel ranking": "rareclass.estimators.rankings:KernelRanking",
    "known codes": "rareclass.encoding.column_values:KnownCodes",
    "known words": "rareclass.encoding.column_values:KnownWords",
    "label block": "rareclass.encoding.views:LabelBlock",
    "label statistics": "rareclass.encoding.label_statistics:LabelStatistics",
    "level odds": "rareclass.encoding.encoders:LevelOdds",
    "level calibration": "rareclass.decide.calibration:LevelCalibration",
    "linear function": "rareclass.ensemble.score_functions:LinearFunction",
    "linear ranking": "rareclass.estimators.rankings:LinearRanking",
    "list order": "rareclass.hunt.case_score:ListOrder",
    "mean function": "rareclass.ensemble.score_functions:MeanFunction",
    "member": "rareclass.ensemble.score_functions:LearnedMember",
    "pair statistics": "rareclass.encoding.log_odds:PairStatistics",
    "pooled map": "rareclass.decide.calibration:PooledMap",
    "rare cases": "rareclass.model.facts:RareCases",
    "rare class scores": "rareclass.model.facts:RareClassScores",
    "recurring dates": "rareclass.encoding.column_values:RecurringDates",
    "scaled columns": "rareclass.encoding.views:CentredColumns",
    "score scale": "rareclass.decide.calibration_map:ScoreScale",
    "scored rows": "rareclass.model.facts:ScoredRows",
    "share of cases": "rareclass.hunt.case_score:ShareOfCases",
    "sparse encoder": "rareclass.encoding.encoders:SparseEncoder",
    "sparse view": "rareclass.encoding.views:SparseView",
    "table encoder": "rareclass.encoding.encoders:TableEncoder",
    "table statistics": "rareclass.encoding.table_statistics:TableStatistics",
    "text components": "rareclass.encoding.column_values:TextComponents",
    "tree sum": "rareclass.ensemble.tree_sum:TreeSum",
    "typed columns": "rareclass.encoding.encoders:TypedColumns",
    "which class": "rareclass.ensemble.which_class:WhichClass",
}


def our_types() -> list[str]:
    """Return the full names of this package's classes that a model file may hold."""
    return [place.replace(":", ".") for place in STORED.values()]


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
    write_archive(path, Stored({_MARK: FORMAT, "parts": tree}, arrays), compress=True)


def load_model(path: Path) -> Model:
    """Open a model file; nothing in it is executed.

    Raises `InputError` when the file is missing, is no model file, has another format, or is
    damaged.
    """
    if not path.is_file():
        what = "is not a regular file" if path.exists() else "does not exist"
        what = "is a folder without a checkpoint" if path.is_dir() else what
        raise ErrorKind.MISSING_FILE.error(
            f"The model file {path} {what}.",
            "Give a file of rareclass fit, or a folder of rareclass stream or hunt.",
        )
    stored = _read(path)
    found = stored.tree[_MARK]
    if found != FORMAT:
        raise ErrorKind.FILE_FORMAT.error(
            f"{path} has format {str(found)[:80]}; rareclass {version('rareclass')} reads format "
            f"{FORMAT} alone.",
            "Fit again, or use the version that made it.",
        )
    try:
        parts = unpack(stored._replace(tree=stored.tree["parts"]), STORED)
        facts = facts_from_json(parts.pop("facts"))
        model = Model(facts=facts, file=path, **parts)
        check_model(model)
    except ModuleNotFoundError:
        raise
    except InputError as error:  # what is wrong inside, with the file's name
        raise error.kind.error(f"{path}: {error.message}", error.remedy) from error
    except Exception as error:  # the content of a file can be wrong in any way
        raise damaged(path, in_brief(error)) from error
    return model


def _read(path: Path) -> Stored:
    """Read a model file without building anything of it."""
    with path.open("rb") as file:
        begins = file.read(2)
        is_zip = zipfile.is_zipfile(file)
    if begins == b"PK" and not is_zip:
        raise damaged(path)
    try:
        stored = read_archive(path) if is_zip else None
    except DamagedArchiveError as error:
        raise damaged(path, str(error)) from error
    if stored is None or not isinstance(stored.tree, dict) or _MARK not in stored.tree:
        raise ErrorKind.FILE_FORMAT.error(
            f"{path} is not a model file.", "rareclass fit makes one."
        )
    return stored


def check_model(model: Model) -> None:
    """Raise `ValueError` where a part is none that a training makes."""
    held_out, cases = model.held_out, model.cases
    if not isinstance(model.calibration, Calibration | LevelCalibration | None):
        raise ValueError("its calibration is none")
    if not isinstance(held_out, ScoredRows | None) or not isinstance(cases, RareCases | None):
        raise ValueError("its held-out rows or its cases are none")
    for part, role in ((model.encoder, Encoder), (model.estimator, Ranker)):
        if not isinstance(part, role):
            raise ValueError(f"a {type(part).__name__} stands in a place of another part")
    check_parts(model.encoder, model.estimator, model.calibration)
    if held_out is not None:
        held_out.check()
    if cases is not None:
        cases.check()
    n_codes = model.decision.n_codes
    if np.shape(model.thresholds) != (n_codes - 1,):
        raise ValueError(f"it has not one threshold fewer than {n_codes} classes")
    if model.thresholds.dtype.kind != "f" or np.isnan(model.thresholds).any():
        raise ValueError("a threshold is not a number")


@runtime_checkable
class _ChecksParts(Protocol):
    def check_parts(self) -> None: ...


def check_parts(*parts: Any) -> None:
    """Look at everything that these objects hold. O(bytes).

    What other packages learned may hold infinities and NaN, which they know the meaning of, and
    so may parameters (``C=inf``): a score that is not finite is told when there is one.

    Raises `ValueError` naming the part: numbers learned here that are not finite, sparse matrices
    whose indices point outside of them, and what a class finds itself by ``check_parts``.
    """
    for where, value, is_learned_here in _walk(parts):
        if isinstance(value, np.ndarray | np.floating | float):
            number = np.asarray(value)
            if is_learned_here and number.dtype.kind == "f" and not np.isfinite(number).all():
                raise ValueError(f"{where} holds a number that is not finite")
        elif sparse.issparse(value):
            value.check_format(full_check=True)
            if is_learned_here and not np.isfinite(value.data).all():
                raise ValueError(f"{where} holds a number that is not finite")
        elif isinstance(value, _ChecksParts):
            try:
                value.check_parts()
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise ValueError(f"{where}, a {type(value).__name__}: {error}") from error


def _walk(parts: tuple[Any, ...]) -> Iterator[tuple[str, Any, bool]]:
    """Every object within objects once, with the way to it and whether it was learned here."""
    # What is being looked at is held: an object that is gone gives its number to another.
    todo = [(type(part).__name__, part, True) for part in reversed(parts)]
    seen: dict[int, Any] = {}
    while todo:
        where, value, is_learned_here = todo.pop()
        if value is None or isinstance(value, _OPAQUE) or id(value) in seen:
            continue
        seen[id(value)] = value
        if len(seen) > _MOST_PARTS:
            raise ValueError("it has too many parts")
        yield where, value, is_learned_here
        is_container = isinstance(value, dict | list | tuple | set | frozenset | np.ndarray)
        is_ours = is_container or type(value).__module__.partition(".")[0] == "rareclass"
        has_parameters = not is_container and not is_dataclass(value)  # names of learned end in _
        for name, each in reversed(_held_by(value)):
            is_learned = is_ours and not (has_parameters and name == name.strip("_"))
            todo.append((f"{where}.{name}", each, is_learned_here and is_learned))


def _held_by(value: Any) -> list[tuple[str, Any]]:
    """Return the parts of an object with their names, those left out that may be NaN."""
    if isinstance(value, dict):
        return [(str(key)[:80], each) for key, each in value.items()]
    if isinstance(value, tuple) and "_fields" in vars(type(value)):
        return list(value._asdict().items())  # type: ignore[attr-defined]
    if isinstance(value, np.ndarray):
        value = value.reshape(-1).tolist() if value.dtype.hasobject else []
    if isinstance(value, list | tuple | set | frozenset):
        return [(str(k), each) for k, each in enumerate(value)]
    if sparse.issparse(value):
        return []
    try:
        held = vars(value)
    except TypeError:  # it has no attributes of its own
        return []
    kind = type(value).__name__
    return [(name, each) for name, each in held.items() if (kind, name) not in _MAY_BE_NAN]
