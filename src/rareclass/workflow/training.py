"""From training rows to a model: split, encode, choose lam, estimate, fit on all rows."""

import platform
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.byte_sizes import size_text
from rareclass.errors import InputError
from rareclass.ranking import RankRC, RankRCCV
from rareclass.ranking.preparation import held_whole_bytes
from rareclass.ranking.rankrc_cv import PAPER_LAMS
from rareclass.rows import LabelledRows, RowSource
from rareclass.workflow.held_out import Estimate
from rareclass.workflow.held_out import estimate as estimate_scores
from rareclass.workflow.model_file import ModelFile
from rareclass.workflow.rows_on_disk import RowsOnDisk, encode_on_disk, scores_of
from rareclass.workflow.training_set import FitSettings, TrainingSet

DEFAULT_LAM = 2.0**-8
# More rare rows than this are thinned to well-spread ones; fewer are joined by some majority
# rows, which costs little and helps most where rare rows are few (docs/decisions/0006).
MOST_RARE_LANDMARKS = 1000
MAJORITY_LANDMARKS = 200
# Scores of this many majority rows say where a new score stands among them.
PERCENTILE_ROWS = 20_000
_PACKAGES = ("rareclass", "scikit-learn", "skrub", "skops", "numpy", "polars")


@dataclass(frozen=True)
class Trained:
    """The outcome of training.

    Attributes
    ----------
    content : ModelFile
        What to save.
    estimate : Estimate or None
        How the model does on rows it was not trained on.
    lam : float
        The regulariser used.
    notes : list of str
        What the user should know about this training.
    """

    content: ModelFile
    estimate: Estimate | None
    lam: float
    notes: list[str] = field(default_factory=list)


def train(data: TrainingSet, settings: FitSettings) -> Trained:
    """Train on part of the rows, estimate on the rest, then train on all with the same lam.

    Parameters
    ----------
    data : TrainingSet
        The rows.
    settings : FitSettings
        How.
    """
    notes: list[str] = []
    kept, held_out = _split(data, settings, notes)
    with _warnings_as(notes):
        encoder, model = _fit(data.take(kept), settings, settings.lam, notes)
        estimate = None
        if len(held_out):
            tested = data.take(held_out)
            scores = scores_of(encoder, model, tested.rows)
            estimate = estimate_scores(tested.rare, scores, tested.weight)
        refitted = settings.refit and estimate is not None
        if refitted:
            del encoder
            encoder, model = _fit(data, settings, model.lam, notes)
    if estimate is not None:
        notes += _notes_on_rare_rows(int(data.rare[held_out].sum()), estimate)
    trained_on = data if refitted else data.take(kept)
    metadata = _metadata(data, settings, model, estimate, refitted)
    metadata["majority_quantiles"] = _majority_quantiles(encoder, model, trained_on, settings.seed)
    # Only `transform` needs it, no verb calls that, and it would be most of the file.
    del model.whitener_
    return Trained(ModelFile(encoder, model, metadata), estimate, model.lam, notes)


def _notes_on_rare_rows(n_distinct: int, estimate: Estimate) -> list[str]:
    """Say when the intervals stand on few rare rows, or on copies."""
    notes = []
    if n_distinct < 10:
        notes.append(
            f"Rare rows held out: only {n_distinct}, so the intervals are wide and rough."
            if estimate.n_rare == n_distinct
            else f"Distinct rare rows held out: only {n_distinct}, so the intervals are rough."
        )
    if estimate.n_rare > n_distinct:
        notes.append(
            f"The {estimate.n_rare:,.0f} rare rows held out are copies of {n_distinct:,} distinct "
            "ones. The intervals take every copy as a row of its own, so they are too short unless "
            "copies are independent observations; --copies drop counts distinct rows."
        )
    return notes


def _split(
    data: TrainingSet, settings: FitSettings, notes: list[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows to train on and the rows held out, each class in the asked proportion."""
    everything = np.arange(len(data.rare))
    fewest = int(min(data.rare.sum(), (~data.rare).sum()))
    if settings.holdout == 0:
        notes.append("No rows were held out: there is no estimate of how good the model is.")
        return everything, everything[:0]
    if fewest < 2:
        notes.append(
            "Only one distinct row of the smaller class: nothing can be held out, so there is no "
            "estimate, and intervals from any small test would mean little."
        )
        return everything, everything[:0]
    generator = np.random.default_rng(settings.seed)
    held_out = np.zeros(len(data.rare), dtype=bool)
    for members in (np.flatnonzero(data.rare), np.flatnonzero(~data.rare)):
        size = min(max(1, round(settings.holdout * len(members))), len(members) - 1)
        held_out[generator.permutation(members)[:size]] = True
    return everything[~held_out], everything[held_out]


def _fit(
    data: TrainingSet, settings: FitSettings, lam: float | None, notes: list[str]
) -> tuple[Any, RankRC]:
    encoder = data.new_encoder(settings.seed)
    X = _encoded(encoder, data, settings.seed)
    y = data.rare.astype(np.int8)
    _check_kernel_memory(int(data.rare.sum()), X.dtype.itemsize, settings.kernel_memory)
    shared: dict[str, Any] = {
        "landmarks": _landmarks(int(data.rare.sum())),
        "pos_label": 1,
        "random_state": settings.seed,
        "memory": settings.kernel_memory,
    }
    folds = min(settings.folds, int(data.rare.sum()), int((~data.rare).sum()))
    if folds < 2:
        notes.append("Too few rare rows for cross-validation: the threshold may be far off.")
        if lam is None:
            notes.append(f"For the same reason lam was not chosen: {DEFAULT_LAM:g} was taken.")
        model = RankRC(lam=lam or DEFAULT_LAM, **shared)
        return encoder, _fitted(model, X, y, data.weight)
    # Even one lam is cross-validated: the threshold needs scores of rows held out.
    lams = PAPER_LAMS if lam is None else (lam,)
    search = _fitted(RankRCCV(lams, cv=folds, **shared), X, y, data.weight)
    return encoder, search.best_estimator_


def _encoded(encoder: Any, data: TrainingSet, seed: int) -> Any:
    """Fit the encoder and return the encoded rows: an array, a matrix, or rows on disk."""
    if isinstance(data.rows, RowsOnDisk):
        return encode_on_disk(encoder, data.rows, data.rare, data.weight, seed)
    return encoder.fit_transform(data.rows, data.rare, data.weight)


def _fitted(model: Any, X: Any, y: NDArray[np.int8], weight: NDArray[np.float64] | None) -> Any:
    if isinstance(X, RowSource):
        # The encoded rows have no other use: their disk is given back before the next training.
        with LabelledRows(X, y, weight) as rows:
            return model.fit_rows(rows)
    return model.fit(X, y, sample_weight=weight)


def _check_kernel_memory(n_rare: int, item: int, allowed: int) -> None:
    """Raise `InputError` when what the solver holds whole does not fit: kernel and factors."""
    rule, count = _landmarks(n_rare)
    n_landmarks = n_rare + count if rule == "rare+majority" else count
    needed = sum(held_whole_bytes(n_landmarks, n_rare, item))
    if needed > allowed:
        raise InputError(
            f"The kernel of {n_rare:,} distinct rare rows with their landmarks takes "
            f"{size_text(needed)}; {size_text(allowed)} are left for it.",
            "Raise --memory, or fit on a sample of the rows.",
        )


def _landmarks(n_rare: int) -> tuple[str, int]:
    """Return which rows carry a model of so many rare rows."""
    if n_rare > MOST_RARE_LANDMARKS:
        return "rare", MOST_RARE_LANDMARKS
    return "rare+majority", MAJORITY_LANDMARKS


def _majority_quantiles(encoder: Any, model: RankRC, data: TrainingSet, seed: int) -> list[float]:
    """Return the 0th to 100th percentile of training-majority scores, in steps of 0.1."""
    majority = np.flatnonzero(~data.rare)
    copies = None if data.weight is None else data.weight[majority]
    if len(majority) > PERCENTILE_ROWS:
        generator = np.random.default_rng(seed)
        share = None if copies is None else copies / copies.sum()
        drawn = generator.choice(majority, PERCENTILE_ROWS, replace=share is not None, p=share)
        majority, copies = np.sort(drawn), None
    scores = scores_of(encoder, model, data.take(majority).rows)
    if copies is not None:
        scores = np.repeat(scores, copies.astype(np.int64))
    return [float(value) for value in np.quantile(scores, np.linspace(0, 1, 1001))]


def _metadata(
    data: TrainingSet,
    settings: FitSettings,
    model: RankRC,
    estimate: Estimate | None,
    refitted: bool,
) -> dict[str, Any]:
    return {
        "method": "rankrc",
        "format": "table" if data.columns else "svmlight",
        "target": data.target,
        "rare_label": data.rare_class.label,
        "rest_label": data.rare_class.rest_label,
        "label_counts": data.rare_class.counts,
        "n_rows": data.n_rows,
        "n_rare": data.n_rare,
        "n_copies_collapsed": data.n_copies,
        "n_rows_without_target": data.n_unlabelled,
        "columns": [asdict(column) for column in data.columns],
        "lam": float(model.lam),
        "lam_chosen_by_cross_validation": settings.lam is None,
        "width": float(model.width_),
        "n_landmarks": int(model.coef_.shape[0]),
        "copies_count": data.weight is not None or not data.n_copies,
        "threshold": float(model.offset_),
        "solver": {"status": model.status_, "iterations": int(model.n_iter_)},
        "holdout": settings.holdout,
        "seed": settings.seed,
        "trained_on_all_rows": refitted or estimate is None,
        "held_out": None if estimate is None else estimate.as_plain_data(),
        "versions": {package: version(package) for package in _PACKAGES}
        | {"python": platform.python_version()},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@contextmanager
def _warnings_as(notes: list[str]) -> Iterator[None]:
    """Collect warnings as notes, each once, so that none is printed raw."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        text = str(warning.message)
        if text not in notes:
            notes.append(text)
