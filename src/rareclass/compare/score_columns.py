"""Comparison of score columns of the same rows: values with intervals, and paired tests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass import metrics
from rareclass.errors import ErrorKind, counted, unknown_name
from rareclass.folds.score_scale import on_scale_of_folds
from rareclass.metrics import Interval
from rareclass.metrics.intervals import normal_quantile, p_value_of_intervals, stretch_for_training
from rareclass.metrics.paired_evidence import EVIDENCE, PairEvidence
from rareclass.metrics.scored_classes import label_column, score_column, split_pair, weight_column
from rareclass.parameters import check_number
from rareclass.table_block import TableBlock

_LEAST_P = 0.001
DEFAULT = ("roc_auc", "average_precision", "precision_at_k")
_VERDICTS = {
    "same order": "in the same order",
    "not significant": "not significantly worse",
    "worse": "significantly worse",
}
_WORDS = {
    "roc_auc": "AUC",
    "average_precision": "average precision",
    "precision_at_k": "precision at {k:,g}",
    "recall_at_k": "recall at {k:,g}",
    "lift_at_k": "lift at {k:,g}",
    "partial_auc": "AUC up to a false-positive rate of {max_fpr:g}",
}


@dataclass(frozen=True)
class BesideTheBest:
    """Difference of a ranking from the best one of the measure, on the same rows."""

    difference: float  # value - value of the best: never above 0
    low: float
    high: float
    p_value: float  # of this pair alone, two-sided
    p_adjusted: float  # corrected for the choice of the best among all rankings
    significant: bool  # p_adjusted is below 1 - level

    def bounds_text(self) -> str:
        """Format the bounds of the difference."""
        return f"{self.low:+.3f} to {self.high:+.3f}"

    def p_text(self) -> str:
        """Format the adjusted p-value."""
        return f"<{_LEAST_P}" if self.p_adjusted < _LEAST_P else f"{self.p_adjusted:.3f}"


@dataclass(frozen=True)
class Standing:
    """A ranking by one measure."""

    name: str
    value: float
    low: float  # of the value alone
    high: float
    beside_the_best: BesideTheBest | None  # None for the best

    @property
    def interval(self) -> Interval:
        """The value with its interval."""
        return Interval(self.value, self.low, self.high)

    @property
    def verdict(self) -> str:
        """Result of the test against the best, in a word or two."""
        if self.beside_the_best is None:
            return "best"
        if self.beside_the_best.low == self.beside_the_best.high:
            return "same order"
        return "worse" if self.beside_the_best.significant else "not significant"


@dataclass(frozen=True)
class Standings:
    """All rankings by one measure, the best first."""

    measure: str  # name for `paired_difference`
    options: dict[str, float]
    words: str  # such as "precision at 100"
    standings: tuple[Standing, ...]

    @property
    def title(self) -> str:
        """Name of the measure with a capital letter."""
        return self.words[0].upper() + self.words[1:]

    @property
    def best(self) -> Standing:
        """The ranking of the highest value."""
        return self.standings[0]

    @property
    def indistinguishable(self) -> list[str]:
        """Names of rankings whose difference from the best is not significant, or none at all."""
        return [each.name for each in self.standings if each.verdict not in ("best", "worse")]

    @property
    def worse(self) -> list[str]:
        """Names of rankings that are significantly worse than the best."""
        return [each.name for each in self.standings if each.verdict == "worse"]

    def of(self, name: str) -> Standing:
        """Return the ranking with this name; raises `KeyError` where there is none."""
        return {each.name: each for each in self.standings}[name]

    def block(self) -> TableBlock:
        """Return the table of the rankings, with tests where there are several."""
        columns = {
            "Ranking": [each.name for each in self.standings],
            "Value": [f"{each.value:.3f}" for each in self.standings],
            "95% interval": [each.interval.bounds_text() for each in self.standings],
        }
        if len(self.standings) > 1:
            tests = [each.beside_the_best for each in self.standings]
            columns |= {
                "Minus the best": ["" if each is None else each.bounds_text() for each in tests],
                "p": ["" if each is None else each.p_text() for each in tests],
                "Verdict": [each.verdict for each in self.standings],
            }
        return TableBlock.of(self.title, columns)

    def says(self, with_bounds: bool = False) -> str:
        """Name the best, the rankings that are indistinguishable from it, and the worse ones."""
        name, found = self.best.name, self.best.interval
        shown = found.text() if with_bounds else f"{found.value:.3f}"
        if len(self.standings) == 1:
            return f"{self.title}: {name} has {shown}."
        parts = [f"{self.title}: {name} is best ({shown})"]
        for verdict, words in _VERDICTS.items():
            names = [each.name for each in self.standings if each.verdict == verdict]
            parts += [f"{words}: {', '.join(names)}"] if names else []
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
        first_last = self.measures[::-1]  # of several at k the first one has the name
        return {key: each for each in first_last for key in (each.words, each.measure)}[measure]

    def to_dict(self) -> dict[str, Any]:
        """Return dictionaries, lists, words and numbers, for JSON."""
        return asdict(self)

    def about_verdicts(self) -> str:
        """Say which tests the verdicts are of."""
        return (
            f"{self.level:.0%} intervals. Verdicts: paired tests on the same rows at the "
            f"{1 - self.level:.0%} level, Holm-corrected over all pairs. A paired test can be "
            "significant where the intervals overlap."
        )

    def says(self, folds: str = "") -> list[str]:
        """Return a line on the rows, as `basis` has it, and a line a measure."""
        return [self.basis(folds), *(each.says() for each in self.measures)]

    def basis(self, folds: str = "") -> str:
        """Describe the rows, such as "200 rows, 20 of them rare, cross-validated on 5 folds".

        `folds` are words for the folds where there is more to say than their number.
        """
        parts = [f"{counted(self.n_rows, 'row')}, {self.n_rare:,.0f} of them rare"]
        if self.n_groups is not None:
            parts.append(f"in {counted(self.n_groups, 'group')}")
        if self.n_folds is not None:
            parts.append(f"cross-validated on {folds or counted(self.n_folds, 'fold')}")
        return ", ".join(parts)


class RankingMeasure(NamedTuple):
    """A measure with its options for `paired_difference`."""

    name: str
    options: Mapping[str, float]

    @property
    def words(self) -> str:
        """Name for readers, such as "precision at 100"."""
        return _WORDS[self.name].format(**self.options)


def chosen_measures(
    names: Sequence[str],
    k: float | Sequence[float | None] | None,
    max_fpr: float,
    n_rare: float,
    n_rows: float,
) -> list[RankingMeasure]:
    """Return measures by name; measures at k are repeated for each k, `n_rare` for None.

    Raises `InputError` for an unknown name, no name at all, or a k beyond the rows.
    """
    asked = [names] if isinstance(names, str) else list(names)
    if not asked:
        known = ", ".join(_WORDS)
        raise ErrorKind.SETTING.error("measures= names none.", f"There are: {known}.", value=names)
    given: list[Any] = list(k) if isinstance(k, Iterable) else [k]
    ks = [max(1.0, round(n_rare)) if each is None else each for each in given]
    for each in ks:
        allowed = f"above 0 and at most the {counted(n_rows, 'row')} that are judged"
        check_number("k", each, allowed, 0.0, n_rows * (1.0 + 1e-9), "(]", "Give a smaller k.")
    found: dict[str, RankingMeasure] = {}
    for name in asked:
        if name not in _WORDS:
            message = f"measures= names {name!r}, which is not a measure."
            raise unknown_name(message, name, _WORDS)
        options: list[dict[str, float]] = [{"max_fpr": max_fpr} if name == "partial_auc" else {}]
        if name.endswith("_at_k"):
            options = [{"k": float(each)} for each in ks]
        for option in options:
            measure = RankingMeasure(name, option)
            found.setdefault(measure.words, measure)
    return list(found.values())


def compare_scores(
    y: ArrayLike,
    scores: Mapping[str, ArrayLike],
    measures: Sequence[str] = DEFAULT,
    *,
    k: float | Sequence[float | None] | None = None,
    max_fpr: float = 0.1,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    folds: ArrayLike | None = None,
    n_train: float | None = None,
    level: float = 0.95,
) -> Comparison:
    """Compare score columns of the same rows: the best, and the significance of its lead.

    Each column has its values with intervals. The best one is compared with each other one by the
    paired test of `rareclass.metrics.paired_difference`, and the p-values are corrected for the
    choice of the best on these very rows (Holm's method over all pairs, in Shaffer's form). A
    ranking whose difference from the best is not significant may well be as good. P-values of one
    measure are not corrected for those of another.

    Parameters
    ----------
    y : array-like of shape (n,)
        True or 1 where the row is rare.
    scores : mapping of names to array-likes of shape (n,)
        From any source and on any scale: only their order counts. Higher means rarer.
    measures : sequence of str
        Of "roc_auc", "average_precision", "precision_at_k", "recall_at_k", "lift_at_k" and
        "partial_auc".
    k : float or sequence of float or None, optional
        Rows at the top of the list, for measures at k; None is as many as are rare.
    max_fpr : float, default 0.1
        Of the partial AUC.
    sample_weight : array-like of shape (n,), optional
        Copies that each row stands for; 0 leaves the row out.
    groups : array-like of shape (n,), optional
        Rows of equal group move together, such as those of one customer. Intervals and tests are
        then of groups.
    folds : array-like of shape (n,), optional
        For out-of-fold scores, the fold of each row. The model of each fold has its own scale, so
        scores are first mapped to the false-positive rates within their fold.
    n_train : float, optional
        With `folds`, the mean number of rows that their models learned from. Tests are then of the
        methods: they allow for the effect of other training rows. Without it, tests are of these
        very models, and call equal methods different too often (docs/decisions/0032). Intervals of
        the values are of the models in any case.
    level
        As in `paired_difference`.

    Returns
    -------
    Comparison
        Frozen plain data with ``to_dict()`` and ``says()``. Takes the time of a paired test for
        every measure and every column but one.

    Raises
    ------
    ValueError
        As `paired_difference`; `InputError`, which is one, where a column is all tied or `scores`
        is empty, naming the column.

    Examples
    --------
    >>> y = [0] * 12 + [1] * 4
    >>> good, bad = list(range(16)), [3, 1, 2] * 5 + [1]
    >>> found = compare_scores(y, {"bad": bad, "good": good}, ["roc_auc"])
    >>> print(*found.says(), sep="\\n")
    16 rows, 4 of them rare
    AUC: good is best (1.000); not significantly worse: bad.
    """
    normal_quantile(level)
    label = label_column(y)
    columns = {name: _column(name, column, len(label)) for name, column in scores.items()}
    if not columns:
        raise ErrorKind.SHAPE.error(
            "scores= holds no column of scores.", "Give a mapping of names to scores."
        )
    weight = weight_column(sample_weight, len(label))
    if folds is not None:
        columns = {
            name: on_scale_of_folds(label, column, folds, weight)
            for name, column in columns.items()
        }
    group = None if groups is None else np.asarray(groups)
    stretch = 1.0
    if n_train is not None:
        check_number("n_train", n_train)
        if folds is None:
            raise ErrorKind.COMBINATION.error(
                "n_train= needs folds=, which is not given.", "Give folds, or leave n_train out."
            )
        stretch = stretch_for_training(len(label), n_train)
    # Also refuses groups that are missing or too few, and a class without rows.
    first = next(iter(columns.values()))
    pair = split_pair(label, first, first, weight, group)
    n_rows = pair.rare.mass + pair.majority.mass
    chosen = chosen_measures(measures, k, max_fpr, pair.rare.mass, n_rows)
    given = columns, label, weight, group, level, stretch
    found = tuple(_standings(measure, *given) for measure in chosen)
    n_groups = None if groups is None else pair.n_groups
    n_folds = None if folds is None else len(np.unique(np.asarray(folds)))
    return Comparison(found, n_rows, pair.rare.mass, n_groups, n_folds, level)


def _column(name: str, column: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    values = score_column(column, f"scores[{name!r}]", n_rows)
    if values.size and (values == values[0]).all():
        raise ErrorKind.CELL.error(
            f"scores[{name!r}] are all {values[0]:g}: such scores rank nothing.",
            "Leave the column out, or look at how it was made.",
            column=name,
            value=float(values[0]),
        )
    return values


def _standings(
    measure: RankingMeasure,
    columns: Mapping[str, NDArray[np.float64]],
    y: NDArray[np.bool_],
    weight: NDArray[np.float64] | None,
    groups: NDArray[Any] | None,
    level: float,
    stretch: float,
) -> Standings:
    """Rank columns by one measure; intervals of differences are `stretch` times as wide."""

    def against_best(name: str) -> PairEvidence:
        pair = split_pair(y, columns[name], columns[best], weight, groups)
        return EVIDENCE[measure.name](pair, **measure.options)

    def difference(evidence: PairEvidence, level: float) -> Interval:
        value, low, high = evidence.interval(level)
        return Interval(value, value - stretch * (value - low), value + stretch * (high - value))

    alone = {
        name: metrics.interval(measure.name, y, column, weight, level, **measure.options)
        for name, column in columns.items()
    }
    # Among equals the one that was given first.
    best, *others = sorted(alone, key=lambda name: -alone[name].value)
    pairs = {name: against_best(name) for name in others}
    if groups is not None:
        itself = None if pairs else against_best(best)
        alone = {name: evidence.a(level) for name, evidence in pairs.items()}
        alone[best] = (itself or next(iter(pairs.values()))).b(level)
    p_values = [
        p_value_of_intervals(partial(difference, evidence), level) for evidence in pairs.values()
    ]
    standings = [Standing(best, *alone[best], beside_the_best=None)]
    adjusted = adjusted_for_the_choice(p_values)
    for (name, evidence), p, of_choice in zip(pairs.items(), p_values, adjusted, strict=True):
        beside = BesideTheBest(*difference(evidence, level), p, of_choice, of_choice < 1.0 - level)
        standings.append(Standing(name, *alone[name], beside_the_best=beside))
    return Standings(measure.name, dict(measure.options), measure.words, tuple(standings))


def adjusted_for_the_choice(p_values: Sequence[float]) -> list[float]:
    """Correct the p-values of m rankings against the best one for the choice of the best.

    The best was chosen on these rows, so that any pair of the m might have been the most different
    one. This is Holm's correction over all ``m (m - 1) / 2`` pairs in the sharper form of Shaffer
    (1986, "Modified sequentially rejective multiple test procedures", JASA 81): once r rankings
    differ from the best, a pair of the best and another can be equal together with at most
    ``max(C(m - r, 2) + C(r, 2), 1 + C(m - 2, 2))`` pairs, C(n, 2) the pairs of n; with all pairs
    for r = 0. The chance that any equally good pair is called different stays below the level at
    which the adjusted p-values are read.

    `p_values` has one for each ranking but the best; O(m log m) time.

    Examples
    --------
    >>> adjusted_for_the_choice([0.04])
    [0.04]
    >>> adjusted_for_the_choice([0.5, 0.01])
    [0.5, 0.03]
    """
    m, order = len(p_values) + 1, np.argsort(p_values, kind="stable")
    pairs = [max(comb(m - r, 2) + comb(r, 2), 1 + comb(m - 2, 2)) for r in range(1, m - 1)]
    equal = np.array([comb(m, 2), *pairs], float)[: m - 1]
    adjusted = np.empty(m - 1)
    adjusted[order] = np.maximum.accumulate(np.minimum(equal * np.array(p_values)[order], 1.0))
    return [float(each) for each in adjusted]
