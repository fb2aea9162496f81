"""States of the labels of a table: unknown, recorded in the table, or checked by a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
UNKNOWN = -1


class CheckReason(StrEnum):
    """Reason for which a row was shown to a person."""

    SCORE = "score"  # its score is high
    TEACHES = "teaches"  # its label improves the model most
    RANDOM = "random"  # drawn at random with a known chance
    OTHER = "other"  # checked outside of a list


@dataclass(frozen=True)
class LabelStates:
    """State of the label of each of n rows.

    Attributes
    ----------
    code : ndarray of int
        -1 for an unknown label, 0 for the rest, k for the k-th rare class. A verdict replaces the
        recorded label.
    checked : ndarray of bool
        Whether a person gave a verdict.
    reason : ndarray of str
        Value of the `CheckReason` for which a checked row was shown; "" where not checked.
    round : ndarray of int
        Round whose list named a checked row, from 1; 0 for none.
    weight : ndarray of float
        Rows of the table that a known row stands for; see `check_weights`. 0 for unknown rows.
    spread : ndarray of float
        Part of a known row in the variance of such sums; see `check_spreads`.
    """

    code: NDArray[np.int16]
    checked: NDArray[np.bool_]
    reason: NDArray[np.str_]
    round: NDArray[np.int32]
    weight: Floats
    spread: Floats

    @property
    def n_random(self) -> int:
        """Number of checked rows that were drawn at random."""
        return int(np.count_nonzero(self.reason == CheckReason.RANDOM))


class ListedRows(NamedTuple):
    """Rows that one round of a review listed."""

    rows: NDArray[np.intp]  # positions in the table
    at_random: NDArray[np.bool_]  # the others were taken by a rule
    chance: Floats  # of being drawn, of the rows at random; 1 for the others


class CheckWeights(NamedTuple):
    """Weight of each row, and rows of each round that have no verdict yet."""

    weight: Floats
    n_missing: tuple[int, ...]


def check_weights(
    known_after: NDArray[np.integer],
    rounds: Sequence[ListedRows],
    missing_at_random: bool = False,
) -> CheckWeights:
    r"""Weigh the rows with known labels, so that weighted sums estimate sums over the table.

    A round that draws row i at random with chance :math:`\pi_i` estimates the sum of any f by

    .. math:: \sum_{known\ before} f_i + \sum_{by\ rule} f_i + \sum_{at\ random} f_i / \pi_i,

    which is unbiased given what was known before. Rounds are averaged by their numbers of random
    rows, so that each row has one weight. Rounds without random rows estimate nothing beyond their
    own rows; where all rounds are such, or there are none, each known row counts once. So it does
    where every label is known.

    Parameters
    ----------
    known_after : ndarray of int of shape (n_rows,)
        Number of rounds that were listed before the label became known: 0 for recorded labels;
        -1 for unknown labels.
    rounds : sequence of ListedRows
    missing_at_random : bool, default=False
        Whether rows without a verdict count as missing at random among the rows of their round
        with the same chance. By default a round in which a listed label is unknown does not count.

    Examples
    --------
    >>> drawn = ListedRows(np.array([3]), np.array([True]), np.array([0.25]))
    >>> check_weights(np.array([0, -1, -1, 1, -1]), [drawn]).weight
    array([1., 0., 0., 4., 0.])
    """
    known = known_after >= 0
    missing = tuple(int(np.count_nonzero(~known[each.rows])) for each in rounds)
    weight, n_drawn = np.zeros(len(known)), 0
    for number, listed in enumerate(rounds):
        n_random = int(np.count_nonzero(listed.at_random))
        each = _round_weights(known, known_after, number, listed)
        if n_random and (missing_at_random or not missing[number]) and each is not None:
            weight += n_random * each
            n_drawn += n_random
    if known.all() or not n_drawn:
        return CheckWeights(known.astype(np.float64), missing)
    return CheckWeights(weight / n_drawn, missing)


def _round_weights(
    known: NDArray[np.bool_], known_after: NDArray[np.integer], number: int, listed: ListedRows
) -> Floats | None:
    """Return the weights by one round; None where no row with some chance has a label."""
    weight = (known & (known_after <= number)).astype(np.float64)
    chance = np.where(listed.at_random, listed.chance, 2.0)  # those by rule apart
    for value in np.unique(chance):
        rows = listed.rows[chance == value]
        answered = rows[known[rows]]
        if not len(answered):
            return None
        weight[answered] = len(rows) / len(answered) / min(value, 1.0)
    return weight


def check_spreads(
    known_after: NDArray[np.integer],
    rounds: Sequence[ListedRows],
    missing_at_random: bool = False,
) -> Floats:
    r"""Return a number for each row: sums weighed by `check_weights` vary by ``sum spread f**2``.

    The errors of rounds are uncorrelated, as each is 0 on average given what was known before.
    Round r with share :math:`a_r` of all random rows adds
    :math:`a_r^2 \sum (1 / \pi_i - 1) f_i^2` over the rows that it could draw. That sum is
    estimated from round r and all later ones, so that a case that round r missed and a later round
    found widens the interval. Rows that round r did not list have its mean chance.

    >>> drawn = ListedRows(np.array([3]), np.array([True]), np.array([0.25]))
    >>> check_spreads(np.array([0, -1, -1, 1, -1]), [drawn])
    array([ 0.,  0.,  0., 12.,  0.])
    """
    spread, n_drawn = np.zeros(len(known_after)), 0
    if (known_after >= 0).all():
        return spread
    for number, (rows, at_random, chance) in enumerate(rounds):
        n_random, answered = int(at_random.sum()), known_after[rows] >= 0
        if not (missing_at_random or answered.all()) or not answered[at_random].any():
            continue
        later = np.where(known_after < 0, -1, np.maximum(known_after - number, 0))
        weight = check_weights(later, rounds[number:], missing_at_random).weight
        odds = np.full(len(spread), float((1.0 / chance[at_random]).mean()) - 1.0)
        share = answered[at_random].mean()
        odds[rows] = np.where(at_random, 1.0 / (chance * share), 1.0) - 1.0
        odds[(known_after >= 0) & (known_after <= number)] = 0.0
        spread += n_random**2 * odds * weight
        n_drawn += n_random
    return spread / max(n_drawn, 1) ** 2
