"""What a comparison of rankings found, as plain data and in words."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rareclass.errors import counted


@dataclass(frozen=True)
class BesideTheBest:
    """A ranking less the best one of the measure, on the same rows."""

    difference: float  # value - value of the best: never above 0
    low: float
    high: float
    p_value: float  # of this pair alone, two-sided
    p_adjusted: float  # as one of all pairs that might have been the furthest apart
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

    measure: str  # as `paired_difference` calls it
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
        return [each.name for each in self._others() if not each.beside_the_best.significant]  # type: ignore[union-attr]

    @property
    def worse(self) -> list[str]:
        """Names of rankings that are significantly worse than the best."""
        return [each.name for each in self._others() if each.beside_the_best.significant]  # type: ignore[union-attr]

    def of(self, name: str) -> Standing:
        """The ranking of that name; `KeyError` where there is none."""
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

    def _others(self) -> Sequence[Standing]:
        return self.standings[1:]


@dataclass(frozen=True)
class Comparison:
    """Rankings of the same rows by several measures.

    Attributes
    ----------
    measures : tuple of Standings
    n_rows, n_rare : float
        Rows that were judged; with weights, copies.
    n_groups : int or None
        Groups of rows that move together, where there are some.
    n_folds : int or None
        Folds whose models made the scores, where that was so.
    level : float
        Of intervals and tests.
    """

    measures: tuple[Standings, ...]
    n_rows: float
    n_rare: float
    n_groups: int | None
    n_folds: int | None
    level: float

    def by(self, measure: str) -> Standings:
        """Standings by a measure: its name or its words; `KeyError` where it was not measured."""
        for each in self.measures:
            if measure in (each.measure, each.words):
                return each
        raise KeyError(measure)

    def to_dict(self) -> dict[str, Any]:
        """Dictionaries, lists, words and numbers, for JSON."""
        return asdict(self)

    def says(self) -> list[str]:
        """What was judged, and a line a measure."""
        return [self.basis(), *(each.says() for each in self.measures)]

    def basis(self, folds: str = "") -> str:
        """Which rows all this rests on; `folds` are words for them where there is more to say.

        Such as "200 rows, 20 of them rare, by the models of 5 folds".
        """
        parts = [f"{counted(self.n_rows, 'row')}, {self.n_rare:,.0f} of them rare"]
        if self.n_groups is not None:
            parts.append(f"in {counted(self.n_groups, 'group')} that move together")
        if self.n_folds is not None:
            parts.append(f"by the models of {folds or counted(self.n_folds, 'fold')}")
        return ", ".join(parts)
