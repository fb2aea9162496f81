"""One benchmark as one page: what is compared, what it shows, how to run it again."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks import record
from benchmarks.markdown import table

Result = dict[str, Any]
GROUPS = {
    "tables": "Accuracy on tables",
    "rankings": "Ranking methods and their papers",
    "labels": "A few labels",
    "streams": "Streams",
    "mibc": "MIBC: the majority as two moments",
    "speed": "Speed and size",
    "decisions": "Decisions and estimates",
    "reliability": "Reliability",
}
PACKAGES = ("numpy", "scikit-learn", "numba", "lightgbm", "xgboost-cpu", "catboost", "river")


class Finding(NamedTuple):
    """The main figure of a benchmark.

    Attributes
    ----------
    claim : str
        What was measured and on what, so that the text stays true whatever the figures are.
    ours : str
        The figure of this library.
    peer : str
        The figures that it stands beside; empty where there are none.
    """

    claim: str
    ours: str
    peer: str = ""

    @property
    def sentence(self) -> str:
        """All three parts, without the full stop."""
        return f"{self.claim}: {self.ours}" + (f"; {self.peer}" if self.peer else "")


class Page(NamedTuple):
    """A benchmark and how its page is made.

    Attributes
    ----------
    title : str
    group : str
        A key of `GROUPS`.
    command : str
        What follows ``python -m benchmarks.``, or a command of make.
    compared : str
        One sentence: what is compared.
    finding : callable
        The main figure, from the result.
    body : callable
        Notes and tables, from the result.
    chart : callable or None
        A matplotlib figure, from the result.
    sources : tuple of str
        Names of the files in benchmarks/results. The result is that of the file; of several files
        it is a dictionary of results by name.
    is_headline : bool
        Whether docs/how-good.md has the finding.
    """

    title: str
    group: str
    command: str
    compared: str
    finding: Callable[[Result], Finding]
    body: Callable[[Result], str]
    chart: Callable[[Result], Any] | None
    sources: tuple[str, ...]
    is_headline: bool

    @property
    def whole_command(self) -> str:
        """The command as it is typed."""
        is_make = self.command.startswith("make ")
        return self.command if is_make else f"python -m benchmarks.{self.command}"


DECLARED: dict[str, Page] = {}


def page(
    name: str,
    title: str,
    group: str,
    command: str,
    compared: str,
    body: Callable[[Result], str],
    chart: Callable[[Result], Any] | None = None,
    sources: tuple[str, ...] = (),
    is_headline: bool = False,
) -> Callable[[Callable[[Result], Finding]], Callable[[Result], Finding]]:
    """Declare a page; the function that follows gives its finding. One file: that of its name."""

    def declared(finding: Callable[[Result], Finding]) -> Callable[[Result], Finding]:
        about = (title, group, command, compared, finding, body, chart)
        DECLARED[name] = Page(*about, sources or (name,), is_headline)
        return finding

    return declared


class Results:
    """The files of a folder, each read once.

    Parameters
    ----------
    folder : Path, default=benchmarks/results
    """

    def __init__(self, folder: Path = record.RESULTS) -> None:
        self.folder = folder
        self._read: dict[str, Result] = {}
        self._findings: dict[str, Finding] = {}

    def __contains__(self, name: str) -> bool:
        return (self.folder / f"{name}.json").is_file()

    def __getitem__(self, name: str) -> Result:
        if name not in self._read:
            self._read[name] = json.loads((self.folder / f"{name}.json").read_text())
        return self._read[name]

    def has(self, page: Page) -> bool:
        """Say whether a page has a file to be made of."""
        return any(source in self for source in page.sources)

    def of(self, page: Page) -> Result:
        """Return the result that the page is made of."""
        if len(page.sources) > 1:
            return {source: self[source] for source in page.sources if source in self}
        return self[page.sources[0]]

    def finding(self, name: str, page: Page) -> Finding:
        """Return the main figure of a page."""
        if name not in self._findings:
            self._findings[name] = page.finding(self.of(page))
        return self._findings[name]


def listed(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> str:
    """Return a table of a row for each record: the heading of a column and its format.

    Examples
    --------
    >>> print(listed([{"n": 2000, "s": {"fit": 1.25}}], {"rows": "{n:,}", "fit s": "{s[fit]:.1f}"}))
    | rows | fit s |
    |---|---:|
    | 2,000 | 1.2 |
    """
    lines = [[cell.format_map(row) for cell in columns.values()] for row in rows]
    return table(list(columns), lines)


def chosen(cells: Iterable[Result], **about: Any) -> list[Result]:
    """Return the cells that have these values."""
    return [cell for cell in cells if all(cell.get(k) == v for k, v in about.items())]


def mean_of_each(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of every entry over rows that all have the same entries."""
    first, *others = rows
    return {name: fmean([first[name], *(row[name] for row in others)]) for name in first}


def quality(run: Mapping[str, Any]) -> str:
    """Return AUC and average precision in words."""
    return f"AUC {run['auc']:.3f}, average precision {run['average_precision']:.3f}"


def text_of(page: Page, result: Result, finding: Finding, chart: str = "") -> str:
    """Return the whole page in Markdown."""
    files = list(result.values()) if len(page.sources) > 1 else [result]
    parts = [
        f"# {page.title}",
        f"{page.compared} {finding.sentence}. To run it again: `{page.whole_command}`.",
        _made(files),
        chart,
        page.body(result),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _made(results: Sequence[Result]) -> str:
    """Days, machine and versions of results: a sentence for each machine; empty without a date."""
    days: dict[str, list[str]] = {}
    for each in results:
        if "date" in each:
            days.setdefault(_machine(each), []).append(each["date"][: len("2026-11-26")])
    return " ".join(
        f"Measured {' to '.join(sorted({min(found), max(found)}))}{machine}."
        for machine, found in days.items()
    )


def _machine(result: Result) -> str:
    """Cores and versions of packages, to follow a date."""
    cores = f", {result['cores']} cores" if result.get("cores") else ""
    packages = result.get("packages", {})
    named = [f"{name} {packages[name]}" for name in PACKAGES if packages.get(name)]
    versions = f"; {', '.join(named)}" if named else ""
    return f"{cores}{versions}"
