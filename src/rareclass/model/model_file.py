"""A trained model on disk: one skops file that opens without executing anything from it."""

import io
import json
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import InconsistentVersionWarning

from rareclass.errors import InputError
from rareclass.files import replacing
from rareclass.model.archive import UNREADABLE, DamagedArchiveError, check_archive, seal
from rareclass.model.decision_rule import ScoredRows
from rareclass.model.metadata_text import as_text, from_text
from rareclass.model.other_releases import of_another_release
from rareclass.model.rare_cases import RareCases
from rareclass.model.skops_io import dump, is_estimator, skops_io
from rareclass.model.soundness import check_parts, finite_vector
from rareclass.model.targets import check_metadata, decision_of, needed_for_decisions

if TYPE_CHECKING:
    from rareclass.decide.calibration.calibration import Calibration, LevelCalibration

Part = TypeVar("Part")

FORMAT = 1
# What scoring and evaluating look up in the metadata, besides what decisions do.
_NEEDED_METADATA = {"format", "target", "columns"}

# Every type that a model file may hold besides numpy's dense arrays and scikit-learn's estimators,
# which skops knows. A type is named here only after a look at what building one does: nothing
# but setting attributes.
TRUSTED_TYPES = (
    "numpy.dtype",
    "polars.datatypes.classes.Datetime",
    "rareclass.tables.columns.Column",
    "rareclass.decide.calibration.parametric.BetaMap",
    "rareclass.decide.calibration.calibration.Calibration",
    "rareclass.decide.calibration.isotonic.IsotonicMap",
    "rareclass.decide.calibration.isotonic.IsotonicOfParts",
    "rareclass.decide.calibration.calibration.LevelCalibration",
    "rareclass.decide.calibration.calibration.PooledMap",
    "rareclass.decide.calibration.parametric.ScoreScale",
    "rareclass.encoding.bounded_numbers.BoundedNumbers",
    "rareclass.encoding.category_statistics.CategoryStatistics",
    "rareclass.encoding.code_columns.KnownCodes",
    "rareclass.encoding.known_words.KnownWords",
    "rareclass.encoding.pairs_of_columns.PairStatistics",
    "rareclass.encoding.recurring_dates.RecurringDates",
    "rareclass.encoding.sparse_view.SparseView",
    "rareclass.encoding.table_statistics.TableStatistics",
    "rareclass.encoding.tables.SparseEncoder",
    "rareclass.encoding.tables.TableEncoder",
    "rareclass.encoding.text_components.TextComponents",
    "rareclass.encoding.typed_columns.TypedColumns",
    "rareclass.encoding.views.DenseView",
    "rareclass.encoding.views._Columns",
    "rareclass.ensemble.false_positive_rate.FalsePositiveRate",
    "rareclass.ensemble.score_functions.KernelFunction",
    "rareclass.ensemble.score_functions.LinearFunction",
    "rareclass.ensemble.tree_sum.TreeSum",
    "rareclass.ensemble.false_positive_rate.LearnedMember",
    "rareclass.ensemble.rare_classifier.RareClassifier",
    "rareclass.moments.mibc.MIBC",
    "rareclass.moments.solution.Hyperplane",
    "rareclass.ranking.solvers.newton.Step",
    "rareclass.ranking.ordinal_rankrc.OrdinalRankRC",
    "rareclass.ranking.rankrc.RankRC",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "skrub._apply_to_each_col.ApplyToEachCol",
    "skrub._apply_to_sub_frame.ApplyToSubFrame",
    "skrub._check_input.CheckInputDataFrame",
    "skrub._clean_categories.CleanCategories",
    "skrub._clean_null_strings.CleanNullStrings",
    "skrub._dataframe._common.is_any_date",
    "skrub._dataframe._common.is_categorical",
    "skrub._dataframe._common.is_numeric",
    "skrub._datetime_encoder.DatetimeEncoder",
    "skrub._drop_uninformative.DropUninformative",
    "skrub._duration_to_float.DurationToFloat",
    "skrub._string_encoder.StringEncoder",
    "skrub._table_vectorizer.PassThrough",
    "skrub._table_vectorizer.ShortReprDict",
    "skrub._table_vectorizer.TableVectorizer",
    "skrub._table_vectorizer._created_by_predicate",
    "skrub._to_datetime.ToDatetime",
    "skrub._to_float.ToFloat",
    "skrub._to_str.ToStr",
    "skrub.selectors._base.All",
    "skrub.selectors._base.And",
    "skrub.selectors._base.Cols",
    "skrub.selectors._base.Filter",
    "skrub.selectors._base.Sub",
    "skrub.selectors._selectors._cardinality_below",
)

# Where types stood that files of earlier versions name, and where they stand now.
_MOVED_MODULES = {
    "rareclass.data.columns": "rareclass.tables.columns",  # to 0.1.0
    "rareclass.data.encoding": "rareclass.encoding.tables",
    "rareclass.ranking.newton": "rareclass.ranking.solvers.newton",
}
_SCHEMA = "schema.json"
# By name: opening a file imports the one encoder and the one model that it holds, no others.
_ENCODERS = (
    "rareclass.encoding.tables.SparseEncoder",
    "rareclass.encoding.tables.TableEncoder",
    "rareclass.encoding.typed_columns.TypedColumns",
)
_MODELS = (
    "rareclass.ensemble.rare_classifier.RareClassifier",
    "rareclass.moments.mibc.MIBC",
    "rareclass.ranking.ordinal_rankrc.OrdinalRankRC",
    "rareclass.ranking.rankrc.RankRC",
)


@dataclass(frozen=True)
class ModelFile:
    """What a model file holds."""

    encoder: Any  # TableEncoder, SparseEncoder, TypedColumns or that of a stream
    model: Any  # RareClassifier, RankRC, OrdinalRankRC, MIBC or an online learner
    metadata: dict[str, Any]  # plain data on target, training and measures
    notices: tuple[str, ...] = ()  # what is odd but kept nothing from opening
    held_out: ScoredRows | None = None  # rows that it did not learn from, to set a threshold by
    cases: RareCases | None = None  # rare rows that it learned from, to compare others with
    file: Path | None = None  # that it was read from: its parts may be anything

    @contextmanager
    def trusted_by_halves(self) -> Iterator[None]:
        """Name the file where what its parts do with rows that were read well fails.

        Parts that each look sound may still be of different models. Only where the model came from
        a file: what fails in a model that was just learned is no fault of a file.
        """
        try:
            yield
        except (InputError, MemoryError, OSError):
            raise
        except Exception as error:  # parts that do not fit can fail in any way
            if self.file is None:
                raise
            raise damaged(self.file, f"it cannot score: {in_brief(error)}") from error

    @property
    def calibration(self) -> "Calibration | None":
        """From scores to probabilities of the rare class; None for a model that has none."""
        return None if self.level_calibration else getattr(self.model, "calibration_", None)

    @property
    def level_calibration(self) -> "LevelCalibration | None":
        """From scores to probabilities of levels; None for a model of a rare class."""
        found = getattr(self.model, "calibration_", None)
        return found if hasattr(found, "above") else None

    @property
    def sure(self) -> Callable[[NDArray[np.float64]], NDArray[np.float64] | None] | None:
        """From scores to shares of cases among rows as sure; None for a model that is no hunt's."""
        return getattr(self.model, "sure", None)


def save_model(path: Path, content: ModelFile) -> None:
    """Write a model file; `path` is replaced only once the new file is whole.

    Raises `InputError` when `path` cannot be written. `TypeError` when the model holds a type that
    `load_model` would refuse: nothing is written then.
    """
    parts = {
        "rareclass_format": FORMAT,
        "encoder": content.encoder,
        "model": content.model,
        "metadata": as_text(content.metadata),
        "held_out": _as_arrays(content.held_out),
        "cases": None if content.cases is None else content.cases.as_arrays(),
    }
    with replacing(path) as temporary:
        dump(parts, temporary)
        seal(temporary)
        foreign = _foreign(_asked_for(temporary, temporary.read_bytes()))
        if foreign:
            raise TypeError(f"the model cannot be saved: it holds {', '.join(foreign)}")


def load_model(path: Path) -> ModelFile:
    """Open a model file without executing anything from it.

    Raises `InputError` when the file is missing, is no model file, is damaged, or holds types that
    are not on the list of trusted ones (they are named).
    """
    if not path.is_file():
        what = "is not a regular file" if path.exists() else "does not exist"
        what = "is a folder without a checkpoint" if path.is_dir() else what
        raise InputError(
            f"The model file {path} {what}.",
            "Give a file of rareclass fit, or a folder of rareclass stream or hunt.",
        )
    parts, notices = read_parts(path, "rareclass_format", FORMAT, {"encoder", "model", "metadata"})
    held_out = _read_part(path, parts.get("held_out"), _as_scored_rows)
    cases = _read_part(path, parts.get("cases"), RareCases.of_arrays)
    content = ModelFile(
        parts["encoder"], parts["model"], parts["metadata"], notices, held_out, cases, path
    )
    if not (
        _type_name(content.encoder) in _ENCODERS
        and _type_name(content.model) in _MODELS
        and isinstance(content.metadata, dict)
    ):
        raise InputError(f"{path} does not hold what a rareclass model does.", "Fit again.")
    absent = sorted(needed_metadata(content.metadata) - content.metadata.keys())
    if absent:
        raise InputError(
            f"{path} is damaged or not a rareclass model: its metadata lack {', '.join(absent)}.",
            "Copy it again, or fit again.",
        )
    check_content(path, content)
    return content


def check_content(path: Path, content: ModelFile) -> None:
    """Raise `InputError` where a part is none that a training makes: numbers, indices, metadata."""
    held_out, cases = content.held_out, content.cases
    others = [None if held_out is None else held_out.scores, cases and cases.number]
    try:
        check_metadata(content.metadata)
        check_parts(content.encoder, content.model, *others)
        decision = decision_of(content.model, content.metadata)
        if np.shape(decision.thresholds) != (decision.n_codes - 1,):
            raise ValueError(f"it has not one threshold fewer than {decision.n_codes} classes")
        if np.isnan(np.asarray(decision.thresholds, dtype=np.float64)).any():
            raise ValueError("a threshold is no number")
    except Exception as error:  # the content of a file can be wrong in any way
        raise damaged(path, in_brief(error)) from error


def read_parts(
    path: Path, mark: str, number: int, names: set[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a skops file of ours holds, without executing anything from it, and what is odd of it.

    It says by `mark` which format it is of, and has parts of these names.

    Raises `InputError` when the file is no such file, is damaged, or holds types that are not on
    the list of trusted ones (they are named).
    """
    try:
        _check_whole(path)
    except DamagedArchiveError as error:
        raise damaged(path, str(error)) from error
    archive = _with_todays_names(path)
    asked_for = _asked_for(path, archive)
    foreign = _foreign(asked_for)
    if foreign:
        raise InputError(
            f"{path} holds types that a rareclass model does not: {', '.join(foreign)}. "
            "It was not opened.",
            "Use a file from a source you trust, made by this version of rareclass and skrub.",
        )
    parts, notices = _construct(path, archive, asked_for)
    if mark not in parts:
        raise InputError(f"{path} is a skops file, but not of rareclass.", "")
    try:
        parts["metadata"] = from_text(parts.get("metadata"))
    except ValueError as error:
        raise damaged(path, "its metadata cannot be read") from error
    if not isinstance(parts[mark], int) or parts[mark] != number or not names <= set(parts):
        raise _of_another_format(path, str(parts[mark])[:80], number, parts.get("metadata"))
    return parts, notices


def _of_another_format(path: Path, found: str, number: int, metadata: Any) -> InputError:
    """What is said of a file that this version cannot read: which one can."""
    from importlib.metadata import version

    versions = metadata.get("versions") if isinstance(metadata, dict) else None
    made_by = versions.get("rareclass") if isinstance(versions, dict) else None
    maker = f"rareclass {made_by[:40]}" if isinstance(made_by, str) else "the version that made it"
    return InputError(
        f"{path} has format {found}, this version reads {number}: rareclass {version('rareclass')} "
        "reads what itself and earlier versions made.",
        f"Install {maker}, which can read it, or fit again.",
    )


def _as_arrays(held_out: ScoredRows | None) -> dict[str, Any] | None:
    if held_out is None:
        return None
    return {"y": held_out.y, "scores": held_out.scores, "weight": held_out.weight}


def _read_part(path: Path, arrays: Any, as_what: Callable[[Any], Part]) -> Part | None:
    """Read what a file of before may not have."""
    if arrays is None:
        return None
    try:
        return as_what(arrays)
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise damaged(path) from error


def _as_scored_rows(arrays: Any) -> ScoredRows:
    rows = ScoredRows(arrays["y"], arrays["scores"], arrays["weight"])
    y = finite_vector(rows.y, "y")
    finite_vector(rows.scores, "scores", len(y))
    if rows.weight is not None and (finite_vector(rows.weight, "weight", len(y)) < 0).any():
        raise ValueError("a weight is below 0")
    return rows


def needed_metadata(metadata: dict[str, Any]) -> set[str]:
    """Return what the metadata of a model file with this kind of target must hold."""
    return _NEEDED_METADATA | needed_for_decisions(metadata)


def _check_whole(path: Path) -> None:
    with path.open("rb") as file:
        is_zip = zipfile.is_zipfile(file)
        file.seek(0)
        begins_well = file.read(2) == b"PK"
    if not is_zip:
        if begins_well:
            raise damaged(path)
        raise InputError(f"{path} is not a model file.", "rareclass fit makes one.")
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            is_encrypted = any(entry.flag_bits & 1 for entry in archive.infolist())
        if not is_encrypted:
            check_archive(path)
    except UNREADABLE as error:
        raise damaged(path) from error
    if is_encrypted:
        raise InputError(
            f"{path} is an encrypted zip file, not a rareclass model.", "rareclass fit makes one."
        )
    if _SCHEMA not in names:
        raise InputError(f"{path} is not a model file.", "rareclass fit makes one.")


def _with_todays_names(path: Path) -> bytes:
    """The file's bytes, naming types by the modules that they stand in today."""
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        text = archive.read(_SCHEMA)
        if not any(module.encode() in text for module in _MOVED_MODULES):
            file.seek(0)
            return file.read()
        try:
            schema = json.loads(text, object_hook=_renamed)
        except (ValueError, RecursionError) as error:
            raise damaged(path) from error
        copy = io.BytesIO()
        with zipfile.ZipFile(copy, "w") as renamed:
            for name in archive.namelist():
                content = json.dumps(schema) if name == _SCHEMA else archive.read(name)
                renamed.writestr(name, content)
    return copy.getvalue()


def _renamed(node: dict[str, Any]) -> dict[str, Any]:
    module = node.get("__module__")
    if isinstance(module, str) and module in _MOVED_MODULES:
        return node | {"__module__": _MOVED_MODULES[module]}
    return node


def _asked_for(path: Path, archive: bytes) -> list[str]:
    """The types in a file that skops does not trust by itself."""
    skops = skops_io()
    try:
        return skops.get_untrusted_types(data=archive)
    except Exception as error:  # the content of a file can be wrong in any way
        raise damaged(path) from error


def _foreign(types: list[str]) -> list[str]:
    """Those of the types that no model file of ours holds."""
    unlisted = sorted(set(types) - set(TRUSTED_TYPES))
    return [name for name in unlisted if not is_estimator(name)]


def _construct(
    path: Path, archive: bytes, trusted: list[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    _prepare_types_of(archive)
    skops = skops_io()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            parts = skops.loads(archive, trusted=trusted)
        except Exception as error:  # the content of a file can be wrong in any way
            raise of_another_release(path, archive, trusted) or damaged(path) from error
    if not isinstance(parts, dict):
        raise InputError(f"{path} is a skops file, but not of rareclass.", "")
    old = sorted(
        {
            f"made with scikit-learn {warning.message.original_sklearn_version}, this is "
            f"{warning.message.current_sklearn_version}: scores may differ; fit again to be sure"
            for warning in caught
            if isinstance(warning.message, InconsistentVersionWarning)
        }
    )
    return parts, tuple(old)


def _prepare_types_of(archive: bytes) -> None:
    """Import what the constructor will, so that a package that is absent is told as such."""
    with zipfile.ZipFile(io.BytesIO(archive)) as parts:
        schema = parts.read(_SCHEMA)
    if b'"skrub.' in schema:
        from rareclass.encoding.tables import make_skrub_importable

        make_skrub_importable()
        import skrub  # noqa: F401


def _type_name(instance: object) -> str:
    return f"{type(instance).__module__}.{type(instance).__qualname__}"


def damaged(path: Path, why: str = "") -> InputError:
    """The error of a model file that is not as it was written; `why` in a few words."""
    because = f": {why}" if why else ""
    return InputError(
        f"The model file {path} is damaged or cut short{because}.", "Copy it again, or fit again."
    )


def in_brief(error: Exception) -> str:
    """The first line of what an error says, and its kind where that says little."""
    said = str(error).strip().split("\n")[0][:200].rstrip(".")
    return said if isinstance(error, ValueError) and said else f"{type(error).__name__} {said}"
