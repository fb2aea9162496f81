"""The sections of a comparison: measures with paired tests, curves together, who finds what."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rareclass.compare import Comparison
from rareclass.report.displays.curve_displays import (
    GainsDisplay,
    PrecisionRecallDisplay,
    RocDisplay,
    TableDisplay,
)
from rareclass.report.displays.look import CYCLE
from rareclass.report.page.document import Plot, Plots, Section, Table
from rareclass.report.page.svg import drawn
from rareclass.report.page.wording import NONE, percent, percent_with_bounds, whole
from rareclass.report.summaries.agreement import Agreement
from rareclass.report.summaries.threshold_table import ThresholdTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_P = 0.001
_RECALLS = (0.25, 0.5, 0.75, 0.9, 1.0)
_RATES = (0.001, 0.01, 0.1)


def measures_section(comparison: Comparison) -> Section:
    """Every measure: values with intervals, and the best beside the others."""
    rows = []
    for measure in comparison.measures:
        for standing in measure.standings:
            beside = standing.beside_the_best
            value = f"{standing.value:.3f} ({standing.low:.3f} to {standing.high:.3f})"
            if beside is None:
                rows.append((measure.words, standing.name, value, NONE, NONE, "best"))
                continue
            less = f"{beside.low:+.3f} to {beside.high:+.3f}"
            p = f"<{_LEAST_P}" if beside.p_adjusted < _LEAST_P else f"{beside.p_adjusted:.3f}"
            verdict = "worse" if beside.told_apart else "not told apart"
            rows.append((measure.words, standing.name, value, less, p, verdict))
    head = ("Measure", "Ranking", "Value (95 % interval)", "Less the best", "p", "Verdict")
    note = (
        "Paired tests on the same rows, at 5 % after Holm's correction over all pairs: rows that "
        "are hard for one ranking are hard for the other, so that a test tells more than intervals "
        "do."
    )
    table = Table("Measures, the best first", head, tuple(rows), (2, 3, 4), note)
    return Section(
        "measures", "Which is better", "By each measure, and whether chance explains it.", (table,)
    )


def curves_section(tables: Mapping[str, ThresholdTable]) -> Section:
    """Precision and recall, ROC and gains of all rankings."""
    named = " and ".join(tables)
    description = f"{named}. {_BANDS}"
    kinds: tuple[tuple[str, str, type[TableDisplay], Table], ...] = (
        ("precision-recall", "Precision and recall", PrecisionRecallDisplay, _at_recalls(tables)),
        (
            "roc",
            "ROC curve, its false-positive rate on a logarithmic axis",
            RocDisplay,
            _at_rates(tables),
        ),
        ("gains", "Gains: what the highest rows hold", GainsDisplay, budgets_table(tables)),
    )
    plots = tuple(
        Plot(
            f"{key}-plot",
            title,
            description,
            drawn(_together(tables, display), key, title, description),
            numbers,
        )
        for key, title, display, numbers in kinds
    )
    return Section("curves", "Curves", "The same rows, one line a ranking.", (Plots(plots),))


_BANDS = "Bands are exact 95 % intervals of each threshold by itself; they are not of differences."


def _together(
    tables: Mapping[str, ThresholdTable], display: type[TableDisplay]
) -> Callable[["Axes"], None]:
    def draw(ax: "Axes") -> None:
        for (name, table), (color, dashes) in zip(tables.items(), _looks(len(tables)), strict=True):
            display(table, name=name)._draw(ax, color=color, linestyle=dashes)
        handles, labels = ax.get_legend_handles_labels()
        seen = dict(zip(labels, handles, strict=True))
        ax.legend(list(seen.values()), list(seen))

    return draw


def _looks(n: int) -> Sequence[tuple[str, Any]]:
    return [CYCLE[k % len(CYCLE)] for k in range(n)]


def _at_recalls(tables: Mapping[str, ThresholdTable]) -> Table:
    rows = []
    for share in _RECALLS:
        for name, table in tables.items():
            k = table.at_recall(share)
            alerts = whole(float(table.alerts[k]))
            rows.append((percent(share), name, percent_with_bounds(table.precision.at(k)), alerts))
    head = ("Recall", "Ranking", "Precision", "Alerts")
    return Table("Precision where so many rare rows are found", head, tuple(rows), (0, 2, 3))


def _at_rates(tables: Mapping[str, ThresholdTable]) -> Table:
    rows = []
    for rate in _RATES:
        for name, table in tables.items():
            k = int((table.false_positive_rate.value <= rate).sum()) - 1
            rows.append((percent(rate), name, percent_with_bounds(table.recall.at(k))))
    head = ("False-positive rate, at most", "Ranking", "Recall")
    return Table("Recall at false-positive rates", head, tuple(rows), (0, 2))


def budgets_table(tables: Mapping[str, ThresholdTable]) -> Table:
    """What each finds within the same number of alerts."""
    first = next(iter(tables.values()))
    budgets = [k for k in (10, 30, 100, 300, 1000, 3000, 10_000) if k <= first.n_rows / 2]
    budgets = sorted({*budgets, round(first.n_rare)})
    rows = []
    for budget in budgets:
        for name, table in tables.items():
            k = table.at_alerts(budget)
            rows.append(
                (
                    f"{budget:,}",
                    name,
                    whole(float(table.alerts[k])),
                    percent_with_bounds(table.recall.at(k)),
                    percent_with_bounds(table.precision.at(k)),
                )
            )
    return Table(
        "Within the same number of alerts",
        ("At most", "Ranking", "Alerts", "Recall", "Precision"),
        tuple(rows),
        (0, 2, 3, 4),
        "Fewer alerts than the most where scores are tied.",
    )


def agreement_section(names: tuple[str, str], found: Sequence[Agreement], n_rare: int) -> Section:
    """Whether two rankings find the same rare rows."""
    a, b = names
    rows = tuple(
        (
            f"{each.k:,}",
            f"{each.shared:,}",
            f"{each.found_by_both:,}",
            f"{each.found_by_first:,}",
            f"{each.found_by_second:,}",
        )
        for each in found
    )
    head = (
        "Highest rows of each", "The same rows", "Rare, found by both", f"Only by {a}",
        f"Only by {b}",
    )  # fmt: skip
    told = next((each for each in found if each.k == n_rare), found[-1])
    together = told.found_by_both + told.found_by_first + told.found_by_second
    best = told.found_by_both + max(told.found_by_first, told.found_by_second)
    return Section(
        "agreement",
        "Do they find the same?",
        f"Among the {told.k:,} highest rows of each, the better one has {best:,} rare rows and "
        f"both together {together:,}.",
        (Table("What both find, and what only one does", head, rows, (0, 1, 2, 3, 4)),),
    )


def figures_of(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Average precision and AUC of each ranking: label, value and bounds."""
    found = []
    for measure in comparison.measures[:2]:
        for each in measure.standings:
            bounds = f"{each.low:.3f} to {each.high:.3f}"
            words = measure.words[0].upper() + measure.words[1:]
            found.append((f"{words}: {each.name}", f"{each.value:.3f}", bounds))
    return found
