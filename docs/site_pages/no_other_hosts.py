"""The pages load nothing from other hosts: no script, style, font or image."""

import re
from pathlib import Path
from typing import Any

_LOADED = re.compile(
    r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=[\"'](?:https?:)?//[^>]*>"
    r"|<link\b(?![^>]*rel=[\"'](?:canonical|author|license))[^>]*href=[\"'](?:https?:)?//[^>]*>"
)
_STYLE = re.compile(r"(?:url\(\s*|@import\s+)[\"']?(?:https?:)?//[^)\"']*")


def loaded_from_elsewhere(folder: Path) -> list[str]:
    """Return what the pages and styles in a folder load from other hosts."""
    found = []
    for pattern, wanted in (("*.html", _LOADED), ("*.css", _STYLE)):
        for path in sorted(folder.rglob(pattern)):
            found += [f"{path.name}: {each[0]}" for each in wanted.finditer(path.read_text())]
    return found


def check_pages(app: Any, error: Exception | None) -> None:
    """Fail the build where a page would ask another host for anything."""
    if error is None and app.builder.name == "html":
        found = loaded_from_elsewhere(Path(app.outdir))
        if found:
            raise ValueError("The pages load from other hosts:\n" + "\n".join(found))
