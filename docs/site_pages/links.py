"""Links of the built pages within the site: each leads to a page, and to a place on it."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """Links and places of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        for name in ("id", "name"):
            self.places.add(values.get(name) or "")
        link = values.get("href" if tag == "a" else "src" if tag == "img" else "")
        if link and not urlsplit(link).scheme and not link.startswith("//"):
            self.links.add(link)


def broken_links(folder: Path) -> list[str]:
    """Return the links within a folder of pages that lead nowhere, each with its page."""
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        pages[path] = _Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    found = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            known = pages.get(target)
            if not target.exists() or (place and known and place not in known.places):
                found.append(f"{path.relative_to(folder)}: {link}")
    return found


def check_links(app: Any, error: Exception | None) -> None:
    """Fail the build where a link within the site leads nowhere."""
    if error is None and app.builder.name == "html":
        found = broken_links(Path(app.outdir).resolve())
        if found:
            raise ValueError("Links that lead nowhere:\n" + "\n".join(found))
