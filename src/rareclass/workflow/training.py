"""From training rows to a model: split, encode, fit, estimate, fit again on all rows."""

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

from rareclass.workflow.held_out import Estimate
from rareclass.workflow.held_out import estimate as estimate_scores
from rareclass.workflow.method import EncodedRows, Method, Terms
from rareclass.workflow.model_file import ModelFile
from rareclass.workflow.rows_on_disk import RowsOnDisk, encode_on_disk, scores_of
from rareclass.workflow.training_set import FitSettings, TrainingSet

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
    method : Method
        How it was trained, with the parameter used.
    summary : list of str
        What the method says of the model.
    notes : list of str
        What the user should know about this training.
    """

    content: ModelFile
    estimate: Estimate | None
    method: Method
    summary: list[str]
    notes: list[str] = field(default_factory=list)


def train(data: TrainingSet, settings: FitSettings) -> Trained:
    """Train on part of the rows, estimate on the rest, then train on all with the same parameter.

    Parameters
    ----------
    data : TrainingSet
        The rows.
    settings : FitSettings
        How.
    """
    notes: list[str] = []
    method = settings.method
    kept, held_out = _split(data, settings, notes)
    with _warnings_as(notes):
        encoder, model = _fit(data.take(kept), settings, method, notes)
        chosen = method.as_chosen(model)
        estimate = None
        if len(held_out):
            tested = data.take(held_out)
            scores = scores_of(encoder, model, tested.rows)
            estimate = estimate_scores(tested.rare, scores, tested.weight)
        refitted = settings.refit and estimate is not None
        if refitted:
            del encoder
            encoder, model = _fit(data, settings, chosen, notes)
    if estimate is not None:
        notes += _notes_on_rare_rows(int(data.rare[held_out].sum()), estimate)
    trained_on = data if refitted else data.take(kept)
    chosen_on = terms_of(data.rare[kept], settings)
    metadata = method.facts(model, chosen_on) | _metadata(data, settings, model, estimate, refitted)
    metadata["majority_quantiles"] = _majority_quantiles(encoder, model, trained_on, settings.seed)
    summary = method.summary(model, chosen_on)
    method.lighten(model)
    return Trained(ModelFile(encoder, model, metadata), estimate, chosen, summary, notes)


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
    data: TrainingSet, settings: FitSettings, method: Method, notes: list[str]
) -> tuple[Any, Any]:
    """Return an encoder and a model, both fitted on `data`."""
    encoder = data.new_encoder(settings.seed)
    rows = EncodedRows(_encoded(encoder, data, settings.seed), data.rare, data.weight)
    return encoder, method.fit(rows, terms_of(data.rare, settings), notes)


def terms_of(rare: NDArray[np.bool_], settings: FitSettings) -> Terms:
    """Return the terms on which a method learns from rows, `rare` saying which of them are."""
    folds = min(settings.folds, int(rare.sum()), int((~rare).sum()))
    return Terms(folds, settings.seed, settings.kernel_memory)


def _encoded(encoder: Any, data: TrainingSet, seed: int) -> Any:
    """Fit the encoder and return the encoded rows: an array, a matrix, or rows on disk."""
    if isinstance(data.rows, RowsOnDisk):
        return encode_on_disk(encoder, data.rows, data.rare, data.weight, seed)
    return encoder.fit_transform(data.rows, data.rare, data.weight)


def _majority_quantiles(encoder: Any, model: Any, data: TrainingSet, seed: int) -> list[float]:
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
    model: Any,
    estimate: Estimate | None,
    refitted: bool,
) -> dict[str, Any]:
    return {
        "method": settings.method.name,
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
        "copies_count": data.weight is not None or not data.n_copies,
        "threshold": float(model.offset_),
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
