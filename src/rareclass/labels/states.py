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


class ListedRows(NamedTuple):
    """Rows that one round of a review listed."""

    rows: NDArray[np.intp]  # positions in the table
    at_random: NDArray[np.bool_]  # the others were taken by a rule
    chance: Floats  # of being drawn, of the rows at random; 1 for the others


def check_weights(known_after: NDArray[np.integer], rounds: Sequence[ListedRows]) -> Floats:
    r"""Weigh the rows with known labels, so that weighted sums estimate sums over the table.

    A round that draws row i at random with chance :math:`\pi_i` estimates the sum of any f by

    .. math:: \sum_{known\ before} f_i + \sum_{by\ rule} f_i + \sum_{at\ random} f_i / \pi_i,

    which is unbiased given what was known before. Rounds are averaged by their numbers of random
    rows, so that each row has one weight. A round does not count where a listed label is unknown,
    or no row is at random: it estimates nothing beyond its own rows. Where no round counts, each
    known row counts once. So it does where every label is known.

    Parameters
    ----------
    known_after : ndarray of int of shape (n_rows,)
        Number of rounds that were listed before the label became known: 0 for recorded labels;
        -1 for unknown labels.
    rounds : sequence of ListedRows

    Examples
    --------
    >>> drawn = ListedRows(np.array([3]), np.array([True]), np.array([0.25]))
    >>> check_weights(np.array([0, -1, -1, 1, -1]), [drawn])
    array([1., 0., 0., 4., 0.])
    """
    known, counted = known_after >= 0, _that_count(known_after, rounds)
    if known.all() or not counted:
        return known.astype(np.float64)
    weight = np.zeros(len(known))
    for number, n_random, (rows, at_random, chance) in counted:
        by_round = (known & (known_after <= number)).astype(np.float64)
        by_round[rows] = np.where(at_random, 1.0 / chance, 1.0)
        weight += n_random * by_round
    return weight / sum(n_random for _, n_random, _ in counted)


def check_spreads(known_after: NDArray[np.integer], rounds: Sequence[ListedRows]) -> Floats:
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
    spread, counted = np.zeros(len(known_after)), _that_count(known_after, rounds)
    if (known_after >= 0).all() or not counted:
        return spread
    for number, n_random, (rows, at_random, chance) in counted:
        later = np.where(known_after < 0, -1, np.maximum(known_after - number, 0))
        odds = np.full(len(spread), float((1.0 / chance[at_random]).mean()) - 1.0)
        odds[rows] = np.where(at_random, 1.0 / chance, 1.0) - 1.0
        odds[(known_after >= 0) & (known_after <= number)] = 0.0
        spread += n_random**2 * odds * check_weights(later, rounds[number:])
    return spread / sum(n_random for _, n_random, _ in counted) ** 2


def _that_count(
    known_after: NDArray[np.integer], rounds: Sequence[ListedRows]
) -> list[tuple[int, int, ListedRows]]:
    """Return number, random rows and rows of each round with such rows and all verdicts."""
    return [
        (number, int(np.count_nonzero(each.at_random)), each)
        for number, each in enumerate(rounds)
        if each.at_random.any() and (known_after[each.rows] >= 0).all()
    ]
