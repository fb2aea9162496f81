"""Base of the maps from scores to probabilities, and the score levels that they are fitted on."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from rareclass.errors import ErrorKind, InputError
from rareclass.metrics.scored_classes import FloatArray, check_scores, split_scores

# The nearest to 0 and 1 that a probability comes: the same distance from both ends.
_NEAREST = float(np.finfo(np.float64).eps)
# Larger weights are no numbers of copies, whole or not.
_MOST_COPIES = 1e9
# Parts that scored rows are dealt to, and blocks of copies that are dealt apart.
_N_PARTS, _MOST_DEALT = 10, 100_000


class ScoreLevels(NamedTuple):
    """The distinct scores, ascending, with the weight of the rows at each; all shape (n_levels,).

    Rows of equal score are one level, so that ties get one probability; weights are copies.
    """

    scores: FloatArray
    rare: FloatArray
    total: FloatArray

    @property
    def n_rare(self) -> float:
        """Weight of the rare rows."""
        return float(self.rare.sum())

    @property
    def n_majority(self) -> float:
        """Weight of the other rows."""
        return float((self.total - self.rare).sum())

    @property
    def prevalence(self) -> float:
        """Share of the rare rows, by weight."""
        return self.n_rare / (self.n_rare + self.n_majority)

    @property
    def is_constant(self) -> bool:
        """True where all rows have one score, which tells nothing."""
        return len(self.scores) == 1

    @property
    def platt_targets(self) -> FloatArray:
        r"""Mean target of each level: :math:`(n_+ + 1) / (n_+ + 2)` if rare, :math:`1 / (n_- + 2)`.

        In place of 1 and 0 (Platt 1999): the mean of the posterior under a uniform prior, which
        keeps slopes finite where the classes do not overlap. n are weights, as copies.
        """
        rare = (self.n_rare + 1.0) / (self.n_rare + 2.0)
        rest = 1.0 / (self.n_majority + 2.0)
        return (self.rare * rare + (self.total - self.rare) * rest) / self.total


class CalibrationMap(ABC):
    """A map that does not fall, from a score to the probability of the rare class.

    Subclasses are frozen dataclasses of numbers and arrays.
    """

    @classmethod
    @abstractmethod
    def of(cls, levels: ScoreLevels) -> Self:
        """Learn from rows that were reduced to their levels."""

    @classmethod
    def fit(cls, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from scored rows: y true where rare, weights as copies. O(n log n)."""
        return cls.of(read_score_levels(y, scores, sample_weight))

    @abstractmethod
    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p / (1 - p) of each finite score."""

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """Probability of the rare class, strictly between 0 and 1, of each score.

        Raises `ValueError` on a NaN score, naming the row.
        """
        value, _ = check_scores(scores, None)
        return to_probability(self.log_odds(value))


def to_probability(log_odds: FloatArray) -> FloatArray:
    """Probability of log-odds, strictly between 0 and 1."""
    return np.clip(expit(log_odds), _NEAREST, 1.0 - _NEAREST)


def read_score_levels(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> ScoreLevels:
    """Reduce scored rows to their levels. O(n log n) time, O(n) memory.

    Weights are copies where they are whole numbers. Of others only the ratios count: they are
    scaled to a mean of 1 among the rare rows, which are what evidence is short of.

    Raises `ValueError` as `rareclass.metrics.roc_auc` does: other labels than 0 and 1, NaN scores,
    negative weights, a class without a row of weight above 0; and on infinite scores.
    """
    if sample_weight is not None:
        _refuse_no_weight(sample_weight)
    split = split_scores(y, scores, sample_weight)
    value = np.concatenate([split.rare, split.majority])
    infinite = ~np.isfinite(value)
    if infinite.any():
        raise InputError(
            f"scores hold {infinite.sum()} infinite values, of which no probability is learned.",
            "Give finite scores.",
            ErrorKind.NOT_FINITE,
        )
    if split.rare_weight is None or split.majority_weight is None:
        weight = np.ones(len(value))
    else:
        weight = _as_copies(split.rare_weight, split.majority_weight)
    distinct, place = np.unique(value, return_inverse=True)
    n_rare, n_levels = len(split.rare), len(distinct)
    rare = np.bincount(place[:n_rare], weight[:n_rare], n_levels).astype(np.float64)
    rest = np.bincount(place[n_rare:], weight[n_rare:], n_levels).astype(np.float64)
    return ScoreLevels(distinct, rare, rare + rest)


def _as_copies(rare: FloatArray, rest: FloatArray) -> FloatArray:
    most = max(rare.max(), rest.max())
    weight = np.concatenate([rare, rest])
    if most <= _MOST_COPIES and (weight == np.round(weight)).all():
        return weight
    mean = (rare / most).mean() * most  # sums of very large ones do not fit
    return weight / mean


def _refuse_no_weight(sample_weight: ArrayLike) -> None:
    weight = np.asarray(sample_weight)
    if weight.dtype.kind in "fiub" and weight.size and not weight.any():
        raise InputError(
            "sample_weight is 0 for every row: there is nothing to learn from.",
            "Give some rows a weight above 0, or leave it out.",
            ErrorKind.TOO_FEW_ROWS,
        )


def coarser(levels: ScoreLevels, most: int) -> ScoreLevels:
    """Join neighbours to at most so many levels of about equal weight, and those with rare rows.

    A joined level stands at the highest of its scores, the lower ones of which count as it.
    """
    if len(levels.scores) <= most:
        return levels
    is_rare = levels.rare > 0.0
    share = np.cumsum(levels.total) / levels.total.sum()
    part = np.minimum((share * most).astype(np.int64), most - 1)
    # A level ends where the next one begins another part, or holds rare rows as it or its next.
    ends = np.append((np.diff(part) > 0) | is_rare[:-1] | is_rare[1:], True)
    last = np.flatnonzero(ends)
    first = np.append(0, last[:-1] + 1)
    return ScoreLevels(
        levels.scores[last],
        np.add.reduceat(levels.rare, first),
        np.add.reduceat(levels.total, first),
    )


def dealt(weight: FloatArray) -> Iterator[FloatArray]:
    """Deal the copies of each level to ten parts; yield the weight that each part gets.

    Copies are numbered in the order of scores and dealt by number, whole blocks of neighbours where
    they are very many. At random, and always in the same way: of every tenth copy, a part would
    hold just what the others do.
    """
    running = np.append(0.0, np.cumsum(weight))
    n_blocks = int(min(np.ceil(running[-1]), _MOST_DEALT))
    edges = np.linspace(0.0, max(n_blocks, running[-1]), n_blocks + 1)
    number = np.random.default_rng(0).permutation(np.arange(n_blocks) % _N_PARTS)
    for part in range(_N_PARTS):
        own = np.append(0.0, np.cumsum(np.where(number == part, np.diff(edges), 0.0)))
        yield np.diff(np.interp(running, edges, own))
