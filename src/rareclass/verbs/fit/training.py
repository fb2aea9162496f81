"""From training rows to a model: split, encode, fit, estimate, fit again on all rows."""

import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.verbs.fit.method import EncodedRows, Method, Terms
from rareclass.verbs.fit.rows_on_disk import RowsOnDisk, encode_on_disk, scores_of
from rareclass.verbs.fit.training_set import FitSettings, TrainingSet, in_memory
from rareclass.verbs.model_file import ModelFile
from rareclass.verbs.targets import decision_of
from rareclass.verbs.targets.target import RankingEstimate
from rareclass.verbs.warning_notes import warnings_as

# Scores of this many rows say where a new score stands among them.
PERCENTILE_ROWS = 20_000
_PACKAGES = ("rareclass", "scikit-learn", "skrub", "skops", "numpy", "polars")


@dataclass(frozen=True)
class Trained:
    """The outcome of training."""

    content: ModelFile
    estimate: RankingEstimate | None  # on rows it was not trained on
    method: Method  # with the parameter used
    decided: list[str]  # how often it was right about them, where that says more
    summary: list[str]  # what the method says of the model
    notes: list[str] = field(default_factory=list)


def train(data: TrainingSet, settings: FitSettings) -> Trained:
    """Train on part of the rows, estimate on the rest, then train on all, parameter kept."""
    notes: list[str] = []
    method, target = settings.method, data.target
    kept, held_out = _split(data, settings, notes)
    will_refit = settings.refit and len(held_out) > 0
    with warnings_as(notes):
        fitted = _fit(data.take(kept), settings, method, notes, 0.5 if will_refit else 1.0)
        chosen = method.as_chosen(fitted.model)
        estimate, decided = None, []
        if len(held_out):
            tested = data.take(held_out)
            decision = decision_of(fitted.model, target.metadata())
            scores = scores_of(fitted.encoder, fitted.model, tested.rows)
            estimate = decision.estimate(tested.y, scores, tested.weight)
            decided = decision.confusion(tested.y, scores, tested.weight).in_brief
        again = _refit(data, settings, chosen, fitted, notes) if will_refit else None
    if estimate is not None:
        notes += target.notes_on_held_out(data.y[held_out], estimate)
    encoder, model = fitted if again is None else again
    trained_on = data.take(kept) if again is None else data
    chosen_on = terms_of(data.y[kept], settings)
    metadata = method.facts(model, chosen_on) | chosen.of_choice()
    metadata |= _metadata(data, settings, estimate, again is not None)
    final = decision_of(model, metadata)
    if final.quantiles not in metadata:
        metadata[final.quantiles] = _quantiles(encoder, model, trained_on, settings.seed)
    summary = method.summary(model, chosen_on) + final.rules()
    method.lighten(model)
    content = ModelFile(encoder, model, metadata)
    return Trained(content, estimate, chosen, decided, summary, notes)


def _split(
    data: TrainingSet, settings: FitSettings, notes: list[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows to train on and the rows held out, of each code in the asked proportion."""
    everything = np.arange(len(data.y))
    # The codes from the highest: the rare class before the rest.
    groups = [np.flatnonzero(data.y == code) for code in np.unique(data.y)[::-1]]
    if settings.holdout == 0:
        notes.append("No rows were held out: there is no estimate of how good the model is.")
        return everything, everything[:0]
    if sum(len(members) > 1 for members in groups) < 2:
        notes.append(
            "Fewer than two classes have two distinct rows: nothing can be held out, so there is "
            "no estimate, and intervals from any small test would mean little."
        )
        return everything, everything[:0]
    generator = np.random.default_rng(settings.seed)
    held_out = np.zeros(len(data.y), dtype=bool)
    for members in groups:
        size = min(max(1, round(settings.holdout * len(members))), len(members) - 1)
        held_out[generator.permutation(members)[:size]] = True
    return everything[~held_out], everything[held_out]


class _Fitted(NamedTuple):
    """An encoder and a model, fitted on the same rows."""

    encoder: Any
    model: Any


def _fit(
    data: TrainingSet, settings: FitSettings, method: Method, notes: list[str], share: float
) -> _Fitted:
    """Return an encoder and a model, fitted on `data` in a share of the time."""
    encoder = data.new_encoder(settings.seed, method.reads_types)
    if method.reads_types and isinstance(data.rows, RowsOnDisk):
        data = in_memory(data, settings.seed)
    X = _encoded(encoder, data, settings.seed)
    rows = EncodedRows(X, data.y, data.weight, data.target.n_codes)
    return _Fitted(encoder, method.fit(rows, terms_of(data.y, settings, share), notes))


def _refit(
    data: TrainingSet, settings: FitSettings, chosen: Method, fitted: _Fitted, notes: list[str]
) -> _Fitted | None:
    """Train on all rows as chosen; None where Ctrl-C says that there has been enough training."""
    if getattr(fitted.model, "interrupted_", False):
        return None
    if not chosen.may_be_stopped:
        return _fit(data, settings, chosen, notes, 0.5)
    try:
        return _fit(data, settings, chosen, notes, 0.5)
    except KeyboardInterrupt:
        notes.append("stopped by Ctrl-C before the training on all rows had learned anything.")
        return None


def terms_of(y: NDArray[np.int16], settings: FitSettings, share: float = 1.0) -> Terms:
    """Return the terms on which a method learns from rows with these codes.

    Every fold holds rows of two codes at least: a ranking of one cannot be measured.
    """
    folds = min(settings.folds, int(np.sort(np.bincount(y, minlength=2))[-2]))
    return Terms(folds, settings.seed, settings.kernel_memory, share)


def _encoded(encoder: Any, data: TrainingSet, seed: int) -> Any:
    """Fit the encoder and return the encoded rows: an array, a matrix, or rows on disk."""
    if isinstance(data.rows, RowsOnDisk):
        return encode_on_disk(encoder, data.rows, data.y, data.rare, data.weight, seed)
    return encoder.fit_transform(data.rows, data.y, data.weight)


def _quantiles(encoder: Any, model: Any, data: TrainingSet, seed: int) -> list[float]:
    """Return the 0th to 100th percentile of training scores, in steps of 0.1."""
    rows = np.flatnonzero(data.target.compared_with(data.y))
    copies = None if data.weight is None else data.weight[rows]
    if len(rows) > PERCENTILE_ROWS:
        generator = np.random.default_rng(seed)
        share = None if copies is None else copies / copies.sum()
        drawn = generator.choice(rows, PERCENTILE_ROWS, replace=share is not None, p=share)
        rows, copies = np.sort(drawn), None
    scores = scores_of(encoder, model, data.take(rows).rows)
    if copies is not None:
        scores = np.repeat(scores, copies.astype(np.int64))
    return [float(value) for value in np.quantile(scores, np.linspace(0, 1, 1001))]


def _metadata(
    data: TrainingSet,
    settings: FitSettings,
    estimate: RankingEstimate | None,
    refitted: bool,
) -> dict[str, Any]:
    return data.target.metadata() | {
        "method": settings.method.name,
        "format": "table" if data.columns else "svmlight",
        "target": data.target.column,
        "label_counts": data.target.counts,
        "n_rows": data.n_rows,
        "n_copies_collapsed": data.n_copies,
        "n_rows_without_target": data.n_unlabelled,
        "columns": [asdict(column) for column in data.columns],
        "copies_count": data.weight is not None or not data.n_copies,
        "holdout": settings.holdout,
        "seed": settings.seed,
        "trained_on_all_rows": refitted or estimate is None,
        "held_out": None if estimate is None else estimate.as_plain_data(),
        "versions": {package: version(package) for package in _PACKAGES}
        | {"python": platform.python_version()},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
