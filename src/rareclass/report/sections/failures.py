"""The section on the rows that a model gets wrong, and those it is surest of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rareclass.report.page.document import Block, Section, Table, Text
from rareclass.report.page.wording import NONE, percent, whole

_MOST_CASES = 10


@dataclass(frozen=True)
class MissedRow:
    """A rare row that scores low."""

    row: int  # in the file, from 1
    score: float
    behind: float  # share of the rest that scores higher
    nearest: int | None  # the nearest rare row that was found
    differs: tuple[str, ...]  # columns in which it is least like that one
    cells: tuple[str, ...] = ()  # as asked for


@dataclass(frozen=True)
class TopRow:
    """A row that scores high."""

    row: int
    score: float
    probability: float | None
    is_rare: bool
    reasons: tuple[str, ...]
    case: str  # the rare case that it is most like
    cells: tuple[str, ...] = ()


def failures_section(
    missed: Sequence[MissedRow], n_missed: int, n_rare: int, names: Sequence[str]
) -> Section:
    """The worst misses; `names` are the columns whose cells are shown."""
    lead = f"{whole(n_missed)} of {whole(n_rare)} rare rows score too low to raise an alert."
    blocks: list[Block] = []
    if missed:
        rows = tuple(
            (
                f"{each.row:,}",
                f"{each.score:.4g}",
                percent(each.behind),
                NONE if each.nearest is None else f"{each.nearest:,}",
                ", ".join(each.differs) or NONE,
                *each.cells,
            )
            for each in missed
        )
        head = (
            "Row", "Score", "Of the rest score higher", "Nearest rare row found",
            "Differs most from it in", *names,
        )  # fmt: skip
        blocks.append(Table("The worst misses", head, rows, (0, 1, 2, 3)))
        blocks.append(
            Text(
                "Rows are counted from 1, as they stand in the file. Numbers are compared by their "
                "ranks among the rare rows, other cells by being the same or not."
            )
        )
    else:
        lead = "No rare row scores too low to raise an alert."
    return Section("failures", "Where it fails", lead, tuple(blocks))


def cases_section(
    cases: Mapping[int, tuple[int, float]], n_alerts: int, n_rare: int | None
) -> Section:
    """The rare rows of training that the highest rows are most like.

    `cases` has for each, by its number in the training file, how many of the highest rows it is
    the nearest to, and how far it is from these on average.
    """
    ranked = sorted(cases.items(), key=lambda each: (-each[1][0], each[1][1]))
    rows = tuple(
        (f"{case:,}", f"{count:,}", f"{distance:.3g}")
        for case, (count, distance) in ranked[:_MOST_CASES]
    )
    of_all = "" if n_rare is None else f" of the {n_rare:,} rare rows of training"
    more = len(ranked) - len(rows)
    return Section(
        "cases",
        "Cases behind the highest rows",
        f"The {n_alerts:,} highest rows are each most like one of {len(cases):,}{of_all}.",
        (
            Table(
                f"Rare rows of training that the {n_alerts:,} highest rows are most like",
                ("Row in the training file", "Nearest to", "Mean distance"),
                rows,
                (0, 1, 2),
                f"{more:,} more are not listed." if more > 0 else "",
            ),
        ),
    )


def top_section(top: Sequence[TopRow], names: Sequence[str], with_cases: bool) -> Section:
    """The highest rows, where they were asked for."""
    rows = []
    for each in top:
        cells = [f"{each.row:,}", f"{each.score:.4g}"]
        cells += [] if each.probability is None else [percent(each.probability)]
        cells += ["yes" if each.is_rare else "no", ", ".join(each.reasons) or NONE]
        cells += [each.case] if with_cases else []
        rows.append((*cells, *each.cells))
    head = ["Row", "Score"]
    head += ["Probability"] if top and top[0].probability is not None else []
    head += ["Rare", "Raised most by"] + (["Most like the rare case"] if with_cases else [])
    n_rare = sum(each.is_rare for each in top)
    return Section(
        "top",
        "The highest rows",
        f"{n_rare} of the {len(top)} highest rows {'is' if n_rare == 1 else 'are'} rare. "
        "Their cells are here because they were asked for: mind who gets this page.",
        (Table(f"The {len(top)} highest rows", (*head, *names), tuple(rows), (0, 1)),),
    )
