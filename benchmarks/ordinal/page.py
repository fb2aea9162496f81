"""The tables of the benchmark: methods by set, and one table for each set."""

import math
from typing import Any

from benchmarks.markdown import table
from benchmarks.ordinal import figures
from benchmarks.ordinal.figures import Line
from benchmarks.ordinal.methods import METHODS, OURS

Result = dict[str, Any]
SET_HEADER = [
    "method", "MAUC, percent", "against OrdinalRankRC (p)", "VUS", "times chance", "fit s",
    "choosing s", "rows that carry it", "chosen",
]  # fmt: skip


def page(result: Result) -> str:
    """All sets."""
    measured = result["sets"]
    parts = [
        "MAUC: the share of pairs of test rows of different levels that come in the right order. "
        "VUS: the share of tuples, one test row of each of the K levels, that do; "
        "by chance 1 / K!. "
        "Random splits, two thirds to learn from, a quarter of that to choose parameters on by "
        "MAUC (the same rows for every method), then a fit on all of it; on the generated set "
        "the paper's growing parts (section 5), with at most 2,000 landmarks but where a line says "
        "otherwise; lam is chosen from 2^-20 to 2^10, from 50 percent on from 2^-16 to 2^-10. "
        "One thread for all. Differences from "
        "OrdinalRankRC are paired; splits share rows, and the test allows for that (Nadeau and "
        f"Bengio). {verdict(result)}",
        table(*overview(result)),
        "Bold: significantly above OrdinalRankRC; in brackets: significantly below (p < "
        f"{figures.P:g}). \\*: on fewer splits, so only the paired "
        "difference below says how it compares. A line with - for a difference is not tested. "
        "Empty: not measured, or not run on so many rows (`benchmarks/ordinal/methods.py` has the "
        "limits).",
    ]
    for name, found in measured.items():
        for percent in percents_of(found):
            parts += [_about(name, found, percent), table(SET_HEADER, set_lines(found, percent))]
    return "\n\n".join(parts)


def verdict(result: Result) -> str:
    """How often a peer is above or below, in words; kernel rankers are no peers."""
    counts = {"above": 0, "below": 0, "level": 0}
    for found in result["sets"].values():
        for percent in percents_of(found):
            for line in lines_of(found, percent):
                is_peer = METHODS[line.method].carries != "landmarks"
                if line.against is not None and is_peer:
                    counts[line.against.verdict()] += 1
    return (
        f"Of {sum(counts.values())} comparisons with other methods, OrdinalRankRC is significantly "
        f"above in {counts['below']}, significantly below in {counts['above']}, level in "
        f"{counts['level']}."
    )


def overview(result: Result) -> tuple[list[str], list[list[str]]]:
    """Header and lines: MAUC of every method on every set and part."""
    columns = [
        (name, found, percent)
        for name, found in result["sets"].items()
        for percent in percents_of(found)
    ]
    cells = [{line.method: line for line in lines_of(found, pc)} for _, found, pc in columns]
    header = ["method", *(name + _percent(percent) for name, _, percent in columns)]
    names = [name for name in METHODS if any(name in column for column in cells)]
    return header, [
        [name, *(_cell(column.get(name), column.get(OURS)) for column in cells)] for name in names
    ]


def set_lines(found: Result, percent: float | None) -> list[list[str]]:
    """The lines of one set, as SET_HEADER names the columns; the best first."""
    made = sorted(lines_of(found, percent), key=lambda line: -line.mauc[0])
    orders = math.factorial(sum(n > 0 for n in found["levels"]))
    return [
        [
            line.method,
            _mauc(line),
            _against(line),
            "" if line.vus is None else f"{line.vus:.3g}",
            "" if line.vus is None else f"{orders * line.vus:,.3g}",
            f"{line.fit_seconds:.2f}",
            f"{line.choice_seconds:.1f}",
            "" if line.size is None else f"{line.size:,.0f} {METHODS[line.method].carries}",
            line.parameter,
        ]
        for line in made
    ]


def lines_of(found: Result, percent: float | None) -> list[Line]:
    """Figures of one set, or one part of it, in the order of the methods."""
    fits = [fit for fit in found["fits"] if fit.get("percent") == percent]
    fits.sort(key=lambda fit: list(METHODS).index(fit["method"]))
    first = fits[0]
    return figures.lines(fits, (first["rows"], first["test_rows"]))


def percents_of(found: Result) -> list[float | None]:
    """The parts that were measured: None for a set that is split at random."""
    return sorted({fit.get("percent") for fit in found["fits"]}, key=lambda p: p or 0.0)


def _about(name: str, found: Result, percent: float | None) -> str:
    fits = [fit for fit in found["fits"] if fit.get("percent") == percent]
    counts = found["levels"]
    splits = len({fit["split"] for fit in fits})
    fewer = [
        f"{line.method} on {line.splits} of them"
        for line in lines_of(found, percent)
        if line.splits < splits
    ]
    return (
        f"**{name}{_percent(percent)}**: {found['title']}, {sum(counts):,} rows, "
        f"{found['features']} features, {len(counts)} levels ({', '.join(f'{n:,}' for n in counts)}"
        f" rows); {fits[0]['rows']:,} to learn from, {fits[0]['test_rows']:,} for testing, "
        f"{splits} split{'s' if splits > 1 else ''}{' (' + ', '.join(fewer) + ')' if fewer else ''}"
        f". Measured {found['date']}; {_clock(fits)}."
    )


def _clock(fits: list[dict[str, Any]]) -> str:
    """A sentence on how seconds were counted and how busy the machine was."""
    loads = [fit["load"] for fit in fits if "load" in fit]
    if len(loads) < len(fits):
        return "seconds by the clock"
    return f"CPU seconds, {min(loads):.0f} to {max(loads):.0f} processes on the machine's 2 cores"


def _percent(percent: float | None) -> str:
    return "" if percent is None else f", {percent:g} %"


def _mauc(line: Line) -> str:
    value, error = line.mauc
    return f"{value:.2f}" if error is None else f"{value:.2f} ± {error:.2f}"


def _against(line: Line) -> str:
    if line.against is None:
        return "" if line.method == OURS else "-"
    return f"{line.against.difference:+.2f} ({line.against.p_cell})"


def _cell(line: Line | None, ours: Line | None) -> str:
    if line is None:
        return ""
    value = f"{line.mauc[0]:.1f}"
    if ours is not None and line.splits < ours.splits:
        value += "\\*"
    verdict = line.against.verdict() if line.against else "level"
    return {"above": f"**{value}**", "below": f"({value})", "level": value}[verdict]
