"""Writes docs/licences.md: what the package needs, and under which licences.

`python -m docs.site_pages.licences` reads what the installed distributions say of themselves:
names, versions, licences and needs. Run it in the environment of requirements.lock.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.markdown import table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/licences.md"
OPENING = """# Licences of dependencies

For whoever must know under which licences rareclass and its dependencies can be used. rareclass has
the BSD-3-Clause licence. Its wheel contains none of the packages below; pip installs each from its
own project. A binary wheel may contain further libraries (a BLAS, libgfortran, libpq), which that
wheel's own licence files name.

`python -m docs.site_pages.licences` writes this page from the metadata of the distributions that
`requirements.lock` installs on Linux.
"""
EXTRAS = ("cli", "dask", "sql", "serve", "s3", "onnx", "bench")
COPYLEFT = re.compile(r"\b(A?GPL|LGPL|GNU|MPL|Mozilla|EPL|CDDL|EUPL|copyleft)", re.IGNORECASE)
# Where a distribution says nothing but the whole text of a licence, its first line names it.
_LONGEST = 90


def declared() -> dict[str, list[Requirement]]:
    """What pyproject.toml asks for: its needs under "", and what each extra adds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: [Requirement(line) for line in lines] for extra, lines in asked.items()}


def needs(name: str, extras: Iterable[str] = ()) -> Iterator[Requirement]:
    """What an installed distribution asks for here, with these extras."""
    chosen = ["", *extras]
    for line in metadata.requires(name) or ():
        asked = Requirement(line)
        if asked.marker is None or any(asked.marker.evaluate({"extra": extra}) for extra in chosen):
            yield asked


def closure(asked: Iterable[Requirement]) -> tuple[dict[str, str], set[str]]:
    """Every distribution that is reached, with its version; and names that are not installed."""
    found: dict[str, str] = {}
    missing: set[str] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = list(asked)
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if (name, frozenset(one.extras)) in seen:
            continue
        seen.add((name, frozenset(one.extras)))
        if name == "rareclass":
            waiting.extend(need for extra in one.extras for need in declared()[extra])
            continue
        if one.marker is not None and not one.marker.evaluate({"extra": ""}):
            continue
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.add(name)
            continue
        waiting.extend(needs(name, one.extras))
    return found, missing


def licence(name: str) -> str:
    """The licence a distribution states: an SPDX expression, a line, or its classifiers."""
    about: Any = metadata.metadata(name)
    if expression := about.get("License-Expression"):
        return str(expression)
    classed = [
        line.rsplit(" :: ", 1)[-1]
        for line in about.get_all("Classifier") or ()
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    said = str(about.get("License") or "").strip()
    first = said.splitlines()[0].strip() if said else ""
    if first and len(said) <= _LONGEST:
        return first
    return ", ".join(classed) or first[:_LONGEST] or _of_a_file(name) or "not stated"


def _of_a_file(name: str) -> str:
    """The first line of its licence file, where that names the licence."""
    for path in metadata.files(name) or ():
        if path.stem.upper() in ("LICENSE", "LICENCE", "COPYING") and Path(path.locate()).is_file():
            lines = path.read_text(encoding="utf-8").strip().splitlines()
            return f"{lines[0].strip()} (its {path.name})" if lines else ""
    return ""


def _section(title: str, found: dict[str, str], already: set[str], missing: set[str]) -> str:
    new = sorted(set(found) - already)
    body = [f"## {title}", ""]
    if new:
        body.append(table(["distribution", "version", "licence"], _rows(new, found)))
    else:
        body.append("Nothing beyond the above." if not missing else "")
    if missing:
        body += [
            "",
            f"Not in `requirements.lock`, and not looked at: {', '.join(sorted(missing))}.",
        ]
    return "\n".join(body).replace("\n\n\n", "\n\n")


def _rows(names: Iterable[str], found: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    return ((name, found[name], licence(name).replace("|", "/")) for name in names)


def page() -> str:
    """The page in Markdown."""
    sections = []
    already: set[str] = set()
    for extra in ("", *EXTRAS):
        found, missing = closure(declared()[extra])
        title = f"Added by `rareclass[{extra}]`" if extra else "`rareclass` alone"
        sections.append(_section(title, found, already, missing))
        already |= set(found)
    return "\n\n".join([OPENING.rstrip(), _copyleft(already), *sections]) + "\n"


def _copyleft(names: set[str]) -> str:
    """Which of these say that they are under a licence with conditions on changed copies."""
    held = [f"{name} ({licence(name)})" for name in sorted(names) if COPYLEFT.search(licence(name))]
    if not held:
        return "No dependency states a copyleft licence."
    return f"Dependencies that state a copyleft licence: {'; '.join(held)}."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE.relative_to(ROOT)}")
