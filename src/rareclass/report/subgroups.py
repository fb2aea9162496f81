"""The sections on parts of the rows: days or groups with worse results, and each rare class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.errors import counted, setting
from rareclass.metrics import Interval, interval
from rareclass.metrics.intervals import chance_of_at_most, exact_interval
from rareclass.model.decisions import RareDecision
from rareclass.model.evaluate import class_decisions
from rareclass.model.facts import RareClassScores, ScoredRows
from rareclass.model.model import Model
from rareclass.report.drawing import BLUE, GREY, VERMILLION, WIDE, plot_of, share_axis
from rareclass.report.page import (
    NONE,
    PageBlock,
    Plot,
    Plots,
    Section,
    percent,
    percent_with_bounds,
    whole,
)
from rareclass.report.threshold_table import LEVEL
from rareclass.table_block import TableBlock

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    precision: Interval
    recall: Interval
    auc: Interval | None  # None without rows of both classes

    @property
    def missed(self) -> int:
        """Rare rows at or below the threshold."""
        return self.n_rare - self.hits


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

        By the exact binomial test of their recall against that of all rows, at 5 % after Holm's
        correction over all subgroups that have a rare row.
        """
        tested = [each for each in self.parts if each.n_rare]
        chances = [
            float(chance_of_at_most(each.hits, each.n_rare, self.recall.value)) for each in tested
        ]
        found = []
        for rank, place in enumerate(np.argsort(chances, kind="stable")):
            if chances[place] * (self.n_tested - rank) >= 1.0 - LEVEL:
                break
            found.append(tested[place])
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
    ) -> Self:
        """Measure each subgroup; `names` has the subgroup of each of the n rows.

        At most `most` are kept: of those `in_order`, as days are, the last ones, else those that
        miss most rare rows. O(n log n) time.
        """
        rare, value = np.asarray(y) == 1, np.asarray(scores, float)
        found, codes = np.unique(np.asarray(names), return_inverse=True)
        called = value > threshold
        counts = [
            np.bincount(codes, each, len(found)) for each in (None, rare, called, called & rare)
        ]
        order = np.lexsort((np.arange(len(found)), -counts[0], counts[3] - counts[1]))
        chosen = np.arange(len(found))[-most:] if in_order else order[:most]
        by_part = np.argsort(codes, kind="stable")
        ends = np.append(0, np.cumsum(counts[0])).astype(np.int64)
        parts = []
        for k in chosen:
            n_rows, n_rare, alerts, hits = (int(each[k]) for each in counts)
            rows = by_part[ends[k] : ends[k + 1]]
            both = 0 < n_rare < n_rows
            auc = interval("roc_auc", rare[rows], value[rows], level=LEVEL) if both else None
            precision = exact_interval(hits, alerts, LEVEL)
            recall = exact_interval(hits, n_rare, LEVEL)
            parts.append(
                Subgroup(str(found[k]), n_rows, n_rare, alerts, hits, precision, recall, auc)
            )
        recall = exact_interval(int((called & rare).sum()), int(rare.sum()), LEVEL)
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
            blocks.append(Plots((_by_day(parts),)))
        blocks.append(_table(parts, what))
    return Section("parts", "Where and when it does worse", " ".join(leads), tuple(blocks))


def _table(parts: Subgroups, what: str) -> TableBlock:
    worse = list(parts.worse)
    chosen = sorted(
        parts.parts,
        key=lambda each: (each not in worse, not each.n_rare, each.recall.value, -each.missed),
    )[:_MOST_LISTED]
    name = what.capitalize()
    columns = {name: [each.name + (" ▼" if each in worse else "") for each in chosen]}
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
        f"{note}▼: fewer of its rare rows are found than chance explains, by exact binomial tests "
        "at 5 % after Holm's correction.",
    )


def _counts(parts: Sequence[Subgroup]) -> dict[str, list[str]]:
    return {
        "Rows": [whole(each.n_rows) for each in parts],
        "Rare": [whole(each.n_rare) for each in parts],
        "Alerts": [whole(each.alerts) for each in parts],
    }


def _by_day(parts: Subgroups) -> Plot:
    shown = parts.parts[-_MOST_DRAWN:]
    title = "Recall and alerts by day"
    description = (
        f"{len(shown)} days, from {shown[0].name} to {shown[-1].name}. The recall of all rows is "
        f"{percent(parts.recall.value)}. Bars are exact 95 % intervals; a day with few rare rows "
        "says little."
    )
    table = TableBlock.of(
        title,
        {"Day": [each.name for each in shown]}
        | _counts(shown)
        | {
            "Found": [whole(each.hits) for each in shown],
            "Recall": [percent_with_bounds(each.recall) for each in shown],
        },
    )

    def draw(ax: "Axes") -> None:
        x = np.arange(len(shown))
        some = np.array([each.n_rare > 0 for each in shown])
        found = np.array([tuple(each.recall) for each in shown])[some]
        value, low, high = found.T if len(found) else (np.empty(0),) * 3
        ax.errorbar(
            x[some], value, [value - low, high - value], color=BLUE, linestyle="", marker="o",
            markersize=4, elinewidth=1.0, label="recall of the day",
        )  # fmt: skip
        ax.axhline(parts.recall.value, color=GREY, linestyle=":", label="recall of all days")
        most = max(max(each.alerts for each in shown), 1)
        heights = [0.25 * each.alerts / most for each in shown]
        label = f"alerts (the highest bar: {most:,})"
        ax.bar(x, heights, color=VERMILLION, alpha=0.35, width=0.8, label=label)
        share_axis(ax.yaxis, "recall")
        ax.set_ylim(0.0, 1.05)
        ticks = np.unique(np.linspace(0, len(shown) - 1, min(len(shown), 7)).astype(int))
        ax.set_xticks(ticks, [shown[k].name for k in ticks], rotation=30, ha="right")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.15), ncols=3)

    return plot_of(draw, "days", title, description, table, WIDE, wide=True)


def classes_section(
    content: Model,
    scores: NDArray[np.float64],
    classes: RareClassScores,
    weight: NDArray[np.float64] | None,
) -> Section:
    """Section with the measures of each class that has rows, and a table of called classes."""
    decision = content.decision
    assert isinstance(decision, RareDecision)
    y = (classes.which >= 0).astype(np.int16)
    rows = ScoredRows(y, scores, weight, classes=classes)
    of_classes = decision.estimate(rows).classes
    called = {each.name: each for each in class_decisions(content, classes)}
    rules = content.facts.class_rules
    shares = {name: (own.precision, own.recall) for name, own in called.items()}

    def share(name: str, place: int) -> str:
        return percent_with_bounds(shares[name][place]) if name in shares else NONE

    names = [each.name for each in of_classes]
    columns = {
        "Class": names,
        "Rows": [whole(each.n_rows) for each in of_classes],
        "Average precision": [each.average_precision.text() for each in of_classes],
        "Threshold": [f"{rules[k].threshold:.3g}" if k in shares else NONE for k in names],
        "Precision": [share(name, 0) for name in names],
        "Recall": [share(name, 1) for name in names],
    }
    note = (
        "Each class against all other rows, with 95 % intervals. The threshold is of the "
        f"probability of the class; rareclass threshold {setting('rare_class')} sets another."
    )
    counts = decision.confusion(rows)
    tables = (
        TableBlock.of("Each rare class", columns, note),
        TableBlock(
            "Classes of rows (lines) and classes that they are called (columns)",
            ("Class", *counts.called_names),
            tuple(
                (name, *map(whole, of_name))
                for name, of_name in zip(counts.is_names, counts.counts, strict=True)
            ),
            "Rows are called a class by the thresholds above.",
        ),
    )
    lead = f"The model tells {len(content.rare_classes)} rare classes apart."
    return Section("classes", "Which rare class", lead, tables)
