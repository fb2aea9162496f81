"""Choice of the rows of a round: by score, where labels teach most, and at random."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from rareclass.errors import ErrorKind
from rareclass.hunt.case_score import Floats, to_nearest
from rareclass.labels.states import CheckReason
from rareclass.parameters import check_number

# Rows looked at for each one that teaches: those that come next in the order of scores.
_SHORTLIST = 20
# Strata of the rows at random, by score; each holds so many times the rows of the one above.
_MOST_STRATA, _GROWTH = 5, 3.0
# Weight of nearness to cases, and squared distances that are as good as none, of the variance.
_NEARNESS, _SAME = 0.25, 1e-3


@dataclass(frozen=True)
class Shares:
    """Parts of a round; what they leave goes by score.

    Attributes
    ----------
    teaches : float
        Rows whose labels teach most: uncertain and unlike all rows with a label.
    random : float
        Rows drawn at random.
    """

    teaches: float = 0.1
    random: float = 0.1

    def __post_init__(self) -> None:
        for name, share in vars(self).items():
            check_number(name, share, "from 0 to 1", 0.0, 1.0, "[]", "It is a share of the list.")
        if self.teaches + self.random > 1.0:
            fault = f"Shares of {self.teaches:g} and {self.random:g} are not parts of one list."
            raise ErrorKind.SETTING.error(fault, "Give two that are at most 1 together.")


class Selected(NamedTuple):
    """Rows of a round, as places among the candidates."""

    rows: NDArray[np.intp]
    reason: NDArray[np.str_]
    chance: Floats  # 1 for rows taken by a rule


def select_rows(
    scores: Floats | None,
    points: Floats,
    known: Floats,
    budget: int,
    shares: Shares = Shares(),
    seed: int | Sequence[int] = 0,
) -> Selected:
    """Choose rows among candidates, none twice.

    The rows of highest score come first. Those that teach are, of the rows that follow in the order
    of scores, where the model is least certain, the ones farthest from all known and chosen rows.
    Of all others some are drawn at random: a fixed number from each of a few strata by score, so
    that every row has a known chance above 0, and likely cases a higher one.

    Parameters
    ----------
    scores : ndarray of shape (n,) or None
        Higher is more like a case; None where nothing is known. Equal ones are in random order.
    points : ndarray of shape (n, n_coordinates)
        Coordinates in which unlike rows are far apart.
    known : ndarray of shape (n_known, n_coordinates)
        The rows that have a label.
    budget : int
    shares : Shares
    seed : int or sequence of int
    """
    rng = np.random.default_rng(seed)
    n, is_ordered = min(budget, len(points)), scores is not None
    n_random = min(round(shares.random * n) or int(shares.random > 0.0 and n > 1), n)
    n_score = max(n - n_random - round(shares.teaches * n), 0) if is_ordered else 0
    shuffled = rng.permutation(len(points))
    order = shuffled if scores is None else shuffled[np.argsort(-scores[shuffled], kind="stable")]
    by_score, left = order[:n_score], order[n_score:]
    n_teaches = n - n_score - n_random
    near = left[: max(_SHORTLIST * n_teaches, 1)] if is_ordered else left
    teaching = near[farthest(points[near], np.vstack([known, points[by_score]]), n_teaches)]
    drawn, chance = draw_by_strata(left[~np.isin(left, teaching)], n_random, rng, is_ordered)
    reasons = (CheckReason.SCORE, CheckReason.TEACHES, CheckReason.RANDOM)
    return Selected(
        np.concatenate([by_score, teaching, drawn]),
        np.repeat(np.array(reasons), [len(by_score), len(teaching), len(drawn)]),
        np.concatenate([np.ones(len(by_score) + len(teaching)), chance]),
    )


def lean_to_cases(scores: Floats, points: Floats, cases: Floats, others: Floats) -> Floats:
    """Return scores that nearness to known cases raises; it tells more than a model of few labels.

    Minus the logarithm of the share of rows that score as high, and a quarter of the same of the
    ratio of squared distances, to the nearest known other row by that to the nearest case.
    """
    least = _SAME * points.var(axis=0).sum() or 1.0
    ratio = np.log((to_nearest(points, others) + least) / (to_nearest(points, cases) + least))
    return log_rank(scores) + _NEARNESS * log_rank(ratio)


def log_rank(scores: Floats) -> Floats:
    """Return minus the common logarithm of the share of rows that score as high.

    >>> log_rank(np.array([3.0, 1.0])).round(2).tolist()
    [0.3, -0.0]
    """
    return np.asarray(-np.log10(rankdata(-scores, "max") / len(scores)))


def farthest(points: Floats, known: Floats, n: int) -> NDArray[np.intp]:
    """Choose n points in turn, each the farthest from the known ones and those chosen before."""
    near = to_nearest(points, known)
    chosen: list[int] = []
    while len(chosen) < min(n, len(points)):
        chosen.append(int(np.argmax(near)))
        near = np.minimum(near, to_nearest(points, points[chosen[-1:]]))
        near[chosen] = -np.inf
    return np.array(chosen, np.intp)


def draw_by_strata(
    ordered: NDArray[np.intp], n: int, rng: np.random.Generator, is_ordered: bool = True
) -> tuple[NDArray[np.intp], Floats]:
    """Draw n rows at random from strata of rows in order; return them with their chances."""
    n = min(n, len(ordered))
    # Two rows from each stratum: from one the spread within it could not be told.
    n_strata = max(1, min(n // 2, _MOST_STRATA)) if is_ordered else 1
    size = _GROWTH ** np.arange(n_strata)
    ends = np.round(np.cumsum(size) / size.sum() * len(ordered)).astype(int)
    counts = np.diff(np.round(np.linspace(0, n, n_strata + 1)).astype(int))
    if (np.diff(ends, prepend=0) < counts).any():
        ends, counts = np.array([len(ordered)]), np.array([n])
    drawn, chance = [np.empty(0, np.intp)], [np.empty(0)]
    for first, end, count in zip([0, *ends[:-1]], ends, counts, strict=True):
        if count:
            drawn.append(rng.choice(ordered[first:end], count, replace=False))
            chance.append(np.full(count, count / (end - first)))
    return np.concatenate(drawn), np.concatenate(chance)
