"""RareClassifier as the command line runs it: its time, its members, and what is said of it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from rareclass.ensemble.combination import OBJECTIVES, as_objective
from rareclass.ensemble.combined_ranking import CombinedRanking
from rareclass.ensemble.members.member import Size
from rareclass.ensemble.plan import (
    FOLDS,
    MEMBERS,
    PORTFOLIOS,
    folds_of,
    make_members,
    make_plan,
    threads_for,
)
from rareclass.ensemble.rare_classifier import RareClassifier
from rareclass.errors import ErrorKind, counted, setting, unknown_name
from rareclass.findings import Finding, FindingKind, warnings_as
from rareclass.fit.kernel_methods import RankRCMethod
from rareclass.fit.method import EncodedRows, Method, TableSize, Terms
from rareclass.fit.rows_on_disk import frames_of
from rareclass.model.facts import CombinationFacts, LeaderboardRow, RareClassScores, ScoredRows
from rareclass.model.table_scorer import class_codes, class_probability
from rareclass.tables.columns import Column
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile

# Fewer seconds than this are not worth a training.
_LEAST_SECONDS = 1.0
# The text of a fit names classes and columns, and says that there is no estimate.
_SAID_OTHERWISE = {
    *(FindingKind.FEW_OF_CLASS, FindingKind.DOES_NOT_CARRY_OVER, FindingKind.NO_IMPORTANCES)
}
# Quantiles of the scores of the majority, in steps of 0.1 percent.
_PERCENTS = np.linspace(0.0, 100.0, 1001)


@dataclass(frozen=True)
class AutoMethod(Method[RareClassifier]):
    """Kernels, trees and linear models, combined; see `rareclass.fit.method.Method`.

    What is chosen are members: a training after the first learns only those that had weight.
    """

    name: ClassVar[str] = "auto"
    parameter: ClassVar[str] = "combination"
    reads_types: ClassVar[bool] = True
    may_be_stopped: ClassVar[bool] = True
    cross_fits: ClassVar[bool] = True

    effort: str = "standard"
    seconds: float | None = None  # a limit for all trainings together
    objective: str = "average_precision"
    members: tuple[str, ...] = ("auto",)
    # Of a training before this one: members without weight, as its leaderboard has them, and those
    # that the time limit left out.
    also_tried: tuple[LeaderboardRow, ...] = ()
    without_time: tuple[str, ...] = ()

    def outlook(self, size: TableSize, terms: Terms) -> str:
        """Return the plan, and how to stop it."""
        members = make_members(self.members, self.effort)
        shape = Size(size.n_rows, size.n_rare, round(size.n_columns))
        plan = make_plan(
            self.effort,
            members,
            shape,
            folds_of(self._cv(terms), size.n_rows, size.n_rare, False).n_folds,
            threads_for(size.n_rows, None),
            self._limit(terms),
        )
        return f"Plan: {plan.line}. Ctrl-C keeps the members trained so far."

    def _cv(self, terms: Terms) -> str | int:
        return "auto" if terms.folds == FOLDS else max(terms.folds, 2)

    def _limit(self, terms: Terms) -> float | None:
        """Return the seconds of one training, where there is a limit."""
        return None if self.seconds is None else max(terms.share * self.seconds, _LEAST_SECONDS)

    def fit(self, rows: EncodedRows, terms: Terms, notes: list[str]) -> RareClassifier:
        """Fit as planned, within its share of a time limit."""
        members = [
            member.within_memory(terms.memory) for member in make_members(self.members, self.effort)
        ]
        model = RareClassifier(
            effort=self.effort,
            time_budget=self._limit(terms),
            objective=self.objective,
            members=members,
            cv=self._cv(terms),
            random_state=terms.seed,
            pos_label=1,
        )
        model._keeps_at_interrupt = True
        if rows.which is not None:  # codes from 1 on; a part of the rows may lack some
            rows = rows._replace(y=(rows.which + 1).astype(np.int16))
            model.set_params(pos_label=[k for k in np.unique(rows.y).tolist() if k])
        with warnings_as(notes, _say):
            # The file names members, and holds what they learned.
            rows.fit(model, groups=rows.groups, time=rows.time)
            return model.set_params(members=list(self.members))

    def as_learned(self, model: RareClassifier, columns: Sequence[Column]) -> list[Column]:
        """Return columns with what the model decided of identifiers among them."""
        learned = {column.name: column for column in model.columns_}
        return [learned.get(column.name, column) for column in columns]

    def cross_fitted(self, model: RareClassifier, rows: EncodedRows) -> ScoredRows:
        """Held-out scores; they stand for the rows held out, copies and thinned ones included."""
        held_out = model.held_out_
        weight = held_out.get("weight")
        y, scores, row = held_out["rare"].astype(np.int16), held_out["score"], held_out["row"]
        classes = None
        if rows.which is not None and model.calibration_ is not None:
            shares = held_out.get("class_probability", np.ones((len(y), 1)))
            n_classes = int(rows.which.max()) + 1
            probability = class_probability(model, model.calibration_, scores, shares, n_classes)
            number = np.array(class_codes(model)) - 1
            which = number[held_out.get("which", np.where(y == 1, 0, -1))]
            classes = RareClassScores(np.where(y == 1, which, -1).astype(np.int16), probability)
        return ScoredRows(y, scores, weight, row, classes)

    def scored_classes(
        self, model: RareClassifier, encoder: Any, rows: Any
    ) -> RareClassScores | None:
        """Return the classes of new rows and the probability of each."""
        if rows.which is None or model.calibration_ is None:
            return None
        n_classes = len(rows.target.rare_labels)
        probability = []
        for frame in frames_of(rows.rows):
            scored = model.score_and_classes(encoder.transform(frame))
            probability.append(class_probability(model, model.calibration_, *scored, n_classes))
        return RareClassScores(rows.which, np.concatenate(probability))

    def as_chosen(self, model: RareClassifier) -> "AutoMethod":
        """The method with the members that have weight."""
        chosen = tuple(dict.fromkeys(member.name for member in model.members_))
        others: dict[str, LeaderboardRow] = {}
        for row in _board(model):
            if row.member not in chosen:
                others.setdefault(row.member, row)
        return replace(
            self,
            members=chosen,
            also_tried=tuple(others.values()),
            without_time=tuple(model.without_time_),
        )

    def is_whole(self, model: RareClassifier) -> bool:
        """Return whether every named member was trained."""
        return set(model.leaderboard_["member"].tolist()) >= set(self.members)

    def facts(
        self, model: RareClassifier, terms: Terms, chosen: Method[RareClassifier]
    ) -> CombinationFacts:
        """Return leaderboard, importances, time, and members that were left out."""
        assert isinstance(chosen, AutoMethod)
        columns = zip(model.columns_, model.feature_importances_, strict=True)
        return CombinationFacts(
            objective=self.objective,
            plan=model.plan_.extent,
            effort=self.effort,
            time_budget=self.seconds,
            leaderboard=tuple(_board(model)),
            without_time=tuple(dict.fromkeys([*chosen.without_time, *model.without_time_])),
            interrupted=model.interrupted_,
            importances={
                column.name: float(loss)
                for column, loss in columns
                if column.is_used and np.isfinite(loss)
            },
            also_tried=chosen.also_tried,
        )

    def majority_quantiles(self, model: RareClassifier) -> list[float]:
        """Return scores that 0 to 100 percent of the held-out majority rows are below.

        Scores are held-out false-positive rates, so that they say it themselves, between the
        lowest and the highest.
        """
        rates = -model.scale_.log_rates / np.log(10.0)
        with np.errstate(divide="ignore"):
            scores = -np.log10(1.0 - _PERCENTS / 100.0)
        return np.clip(scores, rates[0], rates[-1]).tolist()

    def as_stored(self, model: RareClassifier) -> CombinedRanking:
        """Return what scores and explains rows: neither settings nor scores of training rows."""
        return CombinedRanking.of(model)


def method_for(file: TableFile | SvmlightFile, method: Method) -> Method:
    """Return the method that learns from this file: auto stands for rankrc where rows are sparse.

    Raises `InputError` where auto was told more, which rankrc has no use for.
    """
    if not isinstance(file, SvmlightFile) or not isinstance(method, AutoMethod):
        return method
    if method != AutoMethod():
        raise ErrorKind.UNSUPPORTED.error(
            f"{file.path} is an svmlight file, which {setting('method', 'auto')} does not learn "
            "from: "
            f"{RankRCMethod.name} does, and has no {setting('seconds')}, {setting('objective')} "
            f"and {setting('members')}.",
            "Leave them out, or give a table with named columns.",
        )
    return RankRCMethod()


def check_members(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return members by their own names: a hyphen may stand for a space.

    Raises `InputError` where there is no such member, or its package is not installed.
    """
    known = [*PORTFOLIOS, *MEMBERS]
    named = []
    for name in names:
        plain = name if name in known else name.replace("-", " ").lower()
        if plain not in known:
            raise unknown_name(f"{setting('members')}: there is no member {name!r}.", plain, known)
        named.append(plain)
    make_members(named)
    return tuple(named)


def check_objective(name: str) -> str:
    """Return the name of an objective.

    Raises `InputError` where there is none of that name.
    """
    try:
        as_objective(name)
    except ValueError:
        known = [*OBJECTIVES, "precision_at=100"]
        shown, *others = (each.replace("_", "-") for each in (name, *known))
        message = f"{setting('objective')}: there is none called {shown!r}."
        raise unknown_name(message, shown, others) from None
    return name


def _board(model: RareClassifier) -> list[LeaderboardRow]:
    """Return the leaderboard, a row a member and setting."""
    columns = [model.leaderboard_[each.name].tolist() for each in fields(LeaderboardRow)]
    return [LeaderboardRow(*row) for row in zip(*columns, strict=True)]


def _say(finding: Finding) -> str | None:
    """The findings of the training in the words of the command line."""
    values = finding.values
    if finding.kind == FindingKind.LABEL_LEAK:
        column = values["column"]
        return (
            f"column {column!r} alone ranks the rows almost perfectly. If it is only known after "
            f"the label, the estimate is wrong: give {setting('drop', str(column))}."
        )
    if finding.kind == FindingKind.HOLDS_NEARBY:
        columns = ", ".join(values["columns"])
        return (
            f"rare rows with one value of {columns} stand close together in the table, and predict "
            "distant rows much less well. If the rows are in time order, give "
            f"{setting('time', 'COLUMN')}, so that model and estimate allow for it."
        )
    if finding.kind == FindingKind.LEARNED_BY_VALUE:
        columns = values["columns"]
        return (
            f"the model learns each value of {', '.join(columns)} separately. If new rows have "
            f"other values, the estimate is too good: give {setting('groups', columns[0])} for an "
            "estimate on new values."
        )
    if finding.kind == FindingKind.TIME_LIMIT:
        return (
            f"{setting('seconds')} cut the plan to {counted(values['members'], 'member')} and "
            f"{values['rows']:,} rows: the model depends on the speed of this machine."
        )
    if finding.kind in _SAID_OTHERWISE:
        return ""
    return None
