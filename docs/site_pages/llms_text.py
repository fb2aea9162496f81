"""llms.txt: what the site has, for readers that take text alone; made of the pages themselves."""

import inspect
import re
from pathlib import Path

from .public_names import reference

_TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_INCLUDE = re.compile(r"^```\{include\} (\S+)\n(?::.*\n)*```$", re.MULTILINE)


def page_names(start: Path) -> list[str]:
    """Return the pages in the table of contents of a Markdown page, in their order."""
    names = []
    for body in _TOCTREE.findall(start.read_text()):
        lines = [line.strip() for line in body.splitlines()]
        entries = [line for line in lines if line and not line.startswith(":")]
        names += [entry.rpartition("<")[2].rstrip(">") for entry in entries]
    return names


def title_and_summary(page: Path) -> tuple[str, str]:
    """Return the heading of a Markdown page, and its first sentence."""
    title, summary = page.stem, ""
    for block in re.split(r"\n\s*\n", _FENCE.sub("", _with_includes(page))):
        if block.startswith("# "):
            title = block[2:].strip()
        elif re.match(r"[A-Za-z*\[]|`(?!``)", block) and not summary:
            summary = " ".join(block.split())
    summary = re.sub(r"\]\([^)]*\)", "", summary).replace("[", "").replace("`", "")
    return title, re.split(r"(?<=\.) ", summary)[0]


def markdown_pages(docs: Path) -> list[str]:
    """Return the written pages of the site by name, those below others behind them."""
    return [
        name
        for name in listed_pages(docs)
        if (docs / f"{name}.md").is_file() and not name.startswith("generated/")
    ]


def listed_pages(docs: Path, start: str = "index") -> list[str]:
    """Return all that the table of contents of a page leads to, but for generated pages' own."""
    names: list[str] = []
    for name in page_names(docs / f"{start}.md"):
        names.append(name)
        is_written = (docs / f"{name}.md").is_file() and not name.startswith("generated/")
        names += listed_pages(docs, name) if is_written else []
    return names


def write_llms_text(docs: Path, site: Path) -> None:
    """Write llms.txt to the site, and the Markdown that it leads to beside the pages."""
    title, summary = title_and_summary(docs / "index.md")
    lines = [f"# rareclass: {title}", "", f"> {summary}", "", "## Pages", ""]
    for name in markdown_pages(docs):
        page = docs / f"{name}.md"
        text = _with_includes(page)
        copy = site / f"{name}.md"
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)
        page_title, page_summary = title_and_summary(page)
        lines.append(f"- [{page_title}]({name}.md): {page_summary}")
    lines += ["", "## Reference", ""]
    commands = docs / "generated" / "commands.md"
    (site / "commands.md").write_text(commands.read_text())
    lines.append("- [Commands](commands.md): every verb with its options")
    lines.append(
        "- [Benchmarks](generated/benchmarks/index.html): main figures, each with its page"
    )
    lines += ["", "## Python", ""]
    for module_name, listed in reference().items():
        for name, value in listed:
            first = (inspect.getdoc(value) or "").partition("\n")[0]
            lines.append(
                f"- [{module_name}.{name}](generated/api/{module_name}.{name}.html): {first}"
            )
    (site / "llms.txt").write_text("\n".join(lines) + "\n")


def _with_includes(page: Path) -> str:
    """The text of a page, with the files that it includes in their places."""
    text = _INCLUDE.sub(lambda found: (page.parent / found[1]).read_text(), page.read_text())
    return re.sub(r"<!--/?figure[^>]*-->", "", text)
