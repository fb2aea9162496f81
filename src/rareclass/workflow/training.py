"""From a training file to a model: read, split, encode, choose lam, estimate, fit on all rows."""

import hashlib
import platform
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from rareclass.data.columns import Column
from rareclass.data.encoding import SparseEncoder, TableEncoder
from rareclass.data.svmlight_file import SvmlightFile
from rareclass.data.tables import TableFile
from rareclass.data.target import RareClass, find_rare_class, labels_as_text
from rareclass.data.training_table import read_training_table
from rareclass.errors import InputError, nearest_name
from rareclass.ranking import RankRC, RankRCCV
from rareclass.ranking.preparation import held_whole_bytes
from rareclass.ranking.rankrc_cv import PAPER_LAMS
from rareclass.workflow.held_out import Estimate, estimate_on
from rareclass.workflow.memory_limit import size_text
from rareclass.workflow.model_file import ModelFile

DEFAULT_LAM = 2.0**-8
# More rare rows than this are thinned to well-spread ones; fewer are joined by some majority
# rows, which costs little and helps most where rare rows are few (docs/decisions/0006).
MOST_RARE_LANDMARKS = 1000
MAJORITY_LANDMARKS = 200
# Scores of this many majority rows say where a new score stands among them.
PERCENTILE_ROWS = 20_000
_PACKAGES = ("rareclass", "scikit-learn", "skrub", "skops", "numpy", "polars")

Rows: TypeAlias = pl.DataFrame | sparse.csr_matrix


@dataclass(frozen=True)
class FitSettings:
    """How to train.

    Attributes
    ----------
    target : str or None
        The column with the labels; not needed for svmlight.
    positive : str or None
        The label of the rare class; by default the rarer of two.
    drop, keep, categories : tuple of str
        Columns to leave out; to learn from even if they look like identifiers; to take as
        categories whatever they hold.
    lam : float or None
        Strength of the regulariser; None chooses it by cross-validation.
    weigh_copies : bool
        Whether a row that stands for copies counts as many, or once.
    holdout : float
        Share of the rows kept for the estimate, in [0, 1).
    folds : int
        Folds of the cross-validation.
    seed : int
        Seed of the split, the folds and the encoders.
    refit : bool
        Whether the saved model is trained on all rows, the held-out ones too.
    kernel_memory : int
        Bytes that the solver may use for kernel blocks.
    """

    target: str | None = None
    positive: str | None = None
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    lam: float | None = None
    weigh_copies: bool = True
    holdout: float = 0.25
    folds: int = 5
    seed: int = 0
    refit: bool = True
    kernel_memory: int = 2 << 30


@dataclass(frozen=True)
class TrainingSet:
    """Rows ready for training.

    Attributes
    ----------
    rows : DataFrame or csr_matrix
        Typed columns, or sparse features.
    rare : ndarray of bool
        Which rows are rare.
    weight : ndarray or None
        How many copies each row stands for, when there were copies and they count.
    target : str
        Name of the target.
    rare_class : RareClass
        The labels and their counts.
    columns : list of Column
        What each column holds; empty for svmlight.
    n_unlabelled, n_copies : int
        Rows left out for want of a target; rows that were copies of another, which now are
        counted in ``weight`` or, without it, dropped.
    zero_based : bool
        Whether an svmlight file numbers its first feature 0.
    """

    rows: Rows
    rare: NDArray[np.bool_]
    weight: NDArray[np.float64] | None
    target: str
    rare_class: RareClass
    columns: list[Column]
    n_unlabelled: int = 0
    n_copies: int = 0
    zero_based: bool = True

    @property
    def n_rows(self) -> int:
        """Number of rows with a target, copies included."""
        return sum(self.rare_class.counts.values())

    @property
    def n_rare(self) -> int:
        """Number of rare rows, copies included."""
        return self.rare_class.counts[self.rare_class.label]

    def new_encoder(self, seed: int) -> TableEncoder | SparseEncoder:
        """Return an encoder for these rows, not fitted yet."""
        if isinstance(self.rows, pl.DataFrame):
            return TableEncoder([c for c in self.columns if c.is_used], random_state=seed)
        return SparseEncoder(self.zero_based)

    def take(self, chosen: NDArray[np.int64]) -> "TrainingSet":
        """Return the chosen rows."""
        weight = None if self.weight is None else self.weight[chosen]
        return TrainingSet(
            self.rows[chosen],
            self.rare[chosen],
            weight,
            self.target,
            self.rare_class,
            self.columns,
            zero_based=self.zero_based,
        )


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


def read_training_set(file: TableFile | SvmlightFile, settings: FitSettings) -> TrainingSet:
    """Read a file for training, find its rare class, and collapse copies.

    Raises
    ------
    InputError
        For whatever is wrong with the file or the settings.
    """
    if isinstance(file, SvmlightFile):
        return _read_sparse_set(file, settings)
    if settings.target is None:
        raise InputError(
            "--target is missing: which column holds the classes?", nearest_name("", file.columns)
        )
    table = read_training_table(
        file, settings.target, settings.drop, settings.categories, settings.keep
    )
    rare_class = find_rare_class(table.labels, settings.positive)
    rare = (table.labels == rare_class.label).to_numpy()
    distinct, copies = _distinct_rows(table.frame, rare)
    return TrainingSet(
        table.frame if copies is None else table.frame[distinct],
        rare[distinct],
        copies if settings.weigh_copies else None,
        settings.target,
        rare_class,
        table.columns,
        table.n_unlabelled,
        len(rare) - len(distinct),
    )


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
            estimate = estimate_on(encoder, model, data.take(held_out))
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


def _read_sparse_set(file: SvmlightFile, settings: FitSettings) -> TrainingSet:
    named = {"--drop": settings.drop, "--keep": settings.keep, "--category": settings.categories}
    for option, given in named.items():
        if given:
            raise InputError(f"{option} {given[0]}: an svmlight file has no named columns.")
    batch, zero_based = file.read()
    if not len(batch.labels):
        raise InputError(f"{file.path} has no rows.", "Give a file with rows.")
    labels = labels_as_text(pl.Series("label", batch.labels))
    rare_class = find_rare_class(labels, settings.positive)
    rare = (labels == rare_class.label).to_numpy()
    distinct, copies = _distinct_sparse_rows(batch.X, rare)
    return TrainingSet(
        batch.X if copies is None else batch.X[distinct],
        rare[distinct],
        copies if settings.weigh_copies else None,
        "label",
        rare_class,
        [],
        n_copies=len(rare) - len(distinct),
        zero_based=zero_based,
    )


def _distinct_rows(
    rows: pl.DataFrame, rare: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return the first row of each group of copies, and how many each has, None without copies.

    Copies are equal in every column and in class: a copy of a training row that is held out, or
    in another fold, would flatter the model.
    """
    mark, position, count = "\0rare", "\0row", "\0count"
    marked = rows.with_columns(pl.Series(mark, rare))
    groups = (
        marked.with_row_index(position)
        .group_by(marked.columns, maintain_order=True)
        .agg(pl.col(position).first(), pl.len().alias(count))
    )
    distinct = groups[position].cast(pl.Int64).to_numpy()
    if len(distinct) == len(rare):
        return distinct, None
    return distinct, groups[count].cast(pl.Float64).to_numpy()


def _distinct_sparse_rows(
    X: sparse.csr_matrix, rare: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return the same for sparse rows, which are brought into one way of writing them."""
    X.sum_duplicates()
    X.eliminate_zeros()
    first: dict[bytes, int] = {}
    count = np.zeros(X.shape[0])
    for row in range(X.shape[0]):
        stored = slice(X.indptr[row], X.indptr[row + 1])
        digest = hashlib.blake2b(X.indices[stored].tobytes(), digest_size=16)
        digest.update(X.data[stored].tobytes())
        digest.update(rare[row].tobytes())
        count[first.setdefault(digest.digest(), row)] += 1
    distinct = np.flatnonzero(count)
    return distinct, None if len(distinct) == len(rare) else count[distinct]


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
    X = encoder.fit_transform(data.rows, data.rare, data.weight)
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
        return encoder, model.fit(X, y, sample_weight=data.weight)
    # Even one lam is cross-validated: the threshold needs scores of rows held out.
    lams = PAPER_LAMS if lam is None else (lam,)
    search = RankRCCV(lams, cv=folds, **shared).fit(X, y, sample_weight=data.weight)
    return encoder, search.best_estimator_


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
    scores = model.score_samples(encoder.transform(data.take(majority).rows))
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
