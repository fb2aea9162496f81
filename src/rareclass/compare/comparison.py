"""Results of comparisons, as frozen plain data and in words."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.errors import counted


@dataclass(frozen=True)
class BesideTheBest:
    """Difference of a ranking from the best one of the measure, on the same rows."""

    difference: float  # value - value of the best: never above 0
    low: float
    high: float
    p_value: float  # of this pair alone, two-sided
    p_adjusted: float  # corrected for the choice of the best among all rankings
    significant: bool  # p_adjusted is below 1 - level


@dataclass(frozen=True)
class Standing:
    """A ranking by one measure."""

    name: str
    value: float
    low: float  # of the value alone
    high: float
    beside_the_best: BesideTheBest | None  # None for the best

    @property
    def verdict(self) -> str:
        """Result of the test against the best, in a word or two."""
        if self.beside_the_best is None:
            return "best"
        return "worse" if self.beside_the_best.significant else "not significant"


@dataclass(frozen=True)
class Standings:
    """All rankings by one measure, the best first."""

    measure: str  # name for `paired_difference`
    options: dict[str, float]
    words: str  # such as "precision at 100"
    standings: tuple[Standing, ...]

    @property
    def best(self) -> Standing:
        """The ranking of the highest value."""
        return self.standings[0]

    @property
    def indistinguishable(self) -> list[str]:
        """Names of rankings whose difference from the best is not significant."""
        return [each.name for each in self.standings if each.verdict == "not significant"]

    @property
    def worse(self) -> list[str]:
        """Names of rankings that are significantly worse than the best."""
        return [each.name for each in self.standings if each.verdict == "worse"]

    def of(self, name: str) -> Standing:
        """Return the ranking with this name; raises `KeyError` where there is none."""
        for each in self.standings:
            if each.name == name:
                return each
        raise KeyError(name)

    def says(self) -> str:
        """Name the best, the rankings that are indistinguishable from it, and the worse ones."""
        best = self.best
        if len(self.standings) == 1:
            return f"{self.words}: {best.name} has {best.value:.3f}."
        parts = [f"{self.words}: {best.name} has the highest, {best.value:.3f}"]
        if self.indistinguishable:
            parts.append(f"statistically indistinguishable: {', '.join(self.indistinguishable)}")
        if self.worse:
            parts.append(f"significantly worse: {', '.join(self.worse)}")
        return "; ".join(parts) + "."


@dataclass(frozen=True)
class Comparison:
    """Rankings of the same rows by several measures.

    Attributes
    ----------
    measures : tuple of Standings
    n_rows, n_rare : float
        Rows compared; with weights, copies.
    n_groups : int or None
        Groups of rows that move together; None without groups.
    n_folds : int or None
        Folds whose models made the scores; None without folds.
    level : float
        Confidence level of intervals and tests.
    """

    measures: tuple[Standings, ...]
    n_rows: float
    n_rare: float
    n_groups: int | None
    n_folds: int | None
    level: float

    def by(self, measure: str) -> Standings:
        """Return standings by a measure's name or words; `KeyError` where it was not measured."""
        for each in self.measures:
            if measure in (each.measure, each.words):
                return each
        raise KeyError(measure)

    def to_dict(self) -> dict[str, Any]:
        """Return dictionaries, lists, words and numbers, for JSON."""
        return asdict(self)

    def says(self) -> list[str]:
        """Return a line on the rows, and a line a measure."""
        return [self.basis(), *(each.says() for each in self.measures)]

    def basis(self, folds: str = "") -> str:
        """Describe the rows, such as "200 rows, 20 of them rare, by the models of 5 folds".

        `folds` are words for the folds where there is more to say than their number.
        """
        parts = [f"{counted(self.n_rows, 'row')}, {self.n_rare:,.0f} of them rare"]
        if self.n_groups is not None:
            parts.append(f"in {counted(self.n_groups, 'group')} that move together")
        if self.n_folds is not None:
            parts.append(f"by the models of {folds or counted(self.n_folds, 'fold')}")
        return ", ".join(parts)


@dataclass(frozen=True)
class MethodRun:
    """Outcome of a method on all folds."""

    name: str
    status: str  # "ok", "failed", "not tried", "stopped" at its time, "interrupted" by Ctrl-C
    message: str  # reason where the status is not "ok"
    seconds: float  # of all folds that were done, learning and scoring
    n_folds: int  # done
    memory: int | None  # most bytes beyond the rows; None where it was not measured
    warnings: tuple[str, ...] = ()

    @property
    def is_judged(self) -> bool:
        """True where the method has scores of all test rows."""
        return self.status == "ok"

    def why_not(self) -> str:
        """Say in a line why the method has no scores."""
        failed = "failed, " if self.status == "failed" else ""
        return f"{self.name}: {failed}{self.message.rstrip('.')}."


@dataclass(frozen=True)
class MethodComparison:
    """Methods on the same folds.

    Attributes
    ----------
    runs : tuple of MethodRun
        One for every method, in the order given.
    comparison : Comparison or None
        Of the methods with scores; None where there is none.
    folds : str
        In words, such as "5 folds by group".
    n_unfinished : int
        Methods that failed, were stopped or interrupted.
    scores : dict of name to ndarray
        Out-of-fold scores, on the scale of each fold's model.
    rows, fold : ndarray
        Row of each score, and the fold that tested it.
    """

    runs: tuple[MethodRun, ...]
    comparison: Comparison | None
    folds: str
    scores: dict[str, NDArray[np.float64]] = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)
    fold: NDArray[np.intp] = field(repr=False)

    @property
    def n_unfinished(self) -> int:
        """Number of methods without scores."""
        return sum(not run.is_judged for run in self.runs)

    def basis(self) -> str:
        """Describe the rows, and how they were held out."""
        return "" if self.comparison is None else self.comparison.basis(self.folds)

    def to_dict(self) -> dict[str, Any]:
        """Return dictionaries, lists, words and numbers, for JSON; without the scores."""
        return {
            "folds": self.folds,
            "methods": [asdict(run) for run in self.runs],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }

    def says(self) -> list[str]:
        """Return a line on the rows, a line a measure, and a line a method without scores."""
        lines = []
        if self.comparison is not None:
            lines = [self.basis(), *(each.says() for each in self.comparison.measures)]
        return lines + [run.why_not() for run in self.runs if not run.is_judged]
