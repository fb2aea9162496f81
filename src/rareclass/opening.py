"""Opening what a fit, a stream or a hunt left as a model, and describing it."""

from pathlib import Path
from typing import Any

from rareclass.errors import ESTIMATORS
from rareclass.findings import warn
from rareclass.model.facts import facts_as_json
from rareclass.model.model import Model
from rareclass.model.model_file import HUNT_MODEL, HUNT_SUMMARY, load_model
from rareclass.remote import RemotePath, path_of


def load(path: str | Path) -> Model:
    """Open a model that ``rareclass fit``, ``stream`` or ``hunt`` saved, to score tables with it.

    Nothing in the file is executed: it holds numbers, text and names of kinds, and only classes
    on the library's own list are built.

    Parameters
    ----------
    path : str or Path
        A model file of ``rareclass fit``; the folder of ``rareclass stream``, which stands for
        its newest checkpoint; one checkpoint in it; or the folder of ``rareclass hunt``.

    Returns
    -------
    Model
        With `~Model.score_samples`, `~Model.predict`, `~Model.predict_proba` and its interval for
        tables and files.

    Raises
    ------
    InputError
        When there is no such file, it is damaged, or is no model.

    Warns
    -----
    UserWarning
        When the newest checkpoint of a stream is damaged, and the one before it was taken.

    Examples
    --------
    >>> import rareclass
    >>> model = rareclass.load("model.rareclass")  # doctest: +SKIP
    >>> top = model.score_samples("new_rows.parquet").argsort()[::-1][:100]  # doctest: +SKIP
    """
    model = open_model(path_of(path))
    for notice in model.notices:
        warn(f"{path}: {notice}.")
    return model


def open_model(path: Path) -> Model:
    """Open a model file, a checkpoint or the newest one of a stream, or the folder of a hunt."""
    if isinstance(path, RemotePath):  # folders are on this machine
        return load_model(path)
    if (path / HUNT_SUMMARY).is_file():
        return load_model(path / HUNT_MODEL)
    if not _is_of_stream(path):
        return load_model(path)
    from rareclass.stream.model import load_stream_model  # the learners, all of them

    return load_stream_model(path)


def _is_of_stream(path: Path) -> bool:
    """Say whether a path is a folder of a stream, or one of its checkpoints."""
    if path.is_file() and path.suffix != ".npz":
        return False
    from rareclass.stream.state import is_checkpoint

    return is_checkpoint(path)


def describe(path: Path, opened: Model | None = None) -> dict[str, Any]:
    """Describe a model file of ``rareclass fit``, or the folder of a stream or a hunt.

    Plain data: facts of the training as the file has them, the estimate, the columns, the
    thresholds with their rule, whether there are probabilities and held-out scores, the size.

    Raises `InputError` where it is neither.
    """
    model = open_model(path) if opened is None else opened
    facts = facts_as_json(model.facts)
    del facts["quantiles"]
    estimate = facts.pop("held_out", None)
    kind, files = "stream" if _is_of_stream(path) else "model", [path]
    if path.is_dir():
        files = [each for each in path.iterdir() if each.is_file()]
        kind = "hunt" if (path / HUNT_SUMMARY).is_file() else kind
    probabilities, calibration = None, model.rare_calibration
    if calibration is not None:
        names = ("method", "prevalence", "trained_prevalence")
        probabilities = {each: getattr(calibration, each) for each in names}
    shown = ("name", "kind", "treatment", "n_missing", "n_distinct", "reads_as")
    columns = [{each: getattr(column, each) for each in shown} for column in model.facts.columns]
    return {
        "file": str(path),
        "bytes": sum(each.stat().st_size for each in files),
        "kind": kind,
        "model": ESTIMATORS.get(model.facts.method_name or "", type(model.estimator).__name__),
        **facts,
        "columns": columns,
        "estimate": estimate,
        "classes": list(model.classes),
        "thresholds": [float(each) for each in model.thresholds],
        "probabilities": probabilities,
        "held_out_scores": None if model.held_out is None else len(model.held_out.scores),
        "rare_cases": None if model.cases is None else model.cases.n_rare,
        "notices": list(model.notices),
    }
