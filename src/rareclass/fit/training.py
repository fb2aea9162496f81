"""From training rows to a model, with an estimate of how good it is.

A method that cross-fits is fitted once on all rows: each is scored by functions that did not see
it. Others are fitted on a part of the rows, judged on the rest, and fitted again on all.
"""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.decide.alert_budget import AtMostAlertsAPeriod, covered_periods
from rareclass.decide.chosen_threshold import ChosenThreshold
from rareclass.decide.threshold_rule import default_thresholds
from rareclass.encoding.encoders import TypedColumns
from rareclass.errors import ErrorKind, InputError, setting
from rareclass.findings import warnings_as
from rareclass.fit.hold_out import NO_ESTIMATE, Baseline, baselines, plan_hold_out, pooled
from rareclass.fit.method import EncodedRows, Method, Terms
from rareclass.fit.rows_on_disk import RowsOnDisk, encode_on_disk, scores_of
from rareclass.fit.training_set import FitSettings, TrainingSet, in_memory
from rareclass.folds.dealing import check_days
from rareclass.folds.majority_part import draw_majority
from rareclass.folds.score_scale import MajorityScores, ScoreMap, match_majority
from rareclass.metrics.column_drift import rows_alike_in_bins
from rareclass.metrics.intervals import widened
from rareclass.model.columns import TrainedColumn, WordBins
from rareclass.model.decisions import decision_of
from rareclass.model.facts import (
    GroupedColumn,
    ModelFacts,
    RankingEstimate,
    RareCases,
    ScoredRows,
    TrainingFacts,
    facts_as_json,
)
from rareclass.model.model import Model
from rareclass.model.targets import RareClassFacts
from rareclass.model.threshold import NO_VALUES, rules_in_step
from rareclass.ranking import OrdinalRankRC
from rareclass.stored import plain_data

# Rare rows that are kept; more are thinned at random.
MOST_CASES = 2000
# Numbers of them, at most: 8 MB.
_MOST_NUMBERS = 1_000_000


def rare_cases(
    encoder: Any, model: Any, data: TrainingSet, seed: int, id_column: str | None
) -> RareCases | None:
    """Return the rare ones of the rows that a model learned from, all or some drawn by `seed`.

    They have the cells of `id_column` as names, where there is one. Of a kernel machine those that
    are its landmarks. None for levels, and for rows without columns, which are not explained.
    """
    if data.number is None or not isinstance(data.target, RareClassFacts):
        return None
    landmark_rows = getattr(model, "landmark_rows_", None)
    if landmark_rows is not None:
        is_rare = data.rare[landmark_rows]
        names = _names(data, id_column, landmark_rows)
        return RareCases(np.where(is_rare, data.number[landmark_rows], 0), None, names)
    from rareclass.explain.near_cases import case_features

    chosen = _thinned(np.flatnonzero(data.rare), data.rows.shape[1], seed)
    part = data.take(chosen)
    rows = part.rows.frame() if isinstance(part.rows, RowsOnDisk) else part.rows
    features = case_features(model, encoder.transform(rows))
    width = sum(values.shape[1] for values in features.values())
    kept = _thinned(np.arange(len(chosen)), width, seed)
    assert part.number is not None
    own = {name: each[kept] for name, each in features.items()}
    return RareCases(part.number[kept], own, _names(part, id_column, kept))


def _names(
    data: TrainingSet, column: str | None, rows: NDArray[np.int64]
) -> tuple[str, ...] | None:
    """Return the cells of a column of `beside`, as text."""
    if column is None or data.beside is None:
        return None
    return tuple(data.beside[column][rows].cast(pl.String).fill_null(""))


def _thinned(rows: NDArray[np.int64], width: int, seed: int) -> NDArray[np.int64]:
    """Some of the rows, in order, so that they are few enough at this width."""
    most = max(1, min(MOST_CASES, _MOST_NUMBERS // max(1, width)))
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


# Scores of this many rows say where a new score stands among them.
PERCENTILE_ROWS = 20_000
# Majority rows whose held-out scores are kept in the file, for other thresholds.
MOST_HELD_OUT = 50_000
# Majority rows that are learned from where few rare rows are held out in turn.
MOST_LEARNED = 10_000
_PACKAGES = ("rareclass", "scikit-learn", "numpy", "polars")


@dataclass(frozen=True)
class Trained:
    """The outcome of training."""

    content: Model
    estimate: RankingEstimate | None  # of its ranking of new rows
    method: Method  # with the parameter used
    decided: list[str]  # how often it was right about them, where that says more
    summary: list[str]  # what the method says of the model
    notes: list[str] = field(default_factory=list)
    beside_it: list[Baseline] = field(default_factory=list)  # plain methods on the same rows
    other_thresholds: list[ChosenThreshold] = field(default_factory=list)  # where none was asked

    def as_plain_data(self) -> dict[str, Any]:
        """Return what the model file says of the training, and what was tried beside it."""
        return facts_as_json(self.content.facts) | {
            "thresholds": plain_data(self.content.thresholds),
            "prevalence": self.content.prevalence,
            "beside_it": plain_data(self.beside_it),
            "other_thresholds": plain_data(self.other_thresholds),
            "notes": self.notes,
        }


def train(data: TrainingSet, settings: FitSettings) -> Trained:
    """Train on all rows, with an estimate of what the model is worth on new ones."""
    task, method = _Training(data, settings), settings.method
    kept, held_out, notes = task.plan.kept, task.plan.held_out, task.notes
    task.check_rule()
    with warnings_as(notes):
        will_refit = settings.refit and len(held_out) > 0
        first = task.fit(data.take(kept), method, notes, 0.5 if will_refit else 1.0)
        judged = task.judged = task.scored(first)
        rule, others = task.choose_threshold()
        beside_it = task.baselines() if judged is not None else []
        chosen = method.as_chosen(first.model) if will_refit else method
        again = task.refit(chosen, first) if will_refit else None
    encoder, model = first if again is None else again
    trained_on = data.take(kept) if again is None else data
    if rule is not None and settings.rule is not None and len(trained_on.y) == len(data.y):
        rule = rule.approximately("the saved model learned from these rows as well")
    to_saved = task.to_saved(again)
    thresholds, judged_at = thresholds_of(model), thresholds_of(first.model)
    if rule is not None:
        judged_at = np.array([rule.threshold])
        rule, *others = (
            replace(each, threshold=float(to_saved(np.array([each.threshold]))[0]))
            for each in (rule, *others)
        )
        thresholds = np.array([rule.threshold])
    chosen_on = terms_of(data.y[kept], settings)
    of_classes = task.class_rules(float(judged_at[0]), rule)
    decision = decision_of(
        data.target, judged_at, {name: each.threshold for name, each in of_classes.items()}
    )
    estimate, decided, stretch = None, [], 1.0
    if judged is not None:
        stretch = task.plan.stretch(len(judged.y), first.model)
        estimate = decision.estimate(judged, settings.prevalence).widened(stretch)
        notes += data.target.notes_on_held_out(judged.y, estimate.n_rows, estimate.n_rare or 0.0)
        decided = decision.confusion(judged, settings.prevalence, stretch).in_brief
    if rule is not None:
        rule, *others = (_widened(each, stretch) for each in (rule, *others))
    quantiles = method.majority_quantiles(model)
    quantiles = quantiles or _quantiles(encoder, model, trained_on, settings.seed)
    facts = ModelFacts(
        format="table" if data.columns else "svmlight",
        target=data.target,
        columns=tuple(method.as_learned(model, data.columns)),
        quantiles=tuple(quantiles),
        training=task.facts(estimate, trained_on),
        method=method.facts(model, chosen_on, chosen),
        rule=rule,
        class_rules=of_classes,
    )
    summary = method.summary(model, chosen_on, thresholds)
    cases = rare_cases(encoder, model, trained_on, settings.seed, settings.id_column)
    light = task.light()
    if light is not None:
        light = light._replace(scores=to_saved(light.scores))
    calibration = getattr(model, "calibration_", None)
    stored = method.as_stored(model)
    content = Model(encoder, stored, facts, thresholds, calibration, held_out=light, cases=cases)
    if trained_on.groups is not None:
        grouped = _grouped(content.trained, trained_on)
        training = replace(task.facts(estimate, trained_on), grouped=grouped)
        content = replace(content, facts=replace(facts, training=training))
    if settings.prevalence is not None and calibration is None:
        notes.append(f"{setting('prevalence')} has no effect: the model has no probabilities.")
    elif settings.prevalence is not None:
        content.set_prevalence(settings.prevalence)
    return Trained(content, estimate, chosen, decided, summary, notes, beside_it, others)


class _Fitted(NamedTuple):
    """An encoder and a model, fitted on the same rows."""

    encoder: Any
    model: Any

    def scores(self, data: TrainingSet) -> NDArray[np.float64]:
        return scores_of(self.encoder, self.model, data.rows)


class _Training:
    """A training: its rows and settings, the rows held out and how they are judged, and notes."""

    def __init__(self, data: TrainingSet, settings: FitSettings) -> None:
        self.data, self.settings = data, settings
        self.notes: list[str] = []
        self.time = data.time
        self.plan = plan_hold_out(data, settings, self.notes)
        self.judged: ScoredRows | None = None

    def check_rule(self) -> None:
        """Raise `InputError`, before anything is learned, where no rows could judge the rule.

        Or where there are none for the report.
        """
        rule, plan, data, time = self.settings.rule, self.plan, self.data, self.settings.time
        if not (plan.folds or plan.cross_fits or len(plan.held_out)) and self.settings.of_held_out:
            raise _no_held_out_rows(self.settings)
        if rule is None:
            return
        limit = rule.rule.constraint
        if time is not None and self.time is not None and isinstance(limit, AtMostAlertsAPeriod):
            check_days(self.time, setting("time", time), time)
            covered_periods(self.time, limit.period)
        if data.beside is not None and data.number is not None:
            judged = plan.held_out if len(plan.held_out) else slice(None)
            rule.values(data.beside[judged], data.number[judged], None)

    def fit(self, data: TrainingSet, method: Method, notes: list[str], share: float) -> _Fitted:
        """Return an encoder and a model, fitted on `data` in a share of the time."""
        settings = self.settings
        encoder: Any = data.new_encoder(settings.seed, method.reads_types, method.numbers)
        if method.reads_types and isinstance(data.rows, RowsOnDisk):
            data = in_memory(data, settings.seed)
        if isinstance(data.rows, RowsOnDisk):
            X = encode_on_disk(encoder, data.rows, data.y, data.rare, data.weight, settings.seed)
        else:
            X = encoder.fit_transform(data.rows, data.y, data.weight)
        groups, time = data.groups, data.time if data.groups is None else None
        rows = EncodedRows(X, data.y, data.weight, data.target.n_codes, groups, time, data.which)
        model = method.fit(rows, terms_of(data.y, settings, share), notes)
        if method.reads_types:
            used = [column for column in model.columns_ if column.is_used]
            encoder = TypedColumns(used, model.statistics_)
        return _Fitted(encoder, model)

    def refit(self, chosen: Method, fitted: _Fitted) -> _Fitted | None:
        """Train on all rows as chosen; None where Ctrl-C or the time ended a training early."""
        if not chosen.may_be_stopped:
            return self.fit(self.data, chosen, self.notes, 0.5)
        if fitted.model.interrupted_:
            return None
        said: list[str] = []  # of a model that may not be saved
        try:
            again = self.fit(self.data, chosen, said, 0.5)
        except KeyboardInterrupt:
            self.notes.append("stopped by Ctrl-C before the training on all rows had a model.")
            return None
        if chosen.is_whole(again.model):
            self.notes += [text for text in said if text not in self.notes]
            return again
        self.notes.append(
            "the training on all rows ended before every member was trained: the saved model is "
            f"the one that was estimated, without the held-out rows. {setting('seconds')} gives "
            "more time."
        )
        return None

    def scored(self, fitted: _Fitted) -> ScoredRows | None:
        """Return scores of rows that count as new, None where there are none of two classes."""
        data, plan, method = self.data, self.plan, self.settings.method
        if plan.folds:
            judged = self._judged_in_turn(fitted)
        elif plan.cross_fits:
            every = EncodedRows(None, data.y, data.weight, data.target.n_codes, which=data.which)
            judged = method.cross_fitted(fitted.model, every)
        else:
            if not len(plan.held_out):
                return None
            tested = data.take(plan.held_out)
            scores = fitted.scores(tested)
            classes = method.scored_classes(fitted.model, fitted.encoder, tested)
            judged = ScoredRows(tested.y, scores, tested.weight, plan.held_out, classes)
        if len(np.unique(judged.y)) < 2:
            self.notes.append(NO_ESTIMATE)
            return None
        return self._in_groups(judged)

    def _in_groups(self, judged: ScoredRows) -> ScoredRows:
        """Return rows with a number for each group; one row that stands for copies is a group."""
        group = self.data.groups
        if judged.places is None or (group is None and self.data.weight is None):
            return judged
        places = judged.places
        named = places if group is None else group[places]
        return judged._replace(group=np.unique(named, return_inverse=True)[1])

    def _judged_in_turn(self, fitted: _Fitted) -> ScoredRows:
        """Scores of all rows by models of the others, which chose their parameters without them."""
        parts, settings = [], self.settings
        for kept, held_out in self.plan.folds:
            learned, tested = self.data.take(kept), self.data.take(held_out)
            if int((~learned.rare).sum()) > MOST_LEARNED:
                drawn = draw_majority(learned.rare, learned.weight, MOST_LEARNED, settings.seed)
                learned = replace(learned.take(drawn.rows), weight=drawn.weight)
            part = self.fit(learned, settings.method, [], 1.0)
            scores, whole = part.scores(tested), fitted.scores(tested)
            rest = tested.y != 1
            weight = None if tested.weight is None else tested.weight[rest]
            own, like = (MajorityScores.of(each[rest], weight) for each in (scores, whole))
            moved = match_majority(own, like)(scores)
            parts.append(ScoredRows(tested.y, moved, tested.weight, held_out))
        return pooled(parts)

    def to_saved(self, again: _Fitted | None) -> ScoreMap:
        """Return the map from scores of the judged model to those of the saved one."""
        data, judged = self.data, self.judged
        keeps_scale = self.settings.method.cross_fits or not isinstance(data.target, RareClassFacts)
        if again is None or judged is None or keeps_scale:
            return ScoreMap()
        rest = judged.y != 1
        majority = data.take(self.plan.held_out[rest])
        both = judged.scores[rest], again.scores(majority)
        own, like = (MajorityScores.of(each, majority.weight) for each in both)
        return match_majority(own, like)

    def choose_threshold(self) -> tuple[ChosenThreshold | None, list[ChosenThreshold]]:
        """Return the threshold that the rule chooses on held-out rows, and others to take instead.

        There are others where no rule was asked for. None for levels, and where there are no such
        rows: an estimator's own threshold decides. Raises `InputError` where a rule has no rows to
        be judged on.
        """
        data, judged, rule, values = self.data, self.judged, self.settings.rule, NO_VALUES
        if rule is None:
            if judged is None or not isinstance(data.target, RareClassFacts):
                return None, []
            rows = (judged.y, judged.scores, judged.weight)
            found = default_thresholds(*rows, self.settings.prevalence, judged.group)
            return (found[0], found[1:]) if found else (None, [])
        if judged is None:
            raise _no_held_out_rows(self.settings)
        if data.beside is not None and judged.places is not None:
            assert data.number is not None
            beside, number = data.beside[judged.places], data.number[judged.places]
            values = rule.values(beside, number, self.settings.time)
        return rule.choose(judged, values), []

    def class_rules(
        self, threshold: float, rule: ChosenThreshold | None
    ) -> dict[str, ChosenThreshold]:
        """Return thresholds of several rare classes, in step with that of any."""
        judged, target = self.judged, self.data.target
        if judged is None or judged.classes is None or not isinstance(target, RareClassFacts):
            return {}
        words = f"score > {threshold:g}" if rule is None else rule.rule
        return rules_in_step(target, judged, threshold, words)

    def baselines(self) -> list[Baseline]:
        """Return plain methods on the same rows; members of a combination are some themselves."""
        data, plan, settings = self.data, self.plan, self.settings
        is_plain = isinstance(data.target, RareClassFacts) and not isinstance(data.rows, RowsOnDisk)
        if not settings.baseline or settings.method.cross_fits or not is_plain:
            return []
        parts = []
        for kept, held_out in plan.folds or [(plan.kept, plan.held_out)]:
            learned, tested = data.take(kept), data.take(held_out)
            encoder: Any = data.new_encoder(settings.seed)
            X = encoder.fit_transform(learned.rows, learned.y, learned.weight)
            new = EncodedRows(encoder.transform(tested.rows), tested.y, tested.weight)
            parts.append((EncodedRows(X, learned.y, learned.weight), new))
        return baselines(parts)

    def light(self) -> ScoredRows | None:
        """All rare rows, and so many of the others as a file has room for, with weights."""
        judged = self.judged
        if judged is None:
            return None
        is_rare = judged.y != self.data.target.majority
        if int((~is_rare).sum()) <= MOST_HELD_OUT:
            return judged
        kept, weight = draw_majority(is_rare, judged.weight, MOST_HELD_OUT, self.settings.seed)
        return judged.take(kept)._replace(weight=weight, places=None)

    def facts(self, estimate: RankingEstimate | None, trained_on: TrainingSet) -> TrainingFacts:
        """Return what the model file says of the training."""
        data, settings = self.data, self.settings
        versions = {package: version(package) for package in _PACKAGES}
        on_all_rows, n_learned, n_rare = len(trained_on.y) == len(data.y), None, None
        if not on_all_rows:
            copies = np.ones(len(trained_on.y)) if trained_on.weight is None else trained_on.weight
            n_learned, n_rare = round(copies.sum()), round(copies[trained_on.rare].sum())
        return TrainingFacts(
            n_rows=data.n_rows,
            n_copies_collapsed=data.n_copies,
            n_rows_without_target=data.n_unlabelled,
            copies_count=data.weight is not None or not data.n_copies,
            holdout=self.plan.share,
            groups=settings.groups,
            time=settings.time,
            seed=settings.seed,
            trained_on_all_rows=on_all_rows or estimate is None,
            estimated_by=None if estimate is None else self.plan.by,
            held_out=estimate,
            versions=versions | {"python": platform.python_version()},
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            n_learned=n_learned,
            n_learned_rare=n_rare,
        )


def _grouped(columns: Sequence[TrainedColumn], data: TrainingSet) -> dict[str, GroupedColumn]:
    """Return each column as rows of other groups see it."""
    assert isinstance(data.rows, pl.DataFrame)
    assert data.groups is not None
    group, found = np.unique(data.groups, return_inverse=True)[1], {}
    copies = np.ones(len(group)) if data.weight is None else data.weight
    for each in (each for each in columns if each.name in data.rows.columns):
        cells, n_bins = data.rows[each.name], each.bins.n_bins
        pairs = pl.DataFrame({"cell": cells, "group": group})
        is_alone = pairs.select(pl.col("group").n_unique().over("cell") == 1).to_series()
        alone = (is_alone & cells.is_not_null()).to_numpy()
        places = each.bins.places(cells)
        if isinstance(each.bins, WordBins):
            places = np.where(alone, n_bins, places)
        counts = np.bincount(places, copies, n_bins + 2)
        alike, of_empty, of_unlike = (
            rows_alike_in_bins(those.astype(np.intp), group, data.weight)
            for those in (places, places > n_bins, places == n_bins)
        )
        if counts[-1]:  # an empty cell is missing from all other bins
            alike = max(alike, of_empty)
        own = tuple(counts.tolist()) if isinstance(each.bins, WordBins) else ()
        n_alone = float(copies[alone].sum())
        found[each.name] = GroupedColumn(alike, of_empty, of_unlike, n_alone, own)
    return found


def _no_held_out_rows(settings: FitSettings) -> InputError:
    return ErrorKind.COMBINATION.error(
        f"{settings.of_held_out} needs held-out rows of both classes, and there are none.",
        f"Leave out {setting('holdout', 0)}, or give rows with more of the rare class.",
    )


def thresholds_of(model: Any) -> NDArray[np.float64]:
    """Return the thresholds that an estimator chose for itself: one, or one between levels."""
    found = model.thresholds_ if isinstance(model, OrdinalRankRC) else model.offset_
    return np.atleast_1d(np.asarray(found, dtype=np.float64))


def _widened(rule: ChosenThreshold, factor: float) -> ChosenThreshold:
    """Return a threshold with wider intervals, unless a stated confidence goes with them."""
    if rule.confidence is not None:
        return rule
    precision, recall, rate = (
        widened(each, factor) for each in (rule.precision, rule.recall, rule.false_positive_rate)
    )
    return replace(rule, precision=precision, recall=recall, false_positive_rate=rate)


def terms_of(y: NDArray[np.int16], settings: FitSettings, share: float = 1.0) -> Terms:
    """Return the terms on which a method learns from rows with these codes.

    Every fold holds rows of two codes at least: a ranking of one cannot be measured.
    """
    folds = min(settings.folds, int(np.sort(np.bincount(y, minlength=2))[-2]))
    return Terms(folds, settings.seed, settings.kernel_memory, share, len(y))


def _quantiles(encoder: Any, model: Any, data: TrainingSet, seed: int) -> list[float]:
    """Return the 0th to 100th percentile of training scores, in steps of 0.1."""
    rows = np.flatnonzero(data.target.compared_with(data.y))
    copies = None if data.weight is None else data.weight[rows]
    if len(rows) > PERCENTILE_ROWS:
        generator = np.random.default_rng(seed)
        share = None if copies is None else copies / copies.sum()
        drawn = generator.choice(rows, PERCENTILE_ROWS, replace=share is not None, p=share)
        rows, copies = np.sort(drawn), None
    scores = scores_of(encoder, model, data.take(rows).rows)
    if copies is not None:
        scores = np.repeat(scores, copies.astype(np.int64))
    return [float(value) for value in np.quantile(scores, np.linspace(0, 1, 1001))]
