r"""Telling several rare classes apart: learned from the rare rows alone.

The ensemble ranks rows of any rare class above the rest. Which class a row is of is the second
question, and only rare rows know the answer:

.. math:: P(k | x) = P(rare | x) \, P(k | rare, x)

1. quick members learn each class against the other rare rows, in the folds of the table
2. they are combined, weighted and scaled as the members of the table are (`combination`)
3. a calibration makes the held-out scores of each class a probability
4. the probabilities of all classes are divided by their sum

Of two classes the second is what the first is not. A class that has too few rows to be held out
has its share of the rare rows everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rareclass.decide.calibration import Calibration
from rareclass.folds.majority_part import draw_classes

# A model is made, and its settings are read, without what scores rows.
if TYPE_CHECKING:
    from rareclass.ensemble.combination import Candidate
    from rareclass.ensemble.cross_fitting import CrossFitting
    from rareclass.ensemble.score_functions import FalsePositiveRate, LearnedMember

# Quick members that differ from each other. Of those that the user allows; all of theirs else.
_MEMBERS = ("extra trees", "logistic regression", "histogram boosting")
# Rare rows that the classes are learned from, at most: of each class as many at most, which weigh
# as much as all rows of the class.
_MOST_ROWS = 20_000
_LEAST_PROBABILITY = 1e-9
LN_10 = float(np.log(10.0))


@dataclass(eq=False)
class ClassRanking:
    """Ranks rare rows of one class above those of the others.

    Without members the class has its `share` of the rare rows everywhere.
    """

    members: "list[LearnedMember]"
    scale: "FalsePositiveRate | None"
    calibration: Calibration | None
    share: float

    def probability(self, rarity: np.ndarray) -> np.ndarray:
        """Return the probability of the class for the summed rarity of its members."""
        if self.scale is None or self.calibration is None:
            return np.full(len(rarity), self.share)
        return self.calibration(-self.scale(rarity) / LN_10)


@dataclass(eq=False)
class WhichClass:
    """The classes in order, and a ranking for each; of two classes for the first alone."""

    n_classes: int
    rankings: list[ClassRanking]

    @property
    def ensembles(self) -> "list[list[LearnedMember]]":
        """The members of each ranking, whose rarity `probabilities` takes."""
        return [ranking.members for ranking in self.rankings]

    def probabilities(self, rarity: np.ndarray) -> np.ndarray:
        """Return P(k | rare, x) of shape (n_rows, n_classes), rows summing to one.

        `rarity` has a column for each ranking (`summed_rarity`).
        """
        columns = zip(self.rankings, rarity.T, strict=True)
        return shares([ranking.probability(column) for ranking, column in columns], self.n_classes)


def shares(probability: Sequence[np.ndarray], n_classes: int) -> np.ndarray:
    """Bring probabilities of classes, each learned by itself, to a sum of one in every row."""
    columns = np.column_stack(probability)
    if columns.shape[1] < n_classes:  # of two classes
        columns = np.column_stack([columns, 1.0 - columns])
    columns = np.maximum(columns, _LEAST_PROBABILITY)
    return columns / columns.sum(axis=1, keepdims=True)


def learn_classes(fitted: "CrossFitting", n_classes: int) -> tuple[WhichClass, np.ndarray]:
    """Learn the classes of the rare rows by members that the table was learned by.

    Returned are the classes, and P(k | rare, x) of the rows that the ensemble is measured on, of
    shape (n_tested, n_classes): of rare rows by functions, weights and scales that did not see
    them; the others were never learned from. Time: that of the members on the rare rows, for each
    class.
    """
    of_row = fitted.views.rows.which
    assert of_row is not None
    learned = _learned_from(of_row, fitted.views.rows.weight, n_classes, fitted.held_out.seed)
    found = [
        _learn_class(fitted, *learned, of_row[learned[0]] == k)
        for k in range(1 if n_classes == 2 else n_classes)
    ]
    probabilities = shares([held_out for _, held_out in found], n_classes)
    rankings = [ranking for ranking, _ in found]
    return WhichClass(n_classes, rankings), probabilities[fitted.held_out.tested]


def _learned_from(
    of_row: np.ndarray, weight: np.ndarray | None, n_classes: int, seed: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Take all rare rows; of very many draw as many of each class, with the weight of the class."""
    rare = np.flatnonzero(of_row >= 0)
    if len(rare) <= _MOST_ROWS:
        return rare, None if weight is None else weight[rare]
    most = [_MOST_ROWS // n_classes] * n_classes
    return draw_classes(of_row, weight, most, seed)


def _learn_class(
    fitted: "CrossFitting", rare: np.ndarray, weight: np.ndarray | None, is_class: np.ndarray
) -> tuple[ClassRanking, np.ndarray]:
    """Learn one class against the other rare rows; return P of all rows of the table as well."""
    from rareclass.ensemble.combination import combine, cross_fitted_log_rates
    from rareclass.ensemble.cross_fitting import CrossFitting
    from rareclass.ensemble.training_rows import HeldOutRows, ViewsOfPart
    from rareclass.estimators.estimator import learn_calibration

    views = ViewsOfPart(fitted.views, rare, is_class)
    rows = views.rows = views.rows._replace(weight=weight)
    weight = np.ones(len(rare)) if weight is None else weight
    share = float(weight @ is_class / weight.sum())
    none = ClassRanking([], None, None, share)
    everywhere = np.full(len(fitted.views.rows.is_rare), share)
    of_class = rows.held_out_fold[is_class]
    if len(np.unique(of_class[of_class >= 0])) < 2 or is_class.all():
        return none, everywhere
    held_out = HeldOutRows.of(rows, fitted.held_out.seed, fitted.held_out.objective)
    inner = CrossFitting(views, held_out, fitted.n_jobs)
    inner.run(_members(fitted))
    combination = combine(inner.candidates, held_out)
    scores = -cross_fitted_log_rates(inner.candidates, held_out) / LN_10
    calibration = learn_calibration(is_class[held_out.tested], scores, held_out.tested_weight)
    if calibration is None:
        return none, everywhere
    members = combination.learned_members()
    ranking = ClassRanking(members, combination.scale, calibration, share)

    def held_out_scores(candidate: "Candidate") -> np.ndarray:
        """Return scores of all rows of the table, by the functions of the folds."""
        folds = fitted.views.folds(candidate.member.view, fitted.held_out.seed, fitted.n_jobs)
        return folds.scores_by_fold(candidate.by_fold, np.arange(len(folds.fold)))

    everywhere = ranking.probability(combination.rarity(held_out_scores))
    everywhere[rare[held_out.tested]] = calibration(scores)
    return ranking, everywhere


def _members(fitted: "CrossFitting") -> list[Any]:
    """Return the members that learn classes: quick ones of those that were learned."""
    learned = {each.member.name: each.member for each in fitted.candidates}
    quick = [learned[name] for name in _MEMBERS if name in learned]
    return quick or list(learned.values())
