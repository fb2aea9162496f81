"""All pages by name, and the files that they become."""

from pathlib import Path

from benchmarks import record
from benchmarks.pages import charts, decisions, few_labels, mibc, rankrc, speed, streams, tables
from benchmarks.pages.page import DECLARED, GROUPS, Page, Results, text_of

MODULES = (tables, rankrc, few_labels, streams, mibc, speed, decisions)  # they declare the pages
PAGES: dict[str, Page] = DECLARED
TITLE = "Benchmarks"
INTRODUCTION = (
    "Each benchmark of the project with its main figure. A page says what is compared, what was "
    "found, and the command that runs it again; the figures come from the JSON files in "
    "`benchmarks/results`, which hold every single run. [How good is it](../../how-good.md) has "
    "the figures that matter most in one table."
)


def there(results: Results) -> dict[str, Page]:
    """The pages that have a file to be made of, group by group."""
    return {
        name: page
        for group in GROUPS
        for name, page in PAGES.items()
        if page.group == group and results.has(page)
    }


def index_text(results: Results) -> str:
    """The page that leads to all others, with a line of finding for each."""
    pages = there(results)
    parts = [f"# {TITLE}", INTRODUCTION]
    for group, title in GROUPS.items():
        lines = [
            f"- [{page.title}]({name}.md). {results.finding(name, page).sentence}."
            for name, page in pages.items()
            if page.group == group
        ]
        parts += [f"## {title}", "\n".join(lines)] if lines else []
    entries = "\n".join(pages)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{entries}\n```")
    return "\n\n".join(parts) + "\n"


def page_text(name: str, results: Results, with_chart: bool = True) -> str:
    """One page in Markdown, its chart in it."""
    page = PAGES[name]
    result, finding = results.of(page), results.finding(name, page)
    if page.chart is None or not with_chart:
        return text_of(page, result, finding)
    drawn = charts.svg(page.chart(result), f"Chart: {finding.claim}")
    return text_of(page, result, finding, f"```{{raw}} html\n{drawn}\n```")


def write_pages(folder: Path, results: Results | None = None) -> list[str]:
    """Write the index and every page to a folder, which holds nothing else; return their names."""
    results = results or Results()
    texts = {"index": index_text(results)} | {
        name: page_text(name, results) for name in there(results)
    }
    for old in folder.glob("*.md"):
        if old.stem not in texts:
            old.unlink()
    for name, text in texts.items():
        path = folder / f"{name}.md"
        if not path.is_file() or path.read_text() != text:
            record.replace_file(path, text.encode())
    return list(texts)
