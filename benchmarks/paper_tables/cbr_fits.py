"""Fits that are done, in one file a study, one fit a line: a run that was ended goes on from there.

AUC (Tables 3 and 5) and accuracy (4 and 6) come from the same fits, so either command leaves the
other nothing to do. Fits with a coarser grid or another scaling stay in the file beside the others.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import rareclass
from benchmarks import record
from benchmarks.paper_tables.cbr_protocol import Run

Fit = dict[str, Any]


class Fits:
    """The fits of one file.

    Parameters
    ----------
    name : str
        Of the benchmark.
    file : Path
        Written after every fit; need not be there.
    """

    def __init__(self, name: str, file: Path):
        self.name, self.file = name, file
        self.of: dict[tuple[Any, ...], Fit] = {}
        if file.is_file():
            for fit in json.loads(file.read_text())["fits"]:
                self.of[_key(fit)] = fit

    def missing(self, runs: list[Run]) -> list[Run]:
        """Those of the runs that are still to be done."""
        return [run for run in runs if _key(_about(run)) not in self.of]

    def found(self, runs: list[Run]) -> list[Fit]:
        """The fits of these runs, as far as they are done."""
        return [self.of[_key(_about(run))] for run in runs if _key(_about(run)) in self.of]

    def add(self, run: Run, figures: dict[str, Any]) -> None:
        """Keep a fit and write the file."""
        fit = _about(run) | figures | {"code": learners_code()}
        self.of[_key(fit)] = fit
        head = json.dumps({"benchmark": self.name, **record.environment()}, indent=1)[:-2]
        lines = ",\n".join(
            "  " + json.dumps(self.of[key], default=record.plain) for key in sorted(self.of)
        )
        record.replace_file(self.file, f'{head},\n "fits": [\n{lines}\n ]\n}}\n'.encode())


@cache
def learners_code() -> str:
    """Tells whether the learners have been changed since a fit was made."""
    digest = hashlib.sha256()
    for path in sorted((Path(rareclass.__file__).parent / "online").glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _about(run: Run) -> Fit:
    return {
        "set": run.set_name,
        "method": run.method,
        "run": run.number,
        "step": run.step,
        "scaling": run.scaling,
    }


def _key(fit: Fit) -> tuple[Any, ...]:
    return fit["set"], fit["method"], fit["scaling"], fit["step"], fit["run"]
