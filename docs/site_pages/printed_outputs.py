"""Outputs of the commands on the tutorial and the how-to pages, printed by the commands themselves.

`python -m docs.site_pages.printed_outputs [PAGE ...]` runs every command of the `console` blocks
and writes what it printed below it. Commands of a how-to page run in a copy of the folder that
`rareclass demo` leaves, those of the tutorial in an empty folder. `<!-- lines: 4, 2 -->` before a
block keeps the first four and the last two lines of each output.
`tests/docs/test_printed_outputs.py` compares the pages with fresh outputs.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1]
CUT = "[...]"
_BLOCK = re.compile(
    r"(?P<head>(?:^<!-- lines: (?P<first>\d+), (?P<last>\d+) -->\n\n?)?^```console\n)"
    r"(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_RAW = re.compile(r"\s*(\d[\d,.]*%?|<0\.1%)")


@dataclass(frozen=True)
class Shown:
    """Command of a page, as it is written, with the output that stands below it."""

    command: str
    output: tuple[str, ...]

    def text(self) -> str:
        """Lines of the block."""
        return "\n".join([*f"$ {self.command}".split("\n"), *self.output])


def pages() -> list[Path]:
    """Return the pages whose commands are run."""
    candidates = [DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md"))]
    return [page for page in candidates if _BLOCK.search(page.read_text(encoding="utf-8"))]


def commands_of(body: str) -> list[Shown]:
    """Return the commands of a block, each with its output."""
    found: list[tuple[list[str], list[str]]] = []
    goes_on = False
    for line in body.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            found.append(([line.removeprefix("$ ")], []))
        elif goes_on:
            found[-1][0].append(line)
        elif found:
            found[-1][1].append(line)
        goes_on = (line.startswith("$ ") or goes_on) and line.endswith("\\")
    return [Shown("\n".join(command), tuple(output)) for command, output in found]


def shown_on(page: Path) -> list[Shown]:
    """Return all commands of a page, in order."""
    bodies = [block["body"] for block in _BLOCK.finditer(page.read_text(encoding="utf-8"))]
    return [each for body in bodies for each in commands_of(body)]


class Terminal:
    """Runs commands one after the other in a folder, 80 columns wide."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder.parent / "programs"
        programs.mkdir(exist_ok=True)
        program = programs / "rareclass"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rareclass "$@"\n')
        program.chmod(0o755)
        path = os.pathsep.join([str(programs), os.environ.get("PATH", "")])
        source = str(DOCS.parent / "src")
        self.variables = os.environ | {"PATH": path, "COLUMNS": "80", "PYTHONPATH": source}

    def run(self, command: str) -> tuple[int, list[str]]:
        """Return the exit code and the lines that a command prints."""
        if command.startswith("cd "):
            self.folder /= command.removeprefix("cd ").strip()
            return 0, []
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        lines = [line.rstrip() for line in done.stdout.rstrip().split("\n")]
        return done.returncode, lines if any(lines) else []


def made_demo(folder: Path) -> Path:
    """Run `rareclass demo` in a folder; return the folder of its files."""
    code, lines = Terminal(folder).run("rareclass demo")
    if code:
        raise RuntimeError("\n".join(lines))
    return folder / "rareclass-demo"


def start_folder(page: Path, workplace: Path, demo: Path | None) -> Path:
    """Return the folder in which the commands of a page begin."""
    folder = workplace / page.stem
    if demo is not None:
        shutil.copytree(demo, folder)
    else:
        folder.mkdir()
    return folder


def shortened(lines: list[str], first: int, last: int) -> list[str]:
    """Return the first and the last lines, with a mark between them."""
    if len(lines) <= first + last + 1:
        return lines
    return [*lines[:first], CUT, *(lines[-last:] if last else [])]


def fresh_text(page: Path, terminal: Terminal) -> str:
    """Return the page with the outputs of now."""

    def block(found: re.Match[str]) -> str:
        parts = []
        for shown in commands_of(found["body"]):
            code, lines = terminal.run(shown.command)
            if code not in (0, 3):  # 3: monitor --strict has found something
                raise RuntimeError(f"{page.name}: {shown.command} ended with {code}: {lines}")
            if found["first"]:
                lines = shortened(lines, int(found["first"]), int(found["last"]))
            parts.append(Shown(shown.command, tuple(lines)).text())
        return found["head"] + "\n".join(parts) + "\n```"

    return _BLOCK.sub(block, page.read_text(encoding="utf-8"))


def labels(lines: Iterable[str]) -> set[str]:
    """Return the words with which lines begin, up to the first number: how an output is built."""
    found = set()
    for line in lines:
        words = _RAW.split(line, maxsplit=1)[0].split("  ")[0].split(":")[0].strip()
        if len(words) > 2 and line == line.lstrip():
            found.add(words)
    return found


def likeness(old: Iterable[str], new: Iterable[str]) -> float:
    """Return the share of labels that two outputs have in common, 1 for those without any."""
    one, other = labels(old), labels(new)
    return len(one & other) / len(one | other) if one | other else 1.0


def write_pages(chosen: Iterable[Path], workplace: Path) -> Iterator[Path]:
    """Write pages anew, one after the other."""
    demo: Path | None = None
    for page in chosen:
        is_tutorial = page.stem == "tutorial"
        if demo is None and not is_tutorial:
            demo = made_demo(workplace)
        folder = start_folder(page, workplace, None if is_tutorial else demo)
        page.write_text(fresh_text(page, Terminal(folder)), encoding="utf-8")
        yield page


if __name__ == "__main__":
    wanted = set(sys.argv[1:])
    listed = [page for page in pages() if not wanted or page.stem in wanted]
    with tempfile.TemporaryDirectory() as place:
        for written in write_pages(listed, Path(place)):
            print(written.relative_to(DOCS))
