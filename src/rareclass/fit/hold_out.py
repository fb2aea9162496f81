"""Rows that are held out for the estimate, and what plain methods reach on the same rows."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from rareclass.errors import setting
from rareclass.fit.method import EncodedRows
from rareclass.fit.rows_on_disk import RowsOnDisk
from rareclass.fit.training_set import FitSettings, TrainingSet
from rareclass.folds.dealing import group_numbers, most_folds
from rareclass.folds.score_scale import MajorityScores, match_majority
from rareclass.folds.splitters import splitter_for
from rareclass.metrics import average_precision, roc_auc
from rareclass.metrics.intervals import stretch_for_training, stretch_of_folds
from rareclass.model.facts import ScoredRows
from rareclass.model.targets import RareClassFacts
from rareclass.rows.memory import count_threads


def pooled(parts: Sequence[ScoredRows]) -> ScoredRows:
    """Put rows that were scored in parts into the order of the table."""
    columns = list(zip(*parts, strict=True))[:4]
    joined: list[Any] = [None if each[0] is None else np.concatenate(each) for each in columns]
    return ScoredRows(*joined).take(np.argsort(joined[3], kind="stable"))


# Share of the rows that an estimate is made of, where it needs rows of its own.
_HOLDOUT = 0.25
# With fewer rare rows than this a quarter of them says next to nothing.
FEW_RARE = 20
NO_ESTIMATE = (
    "Fewer than two classes have two distinct rows: nothing can be held out, so there is no "
    "estimate, and intervals from any small test would mean little."
)

Split = tuple[NDArray[np.int64], NDArray[np.int64]]


class HoldOutPlan(NamedTuple):
    """Rows that the first training learns from, and the rows that its model is judged on."""

    kept: NDArray[np.int64]
    held_out: NDArray[np.int64]  # none of them where the model is judged by cross-fitting, or not
    by: str  # what the estimate is made of, in a word
    share: float = 0.0  # of the rows that are held out
    cross_fits: bool = False  # training rows are judged, each scored as if it were a new one
    folds: Sequence[Split] = ()  # parts that are then held out in turn; none: the method does it

    def stretch(self, n_tested: int, model: Any) -> float:
        """Return how much wider intervals of what is learned are than of the held-out rows."""
        n_kept = len(self.kept)
        if self.cross_fits:  # each fold learns from all rows but those that it holds out
            return stretch_of_folds(n_kept, n_tested, len(self.folds) or model.n_splits_)
        return stretch_for_training(n_tested, n_kept)


def plan_hold_out(data: TrainingSet, settings: FitSettings, notes: list[str]) -> HoldOutPlan:
    """Decide which rows the model is judged on, of each code in the asked proportion.

    The training rows themselves where the method cross-fits, or where rare rows are few: then
    models learn anew without each part of the rows. Not where time is known: what comes is
    foretold from what was.

    Raises `InputError` where a group has no name, and where groups or times leave no such rows.
    """
    everything = np.arange(len(data.y))
    folds = [] if settings.method.cross_fits else _estimation_folds(data, settings)
    may_cross_fit = settings.holdout is None and settings.refit and settings.time is None
    if may_cross_fit and (settings.method.cross_fits or folds):
        by = "cross-fitting" if settings.groups is None else "cross-fitting by group"
        return HoldOutPlan(everything, everything[:0], by, cross_fits=True, folds=folds)
    by = "held-out rows" if settings.groups is None else "held-out groups"
    by = by if settings.time is None else "latest rows"
    share = _HOLDOUT if settings.holdout is None else settings.holdout
    # The codes from the highest: the rare class before the rest.
    codes = [np.flatnonzero(data.y == code) for code in np.unique(data.y)[::-1]]
    if share == 0 or sum(len(members) > 1 for members in codes) < 2:
        none = "No rows were held out: there is no estimate of how good the model is."
        notes.append(NO_ESTIMATE if share else none)
        return HoldOutPlan(everything, everything[:0], by, share)
    if data.time is not None:
        kept, held_out = _latest(data, data.time, share)
    elif settings.groups is not None:
        kept, held_out = _whole_groups(data, settings.groups, share, settings.seed)
    else:
        generator = np.random.default_rng(settings.seed)
        is_held_out = np.zeros(len(data.y), dtype=bool)
        for members in codes:
            size = min(max(1, round(share * len(members))), len(members) - 1)
            is_held_out[generator.permutation(members)[:size]] = True
        kept, held_out = np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
    return HoldOutPlan(kept, held_out, by, share)


def _estimation_folds(data: TrainingSet, settings: FitSettings) -> list[Split]:
    """Parts of a table in memory with few rare rows, which are held out in turn; none of others."""
    n_rare = int(data.rare.sum())
    is_small = n_rare < FEW_RARE and not isinstance(data.rows, RowsOnDisk)
    if not is_small or not isinstance(data.target, RareClassFacts):
        return []
    n_folds = min(settings.folds, n_rare, len(data.y) - n_rare)
    group, name = None, settings.groups
    if name is not None:
        group = group_numbers(data.groups, len(data.y), setting("groups", name))
        n_folds = min(settings.folds, most_folds(data.rare, group))
    if n_folds < 2:
        return []
    parts = splitter_for(n_folds, settings.seed, groups=group)
    return list(parts.split(data.y, data.rare, group))


def _latest(data: TrainingSet, time: NDArray[Any], holdout: float) -> Split:
    """The last of so many stretches of time that hold as many rare rows each."""
    n_moments = len(np.unique(time[data.rare]))
    n_before = max(1, min(round(1.0 / holdout) - 1, n_moments - 1))
    folds = splitter_for(n_before, seed=0, time=time).split(data.y, data.rare, time)
    return list(folds)[-1]


def _whole_groups(data: TrainingSet, name: str, holdout: float, seed: int) -> Split:
    """One of as many parts of the groups as the share asks for."""
    group = group_numbers(data.groups, len(data.y), setting("groups", name))
    n_parts = max(2, min(round(1.0 / holdout), len(np.unique(group[data.rare]))))
    parts = splitter_for(n_parts, seed, groups=group).split(data.y, data.rare, group)
    return next(iter(parts))


@dataclass(frozen=True)
class Baseline:
    """A plain method on the held-out rows."""

    name: str
    auc: float
    average_precision: float
    seconds: float  # of learning


def baselines(parts: Sequence[tuple[EncodedRows, EncodedRows]]) -> list[Baseline]:
    """scikit-learn's histogram boosting and logistic regression, with their defaults.

    A part is rows to learn from and rows to be judged on, those of the rare class with code 1. On
    the rows judged in all parts together, with scores of each part measured from the mean of its
    majority in deviations. Boosting takes no sparse rows.
    """
    y = np.concatenate([tested.y for _, tested in parts]) == 1
    weights = [tested.weight for _, tested in parts if tested.weight is not None]
    weight = np.concatenate(weights) if weights else None
    found = []
    for name, plain in _plain_methods().items():
        if sparse.issparse(parts[0][0].X) and name == "histogram boosting":
            continue
        start = time.perf_counter()
        with threadpool_limits(count_threads(None), user_api="openmp"):
            models = [learned.fit(clone(plain)) for learned, _ in parts]
        seconds = time.perf_counter() - start
        scores = np.concatenate(
            [_standardised(model, rows) for model, (_, rows) in zip(models, parts, strict=True)]
        )
        measures = roc_auc(y, scores, weight), average_precision(y, scores, weight)
        found.append(Baseline(name, *measures, seconds))
    return found


def _standardised(model: Any, rows: EncodedRows) -> np.ndarray:
    scores: np.ndarray = model.decision_function(rows.X)
    return match_majority(MajorityScores.of(scores[rows.y != 1]))(scores)


def _plain_methods() -> dict[str, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    return {
        "histogram boosting": HistGradientBoostingClassifier(random_state=0),
        "logistic regression": LogisticRegression(max_iter=1000),
    }
