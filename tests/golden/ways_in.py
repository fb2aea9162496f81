"""The one place where the golden tests name modules of the library: these may move.

Beside them is what both the script and the tests do with a checkpoint, by numpy and JSON alone: a
file is compared as it lies on the disk, not as today's library reads it.
"""

import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner, Result

from rareclass import __version__
from rareclass.cli.app import app
from rareclass.verbs.evaluate import evaluate_file
from rareclass.verbs.model import open_model
from rareclass.verbs.score import score_file
from rareclass.verbs.stream.log import CLOCK_COLUMNS, read_log, read_scores

__all__ = [
    "CASES",
    "HERE",
    "__version__",
    "evaluate_file",
    "newest_checkpoint",
    "open_model",
    "pack",
    "read_checkpoint",
    "relocate",
    "run",
    "score_file",
    "tables_beside",
    "unpack",
    "without_compression",
]

HERE = Path(__file__).parent
CASES = "cases.json"
_PACKED = ("models", "streams")
_ARCHIVE = ".tar.xz"
_LARGE = 1 << 20
_JSON = "json"


def run(*words: object, stdin: bytes | None = None) -> Result:
    """Run the command line in this process; it must go well."""
    result = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    assert result.exit_code == 0, result.output
    return result


def newest_checkpoint(folder: Path) -> Path:
    """Return the checkpoint of most rows in a stream's folder."""
    return max(folder.glob("checkpoint-*.npz"))


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return all that a checkpoint holds: its JSON, and its arrays by name."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return {"json": json.loads(arrays.pop(_JSON).tobytes()), "arrays": arrays}


def relocate(path: Path, source: str) -> None:
    """Write another source into a checkpoint, which holds the whole path of the file it reads."""
    held = read_checkpoint(path)
    if held["json"]["state"]["options"]["source"] == "-":
        return
    held["json"]["state"]["options"]["source"] = source
    text = json.dumps(held["json"]).encode()
    np.savez(path, **held["arrays"], **{_JSON: np.frombuffer(text, np.uint8)})


def tables_beside(folder: Path) -> dict[str, Any]:
    """Return the log of a stream, but for the clock's columns, and the scores it gave."""
    return {
        "log": read_log(folder).drop_columns(list(CLOCK_COLUMNS)).to_pydict(),
        "scores": read_scores(folder).to_pydict(),
    }


def without_compression(path: Path) -> None:
    """Write a zip file anew with its members as they are, not compressed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)


def pack(made: Path, folder: Path, is_plain: Callable[[Path], bool]) -> None:
    """Put the files of `made` into `folder`: the plain ones as they are, others into archives.

    Files of one kind are much alike: together they compress to a fraction of what they take one by
    one. Models of more than 1 MB get an archive of their own, and so do other models by the first
    word of their names. An archive says neither who packed it nor when.
    """
    archives: dict[str, list[Path]] = {}
    for path in sorted(path for path in made.rglob("*") if path.is_file()):
        where = path.relative_to(made)
        kind = where.parts[0]
        if kind not in _PACKED or is_plain(path):
            (folder / where).parent.mkdir(parents=True, exist_ok=True)
            (folder / where).write_bytes(path.read_bytes())
        else:
            is_large = kind == "models" and path.stat().st_size > _LARGE
            first_word = path.stem.partition("-")[0]
            name = path.stem if is_large else f"{first_word}-all" if kind == "models" else "all"
            archives.setdefault(f"{kind}-{name}", []).append(path)
    for name, paths in archives.items():
        with tarfile.open(folder / f"{name}{_ARCHIVE}", "w:xz", preset=9) as archive:
            for path in paths:
                inner = tarfile.TarInfo(path.relative_to(made).as_posix())
                inner.size = path.stat().st_size
                with path.open("rb") as file:
                    archive.addfile(inner, file)


def unpack(folder: Path, into: Path) -> None:
    """Undo `pack`."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name.endswith(_ARCHIVE):
            with tarfile.open(path) as archive:
                archive.extractall(into, filter="data")
        else:
            where = into / path.relative_to(folder)
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_bytes(path.read_bytes())
