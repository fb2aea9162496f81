"""Facts about a fitted model: its target, columns, training and choices, typed, and as JSON.

Beside them stand rows of the training that a model keeps: those held out, and rare cases.

A model file, ``--json`` and ``rareclass show`` hold the same flat JSON object. `facts_as_json` and
`facts_from_json` are the only places that know its keys; everybody else reads attributes.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from rareclass.decide.chosen_threshold import ChosenThreshold
from rareclass.errors import counted, first_names
from rareclass.metrics.held_out_cuts import HeldOutCuts, Test
from rareclass.metrics.intervals import Interval, WeightedRate, measures_block, widened
from rareclass.model.targets import TargetFacts
from rareclass.stored import finite_vector, plain_data, read_fields, required, typed_value
from rareclass.table_block import TableBlock
from rareclass.tables.columns import Column

# Classes that a line, or a table on the screen, names one by one.
MOST_CLASSES = 12
TableFormat = Literal["table", "svmlight", "stream"]


@dataclass(frozen=True)
class ClassEstimate:
    """Measures of the probability of one rare class against all other rows, with 95 % intervals."""

    name: str
    n_rows: float  # of the class, copies included
    auc: Interval
    average_precision: Interval


@dataclass(frozen=True)
class RankingEstimate:
    """Measures of a ranking on some rows, with 95 % intervals, by their names."""

    measures: dict[str, Interval]
    n_rows: float  # copies included
    n_rare: float | None = None  # where there is a rare class
    classes: tuple[ClassEstimate, ...] = ()  # of several rare classes

    def blocks(self) -> list[TableBlock]:
        """Return the table of the measures, and that of the classes where there are several."""
        measures = ((*each, 3) for each in self.measures.items())
        blocks = [measures_block("Measure", measures)]
        if self.classes:
            columns = {
                "Rare class": [each.name for each in self.classes],
                "Rows": [f"{each.n_rows:,.0f}" for each in self.classes],
                "AUC": [f"{each.auc.value:.3f}" for each in self.classes],
                "Average precision": [each.average_precision.text() for each in self.classes],
            }
            blocks.append(TableBlock.of("", columns))
        return blocks

    def widened(self, factor: float) -> Self:
        """Return the estimate with every interval so many times as wide (`metrics.widened`)."""
        classes = tuple(
            replace(
                each,
                auc=widened(each.auc, factor),
                average_precision=widened(each.average_precision, factor),
            )
            for each in self.classes
        )
        measures = {name: widened(each, factor) for name, each in self.measures.items()}
        return replace(self, measures=measures, classes=classes)

    def rows_text(self) -> str:
        """Return the rows in words, such as 1,200 rows, 24 of them rare."""
        of_them = "" if self.n_rare is None else f", {self.n_rare:,.0f} of them rare"
        return counted(self.n_rows, "row") + of_them

    def as_plain_data(self) -> dict[str, Any]:
        """Return the estimate as dictionaries and numbers."""
        rare = {} if self.n_rare is None else {"n_rare": round(self.n_rare)}
        plain = {"n_rows": round(self.n_rows), **rare, "measures": plain_data(self.measures)}
        classes = [plain_data(each) | {"n_rows": round(each.n_rows)} for each in self.classes]
        return plain | ({"classes": classes} if classes else {})


class RareClassScores(NamedTuple):
    """The rare class of rows, of several, and the probability of each by other functions."""

    which: NDArray[np.int16]  # position of the class, -1 for other rows
    probability: NDArray[np.float64]  # (n_rows, n_classes)

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return some of the rows."""
        return self._replace(which=self.which[rows], probability=self.probability[rows])


class ScoredRows(NamedTuple):
    """Rows with scores by functions that did not learn from them."""

    y: NDArray[np.int16]  # codes, -1 where there is none
    scores: NDArray[np.float64]
    weight: NDArray[np.float64] | None = None  # how many rows each stands for
    places: NDArray[np.int64] | None = None  # where they stand in the table
    classes: RareClassScores | None = None  # where several classes are rare
    group: NDArray[Any] | None = None  # rows of one, such as a customer, move together

    def take(self, rows: NDArray[np.int64]) -> "ScoredRows":
        """Return some of the rows."""
        classes = None if self.classes is None else self.classes.take(rows)
        taken = [None if each is None else each[rows] for each in (*self[:4], self.group)]
        return ScoredRows._make([*taken[:4], classes, taken[4]])

    def cuts(self, time: NDArray[Any] | None = None) -> HeldOutCuts:
        """Return the rows from the highest score down, those of a group counted together."""
        rows = self.y == 1, self.scores, self.weight, time
        return HeldOutCuts.read(*rows, groups=self.group, to_count=True)

    def rate_above(self, threshold: float) -> WeightedRate:
        """Count the rows above a threshold; those of a group, and of a weight, count together."""
        rate = WeightedRate.of(self.scores, threshold, self.y == 1, self.weight)
        if self.group is None:
            return rate
        unit = self.cuts().row_unit
        return rate._replace(rare_unit=unit, majority_unit=unit)

    def tests_at(self, threshold: float) -> tuple[Test, Test, Test]:
        """Return hits and trials of precision, recall and false-positive rate above a threshold."""
        if self.group is not None:
            return self.cuts().tests_at(threshold)
        above = WeightedRate.of(self.scores, threshold, self.y == 1, self.weight)
        called = (above.rare, above.rare + above.majority)
        return called, (above.rare, above.n_rare), (above.majority, above.n_majority)

    def check(self) -> None:
        """Raise `ValueError` where a column is of other rows, or holds other than numbers."""
        n = len(finite_vector(self.y, "y"))
        finite_vector(self.scores, "scores", n)
        if self.weight is not None and (finite_vector(self.weight, "weight", n) < 0).any():
            raise ValueError("a weight is below 0")
        if self.group is not None and np.shape(self.group) != (n,):
            raise ValueError("held-out rows have not one group each")

    def labelled(self) -> "ScoredRows":
        """Return the rows that have a code, not -1, with their places among these."""
        kept = np.flatnonzero(self.y >= 0)
        return self.take(kept)._replace(places=kept)


class DatedRows(NamedTuple):
    """Rows whose alerts are counted, and their times where these are known."""

    rows: ScoredRows
    time: NDArray[Any] | None = None
    n_undated: int = 0  # rows that were left out, as they have no time
    alike: float = 1.0  # rows that count as one, where groups are not known: as in training

    def cuts(self) -> HeldOutCuts:
        """Return the rows from the highest score down, with their times."""
        cuts = self.rows.cuts(self.time)
        if self.alike == 1.0:
            return cuts
        return cuts._replace(alike=self.alike, row_trials=cuts.row_trials / self.alike)

    def rate_above(self, threshold: float) -> WeightedRate:
        """Count the rows above a threshold; those of a group, and those alike, count together."""
        return self.rows.rate_above(threshold).of_rows_alike(self.alike)


@dataclass(frozen=True)
class RareCases:
    """Rare training rows by their numbers in the training file, to compare alerts with.

    Attributes
    ----------
    number : ndarray of int of shape (n_cases,)
        From 1 on. Without `features` there is one for each landmark of the model, and 0 where that
        is no rare row.
    features : dict of ndarray, each of n_cases rows, or None
        What they are compared by, see `rareclass.explain.near_cases.case_features`. None where
        the landmarks of a kernel machine are the cases.
    names : tuple of str or None
        Cells of the column that ``rareclass fit --id`` names; None without one.
    """

    number: NDArray[np.int64]
    features: dict[str, np.ndarray] | None = None
    names: tuple[str, ...] | None = None

    @property
    def n_rare(self) -> int:
        """The number of rare rows."""
        return int((self.number > 0).sum())

    def check(self) -> None:
        """Raise `ValueError` where numbers and features do not belong together."""
        number, features = np.asarray(self.number), self.features
        lengths = {len(number)} if features is None else {*map(len, features.values()), len(number)}
        if number.dtype.kind not in "iu" or number.ndim != 1 or len(lengths) != 1:
            raise ValueError("a number for each case, and features of as many")
        names = ("",) * len(number) if self.names is None else self.names
        if len(names) != len(number) or not all(isinstance(name, str) for name in names):
            raise ValueError("a name for each case")


@dataclass(frozen=True)
class GroupedColumn:
    """A column as rows of other groups see it: rows of a group are alike, and have words alone."""

    alike: float  # rows that count as one in the bins of `rareclass.model.columns`
    alike_empty: float  # the same where cells are empty or not
    alike_unlike: float  # and where they are unlike training or not
    n_alone: float  # rows whose word or number no other group has
    counts: tuple[float, ...] = ()  # rows by bin, of words: those alone are unlike training


@dataclass(frozen=True)
class TrainingFacts:
    """Rows that a model was trained on, and how its quality on new rows was estimated."""

    n_rows: int  # of the table, copies included
    n_copies_collapsed: int
    n_rows_without_target: int
    copies_count: bool  # whether a row that stands for copies counts as many
    holdout: float  # share of the rows held out for the estimate
    groups: str | None
    time: str | None
    seed: int
    trained_on_all_rows: bool
    estimated_by: str | None
    held_out: RankingEstimate | None
    versions: dict[str, str]
    date: str  # ISO 8601, UTC
    # Rows that the saved model learned from, copies included, and rare ones; None: all.
    n_learned: int | None = None
    n_learned_rare: int | None = None
    grouped: dict[str, GroupedColumn] = field(default_factory=dict)  # by column, of groups

    def learned_text(self) -> str:
        """Say from how many rows the saved model learned."""
        rows = counted(self.n_rows, "row")
        if self.n_learned is None:
            return rows
        return f"{self.n_learned:,} of {rows}, {self.n_learned_rare or 0:,} of them rare"

    def trained_text(self) -> str:
        """Say when the saved model learned, and from how many rows."""
        date = f" on {self.date[:10]}" if self.date else ""
        return f"Trained{date} on {self.learned_text()}"

    def copies_text(self) -> str:
        """Say what became of duplicate rows; empty where there were none."""
        if not self.n_copies_collapsed:
            return ""
        how = "with weights" if self.copies_count else "each counts once"
        return f"{counted(self.n_copies_collapsed, 'duplicate row')} merged ({how})"

    def versions_text(self) -> str:
        """Name the packages that the model was trained with."""
        return ", ".join(f"{name} {number}" for name, number in self.versions.items())


@dataclass(frozen=True)
class LeaderboardRow:
    """A member of a combination and its cross-validated measures."""

    member: str
    setting: str
    roc_auc: float
    average_precision: float
    average_precision_low: float
    average_precision_high: float
    seconds: float
    weight: float


@dataclass(frozen=True)
class CombinationFacts:
    """A combination of members, as `RareClassifier` learned it."""

    method: ClassVar[str] = "auto"

    objective: str
    effort: str
    plan: str  # members, folds and rows, in words
    time_budget: float | None  # seconds; None: no limit
    leaderboard: tuple[LeaderboardRow, ...]
    without_time: tuple[str, ...]  # members that the time limit left out or stopped
    interrupted: bool
    importances: dict[str, float]  # loss of the objective when a column is shuffled
    also_tried: tuple[LeaderboardRow, ...] = ()  # by the first training, and without weight


@dataclass(frozen=True)
class SolverFacts:
    """State in which a solver stopped."""

    status: str
    iterations: int
    duality_gap: float | None = None


@dataclass(frozen=True)
class KernelFacts:
    """A kernel machine and how its parameters were chosen."""

    method: ClassVar[str] = "rankrc"

    lam: float
    lam_chosen_by_cross_validation: bool
    width: float
    width_chosen_by_cross_validation: bool
    n_landmarks: int
    solver: SolverFacts
    chosen_on_rows: int | None = None  # rows of the search, where these were not all


@dataclass(frozen=True)
class OrdinalFacts(KernelFacts):
    """A kernel machine for levels."""

    method: ClassVar[str] = "ordinal-rankrc"


@dataclass(frozen=True)
class MomentFacts:
    """A linear model on two moments of the majority, and how its parameters were chosen."""

    method: ClassVar[str] = "mibc"

    C: float
    C_chosen_by_cross_validation: bool
    covariance: str
    ridge: float
    ridge_chosen_by_cross_validation: bool
    specificity_bound: float
    solver: SolverFacts


@dataclass(frozen=True)
class HuntFacts:
    """A hunt: a list of rows, and the order that new rows are scored in."""

    method: ClassVar[str] = "hunt"
    n_hunted: int = 0  # rows of the table, labelled or not


MethodFacts = CombinationFacts | KernelFacts | OrdinalFacts | MomentFacts | HuntFacts
_TARGETS: dict[str, type[Any]] = {one.target_kind: one for one in get_args(TargetFacts)}
_METHODS: dict[str, type[Any]] = {one.method: one for one in get_args(MethodFacts)}


@dataclass(frozen=True)
class ModelFacts:
    """Facts of a fitted model, besides the parts that it scores with.

    Attributes
    ----------
    format : {"table", "svmlight", "stream"}
    target : RareClassFacts or LevelFacts
    columns : tuple of Column
        Columns of the training table, those that were not learned from included. Empty for
        svmlight.
    quantiles : tuple of float
        Scores at equal steps from 0 to 100 percent of the training majority (of all training rows
        where the target has levels): the percentile of a new score is interpolated among them.
    training : TrainingFacts or None
        None for a stream and for a hunt.
    method : CombinationFacts, KernelFacts, OrdinalFacts, MomentFacts, HuntFacts or None
        What the method chose. None for a stream.
    rule : ChosenThreshold or None
        How the threshold was chosen, where a rule or a user named it.
    class_rules : dict of ChosenThreshold
        Of several rare classes, by name: the probability of the class above which a row is called
        that class, and how it was chosen.
    """

    format: TableFormat
    target: TargetFacts
    columns: tuple[Column, ...]
    quantiles: tuple[float, ...]
    training: TrainingFacts | None = None
    method: MethodFacts | None = None
    rule: ChosenThreshold | None = None
    class_rules: dict[str, ChosenThreshold] = field(default_factory=dict)

    @property
    def class_thresholds(self) -> dict[str, float]:
        """Threshold of each of several rare classes; a class that no row was held out of lacks."""
        return {name: rule.threshold for name, rule in self.class_rules.items()}

    @property
    def method_name(self) -> str | None:
        """Name of the method, as ``--method`` calls it."""
        return None if self.method is None else self.method.method

    @property
    def n_rows(self) -> int | None:
        """Number of training rows, copies included; None where it is not known."""
        return None if self.training is None else self.training.n_rows

    @property
    def importances(self) -> dict[str, float]:
        """Importance of each column; empty where the method has none."""
        return self.method.importances if isinstance(self.method, CombinationFacts) else {}


def class_thresholds_text(thresholds: dict[str, float]) -> str:
    """Return the line on thresholds of several rare classes."""
    named = [f"{name} {threshold:.3g}" for name, threshold in thresholds.items()]
    return f"Called each class above a probability of: {first_names(named, MOST_CLASSES)}"


def facts_as_json(facts: ModelFacts) -> dict[str, Any]:
    """Return the facts as one flat dictionary that JSON can hold. O(columns + quantiles).

    >>> from rareclass.model.targets import RareClassFacts
    >>> target = RareClassFacts("fraud", "yes", "no")
    >>> told = facts_as_json(ModelFacts("table", target, (), (0.0, 1.0)))
    >>> told["target"], told["rare_label"], told["quantiles"]
    ('fraud', 'yes', [0.0, 1.0])
    """
    flat: dict[str, Any] = {"format": facts.format, "target_kind": facts.target.target_kind}
    if facts.method is not None:
        flat["method"] = facts.method.method
    flat |= {name: each for name, each in plain_data(facts.target).items() if each}
    for part in (facts.training, facts.method):
        if part is not None:
            flat |= plain_data(part)
    if facts.training is not None:
        held_out = facts.training.held_out
        flat["held_out"] = None if held_out is None else held_out.as_plain_data()
    flat["columns"] = plain_data(facts.columns)
    flat["quantiles"] = plain_data(facts.quantiles)
    flat["rule"] = plain_data(facts.rule)
    if facts.class_rules:
        flat["class_rules"] = plain_data(facts.class_rules)
    return flat


def facts_from_json(told: Any) -> ModelFacts:
    """Return the facts that `facts_as_json` wrote, each value checked against its type.

    Raises `ValueError` naming the key that is missing or of another type.
    """
    if not isinstance(told, dict):
        raise ValueError("its facts are not a dictionary")
    rule = told.get("rule")
    quantiles = typed_value(tuple[float, ...], required(told, "quantiles"), "quantiles")
    if not quantiles or not np.isfinite(quantiles).all() or (np.diff(quantiles) < 0).any():
        raise ValueError("quantiles are not increasing numbers")
    return ModelFacts(
        format=typed_value(TableFormat, required(told, "format"), "format"),
        target=_one_of(_TARGETS, "target_kind", told),
        columns=typed_value(tuple[Column, ...], required(told, "columns"), "columns"),
        quantiles=quantiles,
        training=read_fields(TrainingFacts, told) if "n_rows" in told else None,
        method=None if "method" not in told else _one_of(_METHODS, "method", told),
        rule=None if rule is None else read_fields(ChosenThreshold, rule),
        class_rules=typed_value(
            dict[str, ChosenThreshold], told.get("class_rules", {}), "class_rules"
        ),
    )


def _one_of(kinds: dict[str, type[Any]], mark: str, told: dict[str, Any]) -> Any:
    """Read the dataclass of the kind that the facts name under `mark`."""
    named = required(told, mark)
    if not isinstance(named, str) or named not in kinds:
        raise ValueError(f"{mark} of its facts is {str(named)[:40]!r}, which is unknown")
    return read_fields(kinds[named], told)
