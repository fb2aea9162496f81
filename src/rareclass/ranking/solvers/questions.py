"""Questions to the majority rows, many of them answered in one pass.

A solver does not read rows: it yields a question (value and gradient at a point, a Hessian times
a direction) and is sent the answer. Solvers for other lams and folds share rows and kernel; run
in step, their questions are answered together, so that a kernel block is worked out, or fetched
from memory, once for all of them.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import islice
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from rareclass.kernels.expansion import KernelExpansion, expand, pull_back
from rareclass.rows import Block, Rows

Result = TypeVar("Result")


class Question(Protocol):
    """Something that sums over majority rows answer."""

    # shape (n_landmarks,): of the function whose values the question is about
    coefficients: np.ndarray
    n_sums: ClassVar[int]  # how many sums `of_block` returns

    @property
    def rows(self) -> Rows:
        """The majority rows asked."""
        ...

    @property
    def expansion(self) -> KernelExpansion:
        """The kernel between them and the landmarks."""
        ...

    def of_block(self, block: Block, K: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, tuple]:
        """What a block contributes, from its kernel and the function's values at its rows.

        A number for each row, which is pulled back to the landmarks, and things that add up.
        """
        ...

    def finish(self, pull: np.ndarray, *sums: Any) -> Any:
        """The answer: from what all rows ask of each landmark, and the sums over all blocks."""
        ...


Solver = Generator[Question | tuple[Question, ...], Any, Result]
"""Yields a question, or several, is sent the answer, or a list of them; returns its result."""


def answer(questions: Sequence[Question]) -> list[Any]:
    """The answers to questions; those about the same rows and kernel share a pass."""
    alike: dict[tuple[int, int], list[int]] = {}
    for place, question in enumerate(questions):
        alike.setdefault((id(question.rows), id(question.expansion)), []).append(place)
    answers: dict[int, Any] = {}
    for places in alike.values():
        asked = [questions[place] for place in places]
        rows, expansion = asked[0].rows, asked[0].expansion
        coefficients = np.column_stack([question.coefficients for question in asked])
        pulls, *rest = rows.sum(_ask_block, expansion, coefficients, asked)
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
            running[slot] = _Running(number, solver, solver.send(reply))
        except StopIteration as stop:
            running.pop(slot, None)
            results[number] = stop.value

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
            heard = list(islice(replies, len(run.questions)))
            go_on(slot, run.number, run.solver, heard if run.asked_several else heard[0])


class _Running(NamedTuple, Generic[Result]):
    """A solver that waits for answers."""

    number: int
    solver: Solver[Result]
    asked: Question | tuple[Question, ...]

    @property
    def asked_several(self) -> bool:
        return isinstance(self.asked, tuple)

    @property
    def n_rows(self) -> int:
        """Rows of the longest pass that the answers take."""
        return max(question.rows.n_rows for question in self.questions)

    @property
    def questions(self) -> tuple[Question, ...]:
        return self.asked if isinstance(self.asked, tuple) else (self.asked,)
