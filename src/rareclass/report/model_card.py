"""A judged model, and its card: the basis of the numbers and the limits, from facts alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Self

from rareclass.decide.calibration import weights_at_prevalence
from rareclass.errors import first_names
from rareclass.metrics import CheckedMeasures, Interval, interval
from rareclass.metrics.held_out_cuts import HeldOutCuts
from rareclass.model.drift import ColumnDrift
from rareclass.model.evaluate import Promises
from rareclass.model.facts import ScoredRows
from rareclass.model.model import Model
from rareclass.report.page import Heading, Listing, PageBlock, Section, percent, whole
from rareclass.report.scores_section import ReliabilityDisplay, ScoreDistributionDisplay
from rareclass.report.subgroups import Subgroups
from rareclass.report.threshold_table import ThresholdTable

# Fewer rare rows than this make every interval wide.
_FEW_RARE = 50
_WIDE = 0.2
_MOST_NAMED = 5


@dataclass(frozen=True)
class JudgedModel:
    """A model with the counts and measures of its scores, and what is known of the rows."""

    model: Model
    table: ThresholdTable
    auc: Interval
    average_precision: Interval
    distribution: ScoreDistributionDisplay
    reliability: ReliabilityDisplay | None
    columns: Sequence[ColumnDrift] = ()
    rows: str | None = None  # name of the rows that were scored; None: held out of training
    promises: Promises = field(default_factory=Promises)
    n_unlabelled: int = 0  # rows that are judged by their alerts alone
    days: Subgroups | None = None
    groups: Subgroups | None = None
    checked: CheckedMeasures | None = None  # where only some rows have a known class

    @property
    def own(self) -> int:
        """Place of the model's threshold in the table."""
        assert self.table.own is not None
        return self.table.own

    @classmethod
    def of(
        cls,
        model: Model,
        scored: ScoredRows,
        every: HeldOutCuts | None = None,
        costs: Any = None,
        held_out: bool = False,
        average_precision: Interval | None = None,
        **known: Any,
    ) -> Self:
        """Measure scores at every threshold, of rows that were `held_out` of training or of others.

        Probabilities of a stated prevalence are compared with held-out rows that are weighed so.
        `known` are other attributes.
        """
        y, weight, groups = scored.y == 1, scored.weight, scored.group
        reliability, calibration = None, model.rare_calibration
        if calibration is not None:
            there = weight
            if held_out and model.stated_prevalence is not None:  # as many rare rows as stated
                there = weights_at_prevalence(y, weight, calibration.prevalence)
            reliability = ReliabilityDisplay.of(y, calibration(scored.scores), there, groups=groups)
        own, judged = model.threshold, (y, scored.scores, weight)
        return cls(
            model,
            ThresholdTable.of(*judged, own=own, costs=costs, groups=groups, every=every),
            interval("roc_auc", *judged, groups=groups),
            average_precision or interval("average_precision", *judged, groups=groups),
            ScoreDistributionDisplay.of(*judged, threshold=own),
            reliability,
            **known,
        )

    @property
    def rows_in_words(self) -> str:
        """The rows that were judged, and how many are rare; of checked ones what was found."""
        if self.checked is None:
            return f"{whole(self.table.n_rows)} rows, {whole(self.table.n_rare)} of them rare"
        found = f"{whole(self.checked.n_found)} of {whole(self.checked.n_checked)}"
        return f"{whole(self.checked.n_rows)} rows, {found} checked ones rare"


def card_section(basis: JudgedModel) -> Section:
    """Section with the basis of the numbers, and the uses that the model is not fit for."""
    blocks: list[PageBlock] = [Heading("What it rests on"), Listing(tuple(_meant(basis)))]
    limits = _limits_of_few_rows, _limits_on_other_rows, _limits_of_parts
    if not_meant := tuple(chain.from_iterable(each(basis) for each in limits)):
        blocks += [Heading("What it is not for"), Listing(not_meant)]
    lead = "Derived from the model file and the rows of this page; nobody's intentions are in it."
    return Section("card", "Model card", lead, tuple(blocks))


def _meant(basis: JudgedModel) -> Iterator[str]:
    facts = basis.model.facts
    training, rule, n_rare = facts.training, facts.rule, basis.model.rare_class.n_rare
    if training is not None:
        rare = f", {whole(n_rare)} of them rare" if n_rare and training.n_learned is None else ""
        yield f"{training.trained_text()}{rare}."
    on = "rows that it did not learn from" if basis.rows is None else basis.rows
    yield f"Judged on {basis.rows_in_words}: {on}."
    if basis.rows is not None:
        yield (
            "The numbers hold for rows like these. Whether the model learned from these very rows "
            "cannot be told from its file: if it did, they flatter it."
        )
    elif (
        training is not None
        and training.trained_on_all_rows
        and training.estimated_by == "held-out rows"
    ):
        yield "The model that was judged learned without these rows; the saved one from all."
    if rule is not None and rule.guaranteed and rule.confidence is not None:
        yield f"Its threshold keeps {rule.rule} at confidence {rule.confidence:g}."


def _limits_of_few_rows(basis: JudgedModel) -> Iterator[str]:
    table, checked, own = basis.table, basis.checked, basis.own
    recall, n_rare = table.recall.at(own), table.n_rare
    if checked is not None:
        recall, n_rare = checked.recall or recall, checked.n_found
    bounds = f"{percent(recall.low)} to {percent(recall.high)}"
    if n_rare < _FEW_RARE:
        yield (
            f"Not for fine distinctions: only {whole(n_rare)} rare rows were judged, and its "
            f"recall may lie anywhere from {bounds}."
        )
    elif recall.high - recall.low > _WIDE:
        yield f"Not for promises on recall: it may lie anywhere from {bounds}."
    precision = table.precision.at(own)
    if precision.value < 0.5:
        times = (1.0 - precision.value) / max(precision.value, 1e-9)
        yield (
            f"Not for acting without a look: of its alerts {percent(1.0 - precision.value)} "
            f"are false, {times:.1f} for each that is right."
        )
    missed = table.n_rare - table.hits[own]
    if missed > 0:
        share = percent(missed / table.n_rare)
        yield f"Not for clearing rows: {share} of the rare rows raise no alert at its threshold."


def _limits_on_other_rows(basis: JudgedModel) -> Iterator[str]:
    share = basis.table.n_rare / basis.table.n_rows
    if basis.checked is not None and basis.checked.prevalence is not None:
        share = basis.checked.prevalence.value
    yield (
        "Not for another share of rare rows without a look: precision and "
        f"{basis.table.alert_unit} are at {percent(share)} rare."
    )
    moved = [each.name for each in basis.columns if each.is_far]
    if moved:
        yield (
            f"Not as it was trained: {first_names(moved, _MOST_NAMED)} moved far since training; "
            "fit again with rows like these."
        )
    if broken := basis.promises.broken:
        names = first_names([each.name for each in broken], _MOST_NAMED)
        yield f"Not by what was expected at training of: {names}."
    training = basis.model.facts.training
    if basis.days is None and (training is None or training.time is None):
        yield "Not known of later times: neither training nor these numbers went by time."


def _limits_of_parts(basis: JudgedModel) -> Iterator[str]:
    """Limits of probabilities, and of days and groups."""
    if basis.reliability is None:
        yield "Not for probabilities: its scores order rows, and say no more."
    elif basis.reliability.n_off:
        yield (
            f"Not for exact probabilities: in {basis.reliability.n_off} of "
            f"{len(basis.reliability.found)} bins the share of rare rows is not the predicted one."
        )
    for parts in (basis.days, basis.groups):
        if parts is not None and parts.worse:
            named = first_names([each.name for each in parts.worse], _MOST_NAMED)
            yield f"Not equally for every {parts.by}: it finds fewer of the rare rows of {named}."
