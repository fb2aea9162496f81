r"""The ranking objective in whitened landmark coordinates, one pass of the majority a question.

With landmarks z_r, f(x) = sum_r beta_r k(z_r, x) and beta = T w (see `whiten`), problem (13)
of the paper is

.. math::

    F(w) = \frac{1}{W_+ W_-} \sum_{i \in P} \sum_{j \in N} w_i w_j \,
           \ell\bigl(f(x_i) - f(x_j)\bigr) + \frac{\lambda}{2} \|w\|^2 + \tau' w .

Its value and gradient together, and each Hessian-vector product, are a question to the majority
rows: scores, pair terms and pull-back to the landmarks are worked out while a
block is in cache, and one pass answers the questions of many problems. The tilt tau is zero but
where a part of the rows stands in for all of them.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from rareclass.kernels.expansion import VALUES, KernelExpansion, expand, pull_back
from rareclass.rows import ArrayRows, Block, Budget, Rows, RowValues, Token, as_source

Result = TypeVar("Result")


class Question(Protocol):
    """Something that sums over majority rows answer."""

    # shape (n_landmarks,): of the function whose values the question is about
    coefficients: np.ndarray
    n_sums: ClassVar[int]  # how many sums `of_block` returns

    @property
    def problem(self) -> "RankingProblem":
        """The problem that the question is about, with its majority rows and kernel."""

    def of_block(self, block: Block, K: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, tuple]:
        """Contribution of a block, from its kernel and the function's values at its rows.

        A number for each row, which is pulled back to the landmarks, and things that add up.
        """

    def finish(self, pull: np.ndarray, *sums: Any) -> Any:
        """The answer: from what all rows ask of each landmark, and the sums over all blocks."""


Solver = Generator[Question | tuple[Question, ...], Any, Result]
"""Yields a question, or several, is sent the answer, or a list of them; returns its result."""


def answer(questions: Sequence[Question]) -> list[Any]:
    """The answers to questions; those about the same rows and kernel share a pass."""
    alike: dict[tuple[int, int], list[int]] = {}
    for place, question in enumerate(questions):
        about = question.problem
        alike.setdefault((id(about.rows), id(about.expansion)), []).append(place)
    answers: dict[int, Any] = {}
    for places in alike.values():
        asked = [questions[place] for place in places]
        problem = asked[0].problem
        coefficients = np.column_stack([question.coefficients for question in asked])
        pulls, *rest = problem.rows.sum(_ask_block, problem.expansion, coefficients, asked)
        sums = iter(rest)
        for place, question, pull in zip(places, asked, pulls.T, strict=True):
            answers[place] = question.finish(pull, *islice(sums, question.n_sums))
    return [answers[place] for place in range(len(questions))]


def _ask_block(
    block: Block,
    expansion: KernelExpansion,
    coefficients: np.ndarray,
    questions: Sequence[Question],
) -> tuple:
    K = expansion.matrix(block)
    values = expand(K, coefficients)
    by_row: list[Any] = []
    sums: list[Any] = []
    for k, question in enumerate(questions):
        of_question, more = question.of_block(block, K, values[:, k])
        by_row.append(of_question)
        sums += more
    return pull_back(K, np.stack(by_row).T), *sums


def solve(solver: Solver[Result]) -> Result:
    """Run one solver, each of its questions in a pass of its own."""
    return solve_in_step([lambda _: solver], 1)[0]


def solve_in_step(starts: Iterable[Callable[[int], Solver[Result]]], at_once: int) -> list[Result]:
    """Run many solvers, the questions of all that are running in one pass.

    Each of `starts` makes a solver, when there is room for it, from the number of its slot: slots
    are 0 to `at_once` - 1, and solvers that run at the same time have different ones. Results come
    in the order of `starts`.
    """
    waiting = enumerate(starts)
    results: dict[int, Result] = {}
    running: dict[int, _Running[Result]] = {}

    def go_on(slot: int, number: int, solver: Solver[Result], reply: Any) -> None:
        try:
            asked = solver.send(reply)
        except StopIteration as stop:
            running.pop(slot, None)
            results[number] = stop.value
            return
        several = isinstance(asked, tuple)
        questions = asked if isinstance(asked, tuple) else (asked,)
        n_rows = max(question.problem.rows.n_rows for question in questions)
        running[slot] = _Running(number, solver, questions, several, n_rows)

    while True:
        for slot in range(at_once):
            while slot not in running and (entry := next(waiting, None)) is not None:
                go_on(slot, entry[0], entry[1](slot), None)
        if not running:
            return [results[number] for number in sorted(results)]
        # A pass of more rows waits until nobody asks about fewer, and then serves all who want it.
        fewest = min(run.n_rows for run in running.values())
        in_order = sorted(item for item in running.items() if item[1].n_rows == fewest)
        replies = iter(answer([q for _, run in in_order for q in run.questions]))
        # In the order of slots: among solvers that started together, the first hears first.
        for slot, run in in_order:
            received = list(islice(replies, len(run.questions)))
            go_on(slot, run.number, run.solver, received if run.several else received[0])


class _Running(NamedTuple, Generic[Result]):
    """A solver that waits for answers."""

    number: int
    solver: Solver[Result]
    questions: tuple[Question, ...]
    several: bool  # whether the solver is sent a list of answers
    n_rows: int  # of the longest pass that the answers take


class Evaluation(NamedTuple):
    """Value and gradient of the objective at one point, and what they were worked out from."""

    w: np.ndarray
    value: float
    gradient: np.ndarray
    coefficients: np.ndarray
    rare: Any  # the rare side, as the loss made it
    token: Token  # names this point to the blocks, which may remember their zones at it

    def regularised(self, more: float) -> "Evaluation":
        """The evaluation where lam is higher by `more`; takes no pass."""
        w = self.w
        return self._replace(
            value=self.value + 0.5 * more * float(w @ w), gradient=self.gradient + more * w
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class RankingProblem:
    """Problem (13), or (11) with other landmarks; or that of a loss of labellings."""

    rows: Rows  # the majority rows, with their weights
    expansion: KernelExpansion
    loss: Any  # a `PairLoss`; a `LabellingLoss` for `solvers.cutting_planes`
    # kernel of the rare rows against the landmarks: shape (m+, n_landmarks)
    rare_kernel: np.ndarray
    rare_weight: np.ndarray  # zero takes a row out
    # T, shape (n_landmarks, rank): its rows are zero at landmarks that are not to be used
    whitener: np.ndarray
    lam: float
    scale: float  # 1 / (W+ W-), the total weight of all pairs
    majority_total: float  # W-: the weight of the majority rows that are not held out
    # mask over the whole majority, None for all; the others are held out
    kept: RowValues | None = None
    # What the weights of the majority rows are multiplied by: above 1 where a part of the rows
    # stands for all of them.
    factor: float = 1.0
    tilt: np.ndarray | None = None  # tau; None means zero
    # Blocks remember zones under it: problems that are solved at once need different ones. None
    # remembers none: for problems that are asked for values only.
    slot: int | None = 0
    # Whether blocks remember the values at the last point, for when it turns out to be the
    # solution.
    keeps_values: bool = False

    @property
    def rank(self) -> int:
        """Number of coordinates of a row, which is that of the unknowns."""
        return self.whitener.shape[1]

    @property
    def majority_weight(self) -> np.ndarray:
        """Weight of each of `rows`, zero where it is held out."""
        weight = self.rows.weight * self.factor
        return weight if self.kept is None else weight * self.kept.whole[self.rows.numbers]

    def __getstate__(self) -> dict[str, Any]:
        # What blocks elsewhere need; the rest is large, and stays where the sums are finished.
        here = dict.fromkeys(("rows", "rare_kernel", "rare_weight", "whitener", "tilt"))
        return self.__dict__ | here

    def block_weight(self, block: Block) -> np.ndarray:
        """`majority_weight` of the rows of a block."""
        weight = block.weight if self.factor == 1.0 else block.weight * self.factor
        if self.kept is None:
            return weight
        return np.where(self.kept.of(block), weight, 0.0)

    def on_part(self, stride: int, first: int = 0, keeps_arrays: bool = True) -> "RankingProblem":
        """The same problem with some blocks of the majority rows, as of `Rows.every`, for all."""
        rows = self.rows.every(stride, first, keeps_arrays)
        part = replace(self, rows=rows, keeps_values=False)
        weight = float(part.majority_weight.sum())
        if not weight:
            return replace(part, factor=0.0, majority_total=0.0)
        return replace(part, factor=self.factor * self.majority_total / weight)

    def in_memory(
        self, chosen: np.ndarray, weight: np.ndarray, block_rows: int, keeps_arrays: bool = True
    ) -> "RankingProblem":
        """The same problem on copies of some rows; what its blocks remember has no limit."""
        rows = ArrayRows(
            as_source(self.rows.take(chosen)),
            weight=weight,
            block_rows=block_rows,
            budget=Budget(2**62),
            n_jobs=self.rows.n_threads,
            keeps_arrays=keeps_arrays,
            blocks_a_thread=1,
        )
        return replace(self, rows=rows)

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Value and gradient at `w`, in a pass of its own."""
        return answer([ValueQuestion(self, w)])[0]

    def curved_rows(self, at: Evaluation) -> np.ndarray:
        """Mask of the majority rows with a pair that has curvature at a point: shape (n_rows,)."""
        return self.rows.map(_is_curved, self, at)

    def zone(self, block: Block, at: Evaluation, K: np.ndarray | None = None) -> Any:
        """The zones of a block at a point: remembered from its evaluation, or found again.

        `K` is its kernel, where that is at hand.
        """
        zone = block.memo.get(("zone", self.slot), at.token)
        if zone is None:
            K = self.expansion.matrix(block) if K is None else K
            scores = expand(K, at.coefficients)
            zone = self.loss.block(at.rare, scores, self.block_weight(block)).zone
        return zone


class AboutProblem:
    """Question about the function with unknowns w."""

    n_sums: ClassVar[int]

    def __init__(self, problem: RankingProblem, w: np.ndarray) -> None:
        self.problem, self.w = problem, w
        self.coefficients = problem.whitener @ w
        self.rare_values = expand(problem.rare_kernel, self.coefficients)


class ValueQuestion(AboutProblem):
    """Value and gradient of a problem at w; the answer is an `Evaluation`."""

    n_sums = 2

    def __init__(self, problem: RankingProblem, w: np.ndarray) -> None:
        super().__init__(problem, w)
        self.rare = problem.loss.rare(self.rare_values, problem.rare_weight)
        self.token = Token.new()

    def of_block(self, block: Block, K: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, tuple]:
        """Slope by row; value of the pairs and rare-side sums."""
        p = self.problem
        terms = p.loss.block(self.rare, values, p.block_weight(block))
        zone = terms.zone
        if p.slot is not None:
            block.memo.put(("zone", p.slot), self.token, zone, sum(array.nbytes for array in zone))
        if p.keeps_values:
            # A copy: they are a column of all that the pass works out.
            block.memo.put(VALUES, self.token, values.copy(), values.nbytes)
        return terms.gradient, (terms.value, terms.sums)

    def finish(self, pull: np.ndarray, value: float, sums: np.ndarray) -> Evaluation:
        """Add the rare side and the terms without rows."""
        p, w = self.problem, self.w
        of_rare = p.loss.finish(self.rare, sums)
        value = p.scale * (value + of_rare.value) + 0.5 * p.lam * (w @ w)
        gradient = p.scale * _by_unknown(p, pull, of_rare.gradient) + p.lam * w
        if p.tilt is not None:
            value, gradient = value + p.tilt @ w, gradient + p.tilt
        return Evaluation(w, float(value), gradient, self.coefficients, self.rare, self.token)


class ProductQuestion(AboutProblem):
    """Hessian of a problem at a point times v; the answer is an ndarray of shape (rank,)."""

    n_sums = 1

    def __init__(self, problem: RankingProblem, at: Evaluation, v: np.ndarray) -> None:
        super().__init__(problem, v)
        self.at = at
        self.prefix = problem.loss.rare_direction(at.rare, self.rare_values)

    def of_block(self, block: Block, K: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, tuple]:
        """Change of the slope by row; rare-side sums."""
        p = self.problem
        zone, weight = p.zone(block, self.at, K), p.block_weight(block)
        by_row, sums = p.loss.curvature(self.at.rare, self.prefix, zone, values, weight)
        return by_row, (sums,)

    def finish(self, pull: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Add the rare side and the regulariser."""
        p = self.problem
        of_rare = p.loss.finish_curvature(self.at.rare, self.prefix, self.rare_values, sums)
        return p.scale * _by_unknown(p, pull, of_rare) + p.lam * self.w


def _by_unknown(p: RankingProblem, pull: np.ndarray, of_rare: np.ndarray) -> np.ndarray:
    """Derivative by unknown, from the pull on each landmark and the derivative by rare score."""
    return (pull + pull_back(p.rare_kernel, of_rare)) @ p.whitener


def _is_curved(block: Block, problem: RankingProblem, at: Evaluation) -> np.ndarray:
    return problem.loss.curved(problem.zone(block, at))
