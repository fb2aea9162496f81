"""Put faults into the core, one at a time, and see whether its tests catch them: `make mutants`.

1. Take every place of the rooms where a fault can be put, and draw some, by a seed. What is drawn
   at a place does not depend on others: most verdicts outlive a change of the code.
2. Copy the package and its tests to a folder of their own; run each room's tests once without a
   fault: they must pass, and their time is the measure of a hang.
3. For each fault: write the module with it, run the room's tests until the first fails. A fault is
   caught when a test fails, or hangs. With ``--whole``, those that survived are tried again with
   the tests of whole estimators.
4. Write each verdict at once, so that a run that was stopped goes on where it was.

The process that runs tests is forked from one that has imported the libraries.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from mutants.changes import Change, changed, changes_of

ROOT = Path(__file__).parents[2]
ROOMS = ("ranking", "online", "moments", "hyperball", "metrics", "decide")
WHOLE_ROOM = "whole estimators"
WHOLE = ("tests/golden", "tests/verbs", "tests/estimators", "tests/test_contract.py")
# Imported before a process is forked off; the package itself is imported by each.
HEAVY = ("numpy", "scipy.optimize", "scipy.stats", "sklearn.utils.estimator_checks", "pandas",
         "numba", "pytest")  # fmt: skip
PASSED, SECONDS_AT_LEAST, TIMES_AS_LONG = 0, 60, 4


def main() -> int:
    """Judge what is asked for and print who survived."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="faults, of all rooms together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks/results/mutants.json")
    parser.add_argument("--whole", action="store_true", help="survivors again, by other tests")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after these")
    args = parser.parse_args()
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    end = time.monotonic() + 60 * args.minutes
    drawn = draw(args.count, args.seed)
    verdicts = read(args.json, args.seed)
    for module in HEAVY:
        import_module(module)
    with tempfile.TemporaryDirectory() as folder:
        house = House(Path(folder))
        for name, change in drawn.items():
            earlier = verdicts.get(name)
            if earlier and (earlier["caught"] or WHOLE_ROOM in earlier["tried"] or not args.whole):
                continue
            if time.monotonic() > end:
                break
            room = WHOLE_ROOM if earlier else change.path.split("/")[2]
            tried = [*(earlier["tried"] if earlier else []), room]
            verdicts[name] = {
                **change._asdict(),
                **house.judge(change, room),
                "tried": tried,
            }
            write(args.json, args.seed, verdicts)
            print(said(verdicts[name]), flush=True)
    told([verdicts[name] for name in drawn if name in verdicts], len(drawn))
    return 0


def draw(count: int, seed: int) -> dict[str, Change]:
    """Faults of all rooms by name, each place as likely as any other."""
    package = ROOT / "src" / "rareclass"
    paths = sorted(path for room in ROOMS for path in (package / room).rglob("*.py"))
    every, times = dict[str, Change](), Counter[str]()
    for change in (each for path in paths for each in changes_of(path, ROOT)):
        name = f"{change.path}: {change.before} -> {change.after}"
        times[name] += 1
        every[f"{name} #{times[name]}"] = change
    lot = {name: sha256(f"{seed}/{name}".encode()).digest() for name in every}
    return {name: every[name] for name in sorted(every, key=lot.__getitem__)[:count]}


class House:
    """A copy of the package and its tests, where faults are put."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.seconds = folder, dict[str, float]()
        for name in ("src", "tests", "benchmarks", "docs"):
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
            shutil.copy(ROOT / name, folder / name)
        # Of sparse data sets nothing is copied: tests find them as they do here.
        os.environ.setdefault("RARECLASS_DATA", str(ROOT.parent / "shared" / "data"))

    def judge(self, change: Change, room: str) -> dict[str, Any]:
        """Whether a room's tests catch a fault, and after how many seconds."""
        tests = WHOLE if room == WHOLE_ROOM else (f"tests/{room}", f"src/rareclass/{room}")
        if room not in self.seconds:
            self.seconds[room] = self._unharmed(tests)
        path = self.folder / change.path
        source = path.read_text()
        path.write_text(changed(source, change))
        start = time.monotonic()
        try:
            # What is compiled knows of changes in its own file only.
            code = self._run(tests, TIMES_AS_LONG * self.seconds[room], "_jit" in path.name)
        finally:
            path.write_text(source)
        return {
            "caught": code != PASSED,
            "hung": code == -signal.SIGKILL,
            "seconds": round(time.monotonic() - start, 1),
        }

    def _unharmed(self, tests: tuple[str, ...]) -> float:
        start = time.monotonic()
        if self._run(tests, float("inf"), False) != PASSED:
            end = (self.folder / "said.txt").read_text()[-3000:]
            raise SystemExit(
                f"{end}\n{chr(32).join(tests)} fail without a fault: nothing can be judged."
            )
        return max(SECONDS_AT_LEAST, time.monotonic() - start)

    def _run(self, tests: tuple[str, ...], limit: float, compiles_anew: bool) -> int:
        child = os.fork()
        if not child:
            try:
                self._test(tests, compiles_anew)
            finally:  # whatever happens, never on in the parent's place
                os._exit(1)
        end = time.monotonic() + limit
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.05)

    def _test(self, tests: tuple[str, ...], compiles_anew: bool) -> None:
        """In the process that was forked off: run tests, and end."""
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(self.folder)
        code = self.folder / ("compiled-anew" if compiles_anew else "compiled")
        if compiles_anew:
            shutil.rmtree(code, ignore_errors=True)
        import numba
        import pytest

        numba.config.CACHE_DIR = str(code)
        places = [str(self.folder / part) for part in ("src", "tests", "")]
        sys.path[:0], os.environ["PYTHONPATH"] = places, os.pathsep.join(places)
        sys.dont_write_bytecode = True
        with open(self.folder / "said.txt", "w") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))


def read(path: Path, seed: int) -> dict[str, Any]:
    """Verdicts of an earlier run with the same seed, by fault."""
    if not path.exists():
        return {}
    content = json.loads(path.read_text())
    if content["seed"] != seed:
        raise SystemExit(f"{path} is of seed {content['seed']}: give another --json.")
    return dict(content["verdicts"])


def write(path: Path, seed: int, verdicts: dict[str, Any]) -> None:
    """Keep what was found so far."""
    aside = path.with_suffix(".aside")
    aside.write_text(json.dumps({"seed": seed, "verdicts": verdicts}, indent=1) + "\n")
    aside.replace(path)


def said(verdict: dict[str, Any]) -> str:
    """A verdict on a line."""
    word = "caught" if verdict["caught"] else "SURVIVED"
    return (
        f"{word} after {verdict['seconds']:.0f} s: {verdict['path']}:{verdict['line']} "
        f"{verdict['before']} -> {verdict['after']}"
    )


def told(verdicts: list[dict[str, Any]], drawn: int) -> None:
    """Print the shares by room."""
    caught, every = Counter[str](), Counter[str]()
    for each in verdicts:
        room = each["path"].split("/")[2]
        every[room] += 1
        caught[room] += each["caught"]
    for room in ROOMS:
        print(f"{room}: {caught[room]} of {every[room]} caught")
    print(f"{caught.total()} of {every.total()} caught, {drawn} drawn")


if __name__ == "__main__":
    raise SystemExit(main())
