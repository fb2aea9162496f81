"""From training rows to a model, with an estimate of how good it is.

A method that cross-fits is fitted once on all rows: each is scored by functions that did not see
it. Others are fitted on a part of the rows, judged on the rest, and fitted again on all.
"""

import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.verbs.fit.method import EncodedRows, Method, ScoredRows, Terms
from rareclass.verbs.fit.rows_on_disk import RowsOnDisk, encode_on_disk, scores_of
from rareclass.verbs.fit.training_set import FitSettings, TrainingSet, in_memory
from rareclass.verbs.model_file import ModelFile
from rareclass.verbs.targets import decision_of
from rareclass.verbs.targets.target import RankingEstimate
from rareclass.verbs.warning_notes import warnings_as

# Scores of this many rows say where a new score stands among them.
PERCENTILE_ROWS = 20_000
# Share of the rows that an estimate is made of, where it needs rows of its own.
_HOLDOUT = 0.25
_NO_ESTIMATE = (
    "Fewer than two classes have two distinct rows: nothing can be held out, so there is no "
    "estimate, and intervals from any small test would mean little."
)
_PACKAGES = ("rareclass", "scikit-learn", "skrub", "skops", "numpy", "polars")


@dataclass(frozen=True)
class Trained:
    """The outcome of training."""

    content: ModelFile
    estimate: RankingEstimate | None  # of its ranking of new rows
    method: Method  # with the parameter used
    decided: list[str]  # how often it was right about them, where that says more
    summary: list[str]  # what the method says of the model
    notes: list[str] = field(default_factory=list)


def train(data: TrainingSet, settings: FitSettings) -> Trained:
    """Train on all rows, with an estimate of what the model is worth on new ones."""
    notes: list[str] = []
    method = settings.method
    kept, held_out = _split(data, settings, notes)
    with warnings_as(notes):
        will_refit = settings.refit and len(held_out) > 0
        first = _fit(data.take(kept), settings, method, notes, 0.5 if will_refit else 1.0)
        estimate, decided = _estimate(data, held_out, first, settings, notes)
        chosen = method.as_chosen(first.model) if will_refit else method
        again = _refit(data, settings, chosen, first, notes) if will_refit else None
    encoder, model = first if again is None else again
    trained_on = data.take(kept) if again is None else data
    chosen_on = terms_of(data.y[kept], settings)
    metadata = method.facts(model, chosen_on) | chosen.of_choice()
    metadata |= _metadata(data, settings, estimate, len(trained_on.y) == len(data.y))
    final = decision_of(model, metadata)
    if final.quantiles not in metadata:
        metadata[final.quantiles] = _quantiles(encoder, model, trained_on, settings.seed)
    summary = method.summary(model, chosen_on) + final.rules()
    method.lighten(model)
    content = ModelFile(encoder, model, metadata)
    return Trained(content, estimate, chosen, decided, summary, notes)


def cross_fits(settings: FitSettings) -> bool:
    """Whether the estimate is made of the training rows, each scored as if it were a new one."""
    return settings.method.cross_fits and settings.holdout is None and settings.refit


def estimated_by(settings: FitSettings) -> str:
    """What kind of estimate it is."""
    return "cross-fitting" if cross_fits(settings) else "held-out rows"


def holdout_of(settings: FitSettings) -> float:
    """The share of the rows that is held out where the method does not cross-fit."""
    return _HOLDOUT if settings.holdout is None else settings.holdout


def _estimate(
    data: TrainingSet,
    held_out: NDArray[np.int64],
    fitted: "_Fitted",
    settings: FitSettings,
    notes: list[str],
) -> tuple[RankingEstimate | None, list[str]]:
    """Return measures of a ranking of rows that count as new, and its decisions in brief."""
    if cross_fits(settings):
        every = EncodedRows(None, data.y, data.weight, data.target.n_codes)
        judged = settings.method.cross_fitted(fitted.model, every)
    else:
        tested = data.take(held_out)
        if not len(held_out):
            return None, []
        scores = scores_of(fitted.encoder, fitted.model, tested.rows)
        judged = ScoredRows(tested.y, scores, tested.weight)
    if len(np.unique(judged.y)) < 2:
        notes.append(_NO_ESTIMATE)
        return None, []
    decision = decision_of(fitted.model, data.target.metadata())
    estimate = decision.estimate(*judged)
    notes += data.target.notes_on_held_out(judged.y, estimate)
    return estimate, decision.confusion(*judged).in_brief


def _split(
    data: TrainingSet, settings: FitSettings, notes: list[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows to train on and the rows held out, of each code in the asked proportion."""
    everything = np.arange(len(data.y))
    if cross_fits(settings):
        return everything, everything[:0]
    # The codes from the highest: the rare class before the rest.
    groups = [np.flatnonzero(data.y == code) for code in np.unique(data.y)[::-1]]
    holdout = holdout_of(settings)
    if holdout == 0:
        notes.append("No rows were held out: there is no estimate of how good the model is.")
        return everything, everything[:0]
    if sum(len(members) > 1 for members in groups) < 2:
        notes.append(_NO_ESTIMATE)
        return everything, everything[:0]
    generator = np.random.default_rng(settings.seed)
    held_out = np.zeros(len(data.y), dtype=bool)
    for members in groups:
        size = min(max(1, round(holdout * len(members))), len(members) - 1)
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
    on_all_rows: bool,
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
        "holdout": 0.0 if cross_fits(settings) else holdout_of(settings),
        "seed": settings.seed,
        "trained_on_all_rows": on_all_rows or estimate is None,
        "estimated_by": None if estimate is None else estimated_by(settings),
        "held_out": None if estimate is None else estimate.as_plain_data(),
        "versions": {package: version(package) for package in _PACKAGES}
        | {"python": platform.python_version()},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
