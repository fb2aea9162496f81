"""The sections on parts of the rows: days or groups with worse results, and each rare class."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.errors import counted, setting
from rareclass.metrics import Interval, interval
from rareclass.metrics.intervals import chance_of_at_most, exact_interval, trials_of_share
from rareclass.metrics.scored_classes import group_codes
from rareclass.model.decisions import decisions_block
from rareclass.model.evaluate import class_decisions
from rareclass.model.facts import ScoredRows, class_thresholds_text
from rareclass.model.model import Model
from rareclass.report.drawing import BLUE, GREY, VERMILLION, WIDE, Axes, Display, share_axis
from rareclass.report.page import (
    NONE,
    PageBlock,
    Plots,
    Section,
    percent,
    percent_with_bounds,
    whole,
)
from rareclass.report.threshold_table import LEVEL
from rareclass.table_block import TableBlock

_MOST_LISTED = 15
_MOST_DRAWN = 120


@dataclass(frozen=True)
class Subgroup:
    """The rows of one day or group at the model's threshold."""

    name: str
    n_rows: int
    n_rare: int
    alerts: int
    hits: int
    rare_trials: float  # independent rows that the rare ones count as
    precision: Interval
    recall: Interval
    auc: Interval | None  # None without rows of both classes


@dataclass(frozen=True)
class Subgroups:
    """Days or groups of rows."""

    by: str  # the column
    # Days in their order; groups by the number of rare rows missed, the most first.
    parts: tuple[Subgroup, ...]
    n_parts: int  # of all of them; `parts` may be fewer
    n_tested: int  # of all that have a rare row
    recall: Interval  # of all rows together

    @property
    def worse(self) -> tuple[Subgroup, ...]:
        """Subgroups with a significantly lower recall than all rows, the lowest first.

        By the binomial test of their recall, in `rare_trials`, against that of all rows, at 5 %
        after Holm's correction over all subgroups that have a rare row.
        """
        tested = [each for each in self.parts if each.n_rare]
        share, trials = self.recall.value, np.array([each.rare_trials for each in tested])
        hits = trials * [each.recall.value for each in tested]
        chances = chance_of_at_most(hits, trials, share)
        order = np.argsort(chances, kind="stable")
        is_low = chances[order] * (self.n_tested - np.arange(len(order))) < 1.0 - LEVEL
        found = [tested[place] for place in order[np.logical_and.accumulate(is_low)]]
        return tuple(sorted(found, key=lambda each: each.recall.value))

    @classmethod
    def of(
        cls,
        by: str,
        names: Sequence[Any] | NDArray[Any],
        y: ArrayLike,
        scores: ArrayLike,
        threshold: float,
        *,
        most: int = 400,
        in_order: bool = False,
        groups: Any = None,
    ) -> Self:
        """Measure each subgroup; `names` has the subgroup of each of the n rows.

        Rows of equal group, such as those of a customer, count together in all intervals.
        At most `most` are kept: of those `in_order`, as days are, the last ones, else those that
        miss most rare rows. O(n log n) time.
        """
        rare, value = np.asarray(y) == 1, np.asarray(scores, float)
        found, codes = np.unique(np.asarray(names), return_inverse=True)
        called = value > threshold
        masks = None, rare, called, called & rare
        counts = [np.bincount(codes, each, len(found)) for each in masks]
        order = np.lexsort((np.arange(len(found)), -counts[0], counts[3] - counts[1]))
        chosen = np.arange(len(found))[-most:] if in_order else order[:most]
        by_part = np.argsort(codes, kind="stable")
        ends = np.append(0, np.cumsum(counts[0])).astype(np.int64)
        alike = None if groups is None else group_codes(groups, len(rare))[0]
        parts = []
        for k in chosen:
            n_rows, n_rare, alerts, hits = (int(each[k]) for each in counts)
            rows = by_part[ends[k] : ends[k + 1]]
            is_rare, is_called = rare[rows], called[rows]
            group = None if alike is None else np.unique(alike[rows], return_inverse=True)[1]
            of_rare = trials_of_share(is_called, is_rare, group=group)
            of_called = trials_of_share(is_rare, is_called, group=group)
            precision, recall = (exact_interval(*each, LEVEL) for each in (of_called, of_rare))
            auc = None
            if 0 < n_rare < n_rows:
                auc = interval("roc_auc", is_rare, value[rows], level=LEVEL, groups=group)
            numbers = n_rows, n_rare, alerts, hits, of_rare[1]
            parts.append(Subgroup(str(found[k]), *numbers, precision, recall, auc))
        recall = exact_interval(*trials_of_share(called, rare, group=alike), LEVEL)
        return cls(by, tuple(parts), len(found), int((counts[1] > 0).sum()), recall)


def subgroups_section(days: Subgroups | None, groups: Subgroups | None) -> Section:
    """Section with measures by day and by group."""
    blocks: list[PageBlock] = []
    leads = []
    for parts, what in ((days, "day"), (groups, "group")):
        if parts is None:
            continue
        n_worse = len(parts.worse)
        leads.append(
            f"Of {counted(parts.n_parts, what)} ({parts.by}), {n_worse or 'none'} "
            f"{'do' if n_worse > 1 else 'does'} worse than chance explains."
        )
        if what == "day":
            blocks.append(Plots((DaysDisplay(parts).on_page(),)))
        blocks.append(_table(parts, what))
    return Section("parts", "Where and when it does worse", " ".join(leads), tuple(blocks))


def _table(parts: Subgroups, what: str) -> TableBlock:
    worse = list(parts.worse)

    def rank(part: Subgroup) -> tuple[Any, ...]:
        n_missed = part.n_rare - part.hits
        return part not in worse, not part.n_rare, part.recall.value, -n_missed

    chosen = sorted(parts.parts, key=rank)[:_MOST_LISTED]
    columns = {what.capitalize(): [each.name + (" ▼" if each in worse else "") for each in chosen]}
    columns |= _counts(chosen) | {
        "Precision": [percent_with_bounds(each.precision) for each in chosen],
        "Recall": [percent_with_bounds(each.recall) for each in chosen],
        "AUC": [NONE if each.auc is None else each.auc.text() for each in chosen],
    }
    more = parts.n_parts - len(chosen)
    note = f"{more:,} more are not listed. " if more > 0 else ""
    return TableBlock.of(
        f"At the model's threshold by {what} ({parts.by}), the lowest recall first",
        columns,
        f"{note}▼: fewer of its rare rows are found than chance explains, by binomial tests "
        "at 5 % after Holm's correction.",
    )


def _counts(parts: Sequence[Subgroup]) -> dict[str, list[str]]:
    return {
        "Rows": [whole(each.n_rows) for each in parts],
        "Rare": [whole(each.n_rare) for each in parts],
        "Alerts": [whole(each.alerts) for each in parts],
    }


class DaysDisplay(Display):
    """Recall and alerts of the last 120 days."""

    key, title, size = "days", "Recall and alerts by day", WIDE
    legend: ClassVar[Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 1.15), "ncols": 3}

    def __init__(self, parts: Subgroups) -> None:
        self.days, self.recall = parts.parts[-_MOST_DRAWN:], parts.recall.value

    def _words(self) -> str:
        days = self.days
        return (
            f"{len(days)} days, from {days[0].name} to {days[-1].name}. The recall of all rows is "
            f"{percent(self.recall)}. Bars are 95 % intervals; a day with few rare rows says "
            "little."
        )

    def rows(self) -> TableBlock:
        """Return the counts of each day."""
        columns = {"Day": [each.name for each in self.days], **_counts(self.days)}
        columns["Found"] = [whole(each.hits) for each in self.days]
        columns["Recall"] = [percent_with_bounds(each.recall) for each in self.days]
        return TableBlock.of(self.title, columns)

    def _draw(self, ax: Axes, **style: Any) -> None:
        days, x = self.days, np.arange(len(self.days))
        some = np.array([each.n_rare > 0 for each in days])
        found = np.array([tuple(each.recall) for each in days])[some]
        value, low, high = found.T if len(found) else (np.empty(0),) * 3
        ax.errorbar(
            x[some], value, [value - low, high - value], color=BLUE, linestyle="", marker="o",
            markersize=4, elinewidth=1.0, label="recall of the day",
        )  # fmt: skip
        ax.axhline(self.recall, color=GREY, linestyle=":", label="recall of all days")
        most = max(max(each.alerts for each in days), 1)
        heights = [0.25 * each.alerts / most for each in days]
        label = f"alerts (the highest bar: {most:,})"
        ax.bar(x, heights, color=VERMILLION, alpha=0.35, width=0.8, label=label)
        share_axis(ax.yaxis, "recall", (0.0, 1.05))
        ticks = np.unique(np.linspace(0, len(days) - 1, min(len(days), 7)).astype(int))
        ax.set_xticks(ticks, [days[k].name for k in ticks], rotation=30, ha="right")


def classes_section(content: Model, rows: ScoredRows) -> Section:
    """Section with the measures of each class that has rows, and a table of called classes."""
    decision = content.decision
    _, *of_classes = decision.estimate(rows).blocks()
    called = decisions_block("Called each class", class_decisions(content, rows))
    note = (
        f"{class_thresholds_text(content.facts.class_thresholds)}. rareclass threshold "
        f"{setting('rare_class')} sets others."
    )
    title = "Each rare class against all other rows, with 95 % intervals"
    tables = (
        *(replace(block, title=title) for block in of_classes),
        replace(called, title="At the threshold of each class, with 95 % intervals", note=note),
        decision.confusion(rows).block(),
    )
    lead = f"The model tells {len(content.rare_classes)} rare classes apart."
    return Section("classes", "Which rare class", lead, tables)
