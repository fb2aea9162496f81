r"""What two parts of the rows tell of the objective at another point, without a pass of all rows.

The sums over all rows are known at w; at v near w they are those plus their change, and a part
of the rows W tells the change:

.. math:: \nabla F(v) \approx \nabla F(w) + \nabla F_W(v) - \nabla F_W(w) .

The error is :math:`(\nabla^2 F - \nabla^2 F_W)(v - w)`: small beside the error of
:math:`\nabla F_W` alone, as v is near w. Two parts of the same size tell how large it is. With
their changes :math:`c_1` and :math:`c_2`, the estimate takes their mean, whose standard error is
:math:`\|c_1 - c_2\| / 2`.
"""

from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from rareclass.ranking.problem import Evaluation, RankingProblem
from rareclass.ranking.solvers.questions import Solver

# From this stride on two witnesses cost little of the pass that they may save.
_LEAST_STRIDE = 10


class Foreseen(NamedTuple):
    """An estimated evaluation, the standard error of its gradient, and what the witnesses saw."""

    at: Evaluation
    error: float
    here: list[Evaluation]  # of each witness at the point that is known
    passes: float


class Witnesses(NamedTuple):
    """The same problem on two parts of the rows; `share` of all rows are in both together."""

    problems: tuple[RankingProblem, RankingProblem]
    share: float

    @classmethod
    def of(cls, problem: RankingProblem, stride: int) -> Self | None:
        """Witnesses half-way between the blocks of the part that takes every `stride`-th one.

        None where they would cost much of a pass, or one would have no rows that count.
        """
        if stride < _LEAST_STRIDE:
            return None
        first = stride // 2
        one, other = (
            replace(problem.on_part(2 * stride, k, keeps_arrays=False), slot=None)
            for k in (first, first + stride)
        )
        if not (one.factor > 0.0 and other.factor > 0.0):
            return None
        return cls((one, other), (one.rows.n_rows + other.rows.n_rows) / problem.rows.n_rows)

    def with_lam(self, lam: float) -> Self:
        """The same with another regularisation."""
        one, other = self.problems
        return self._replace(problems=(one.with_lam(lam), other.with_lam(lam)))

    def foresee(
        self, at: Evaluation, w: np.ndarray, here: list[Evaluation] | None = None
    ) -> Solver[Foreseen]:
        """The evaluation at w, from that at a point near; `here` is what was seen there before."""
        asked = [problem.value_at(w) for problem in self.problems]
        if here is None:
            asked += [problem.value_at(at.w) for problem in self.problems]
        answers = yield tuple(asked)
        there, here = answers[:2], here or answers[2:]
        changes = [b.gradient - a.gradient for a, b in zip(here, there, strict=True)]
        value = sum(b.value - a.value for a, b in zip(here, there, strict=True)) / 2
        foreseen = there[0]._replace(
            value=at.value + value, gradient=at.gradient + (changes[0] + changes[1]) / 2
        )
        error = float(np.linalg.norm(changes[0] - changes[1])) / 2
        return Foreseen(foreseen, error, here, self.share * len(asked) / 2)
