"""Put faults into the core, one at a time, and see whether its tests catch them: `make mutants`.

1. Take every place of the rooms where a fault can be put, and draw some, by a seed. What is drawn
   in a function does not depend on others, nor do the names of faults: most verdicts outlive a
   change of the code.
2. Copy the package and its tests to `build/mutants`; run each room's tests once without a fault:
   they must pass, their time is the measure of a hang, and what each calls is noted. What was
   noted stays good while no file changes, and so does what was compiled.
3. For each fault: write the module with it, run the room's tests until the first fails: those that
   call the function with the fault (`reach`). A fault is caught when a test fails, or hangs. With
   ``--again TESTS``, gaps are tried again with these tests: written since, or of users of the
   room. ``--rooms`` names the rooms to draw from, by default those of the core.
4. Write each verdict at once, so that a run that was stopped goes on where it was.
5. Tell what survived, with the reasons that `explained.toml` gives: a fault is `equivalent` where
   no answer differs with it, of `speed` where only time or memory do, a `choice` where another
   number was chosen that does as well. Others are gaps. ``--keep`` keeps counts and survivors.

The process that runs tests is forked from one that has imported the libraries.
"""

import argparse
import fcntl
import json
import os
import shutil
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from mutants import reach
from mutants.changes import Change, changed, changes_of, named

ROOT = Path(__file__).parents[2]
ROOMS = ("ranking", "online", "moments", "hyperball", "metrics", "decide")
# Rooms whose tests are in part those of what uses them, which run as well.
BESIDES = {
    "decide": ("tests/first_contact/test_i_numbers.py",),
    "encoding": (
        "tests/hunt/test_hunt_table.py",
        "tests/hunt/test_hunting.py",
        "tests/stream",
        "tests/fit/test_on_disk.py",
    ),
    "tables": (
        "tests/first_contact/test_c_dates.py",
        "tests/first_contact/test_d_spellings.py",
        "tests/first_contact/test_e_spellings.py",
    ),
    "ensemble": (),
    "model": ("tests/fit", "tests/cli/test_score.py", "tests/cli/test_rules.py", "tests/to_onnx"),
}
ALL_ROOMS = tuple(dict.fromkeys((*ROOMS, *BESIDES)))
AGAIN = "other tests"
# Imported before a process is forked off; the package itself is imported by each.
HEAVY = ("numpy", "scipy.optimize", "scipy.stats", "sklearn.utils.estimator_checks", "pandas",
         "numba", "pytest", "pyarrow.dataset", "trio")  # fmt: skip
KEPT = ROOT / "benchmarks/results/mutants.json"
COUNTS = ("faults", "first", "now")  # drawn, noticed by the first tests, noticed by any
EXPLAINED = Path(__file__).with_name("explained.toml")
KINDS = GAP, *_ = "gap", "equivalent", "speed", "choice"
PASSED, SECONDS_AT_LEAST, TIMES_AS_LONG = 0, 15, 4


def main() -> int:
    """Judge what is asked for and print who survived."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="faults, of all rooms together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", choices=ALL_ROOMS, default=ROOMS)
    parser.add_argument("--json", type=Path, help="verdicts (default: build/mutants-SEED.json)")
    parser.add_argument("--keep", action="store_true", help=f"counts and survivors into {KEPT}")
    parser.add_argument(
        "--again", nargs="+", default=(), help="tests that survivors are tried with"
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after these")
    args = parser.parse_args()
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    end = time.monotonic() + 60 * args.minutes
    args.json = args.json or ROOT / f"build/mutants-{args.seed}.json"
    verdicts = read(args.json, args.seed) or (survivors(args.seed) if args.again else {})
    gaps = {name for name, each in verdicts.items() if not each["caught"]} - explained().keys()
    drawn = draw(args.count, args.seed, args.rooms)
    due = {name: each for name, each in drawn.items() if name not in verdicts}
    if args.again:
        due = {name: each for name, each in faults(ALL_ROOMS).items() if name in gaps}
    for module in HEAVY:
        import_module(module)
    house = House(ROOT / "build" / "mutants", tuple(args.again))
    for name, change in due.items():
        earlier = verdicts.get(name)
        if time.monotonic() > end:
            break
        room = AGAIN if earlier else change.path.split("/")[2]
        tried = [*(earlier["tried"] if earlier else []), room]
        verdicts[name] = {**change._asdict(), **house.judge(change, room), "tried": tried}
        write(args.json, args.seed, verdicts)
        print(said(verdicts[name]), flush=True)
    told(verdicts, len(drawn))
    if args.keep:
        keep(args.seed, verdicts)
    return 0


def faults(rooms: Sequence[str] = ROOMS) -> dict[str, Change]:
    """Every fault of these rooms by name."""
    package = ROOT / "src" / "rareclass"
    paths = sorted(path for room in rooms for path in (package / room).rglob("*.py"))
    return named(each for path in paths for each in changes_of(path, ROOT))


def draw(count: int, seed: int, rooms: Sequence[str] = ROOMS) -> dict[str, Change]:
    """Faults of these rooms by name, each place as likely as any other."""
    every = faults(rooms)
    lot = {name: sha256(f"{seed}/{name}".encode()).digest() for name in every}
    return {name: every[name] for name in sorted(every, key=lot.__getitem__)[:count]}


class House:
    """A copy of the package and its tests, where faults are put."""

    def __init__(self, folder: Path, again: tuple[str, ...] = ()) -> None:
        self.folder, self.again = folder, again
        self.reach = dict[str, reach.Reach]()
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = (folder / "lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"Another run is in {folder}.") from None
        for name in ("src", "tests", "benchmarks", "docs"):
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
            shutil.copy(ROOT / name, folder / name)
        self.digest = sha256()
        for path in sorted([*(folder / "src").rglob("*"), *(folder / "tests").rglob("*")]):
            if path.is_file():
                self.digest.update(f"{path}\n".encode() + path.read_bytes())
        # Of sparse data sets nothing is copied: tests find them as they do here.
        os.environ.setdefault("RARECLASS_DATA", str(ROOT.parent / "shared" / "data"))

    def judge(self, change: Change, room: str) -> dict[str, Any]:
        """Whether a room's tests catch a fault, and after how many seconds."""
        own = (f"tests/{room}", f"src/rareclass/{room}", *BESIDES.get(room, ()))
        tests = self.again if room == AGAIN else own
        if room not in self.reach:
            self.reach[room] = self._unharmed(tests)
        found = self.reach[room]
        first, alone = found.order(change, self.folder)
        if alone and not first:
            return {"caught": False, "hung": False, "seconds": 0.0, "by": ""}
        if alone:
            tests = tuple(sorted({reach.file_of(test) for test in first}))
        path, by = self.folder / change.path, self.folder / "failed.txt"
        by.unlink(missing_ok=True)
        source, times = path.read_text(), path.stat()
        path.write_text(changed(source, change))
        start = time.monotonic()
        try:
            takes = found.takes(first if alone else list(found.seconds))
            limit = TIMES_AS_LONG * max(SECONDS_AT_LEAST, takes)
            code = self._run(tests, limit, reach.Nearest(first, alone, by))
        finally:
            path.write_text(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # its bytecode is good again
        return {
            "caught": code != PASSED,
            "hung": code == -signal.SIGKILL,
            "seconds": round(time.monotonic() - start, 1),
            "by": by.read_text() if by.exists() else "",
        }

    def _unharmed(self, tests: tuple[str, ...]) -> reach.Reach:
        digest = self.digest.copy()
        digest.update("\n".join(tests).encode())
        notes = self.folder / f"calls-{digest.hexdigest()[:16]}.json"
        plugin = reach.Notes(self.folder, notes)
        if not notes.exists() and self._run(tests, float("inf"), plugin) != PASSED:
            notes.unlink(missing_ok=True)
            end = (self.folder / "said.txt").read_text()[-3000:]
            raise SystemExit(f"{end}\n{tests} fail without a fault: nothing can be judged.")
        return reach.read(notes)

    def _run(self, tests: tuple[str, ...], limit: float, plugin: object) -> int:
        child = os.fork()
        if not child:
            try:
                self._test(tests, plugin)
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

    def _test(self, tests: tuple[str, ...], plugin: object) -> None:
        """In the process that was forked off: run tests, and end."""
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(self.folder)
        import numba
        import pytest

        # No compiled file has anything from another: one that was changed is compiled anew.
        numba.config.CACHE_DIR = str(self.folder / "compiled")
        places = [str(self.folder / part) for part in ("src", "tests", "")]
        sys.path[:0], os.environ["PYTHONPATH"] = places, os.pathsep.join(places)
        sys.pycache_prefix = str(self.folder / "bytecode")
        sys.dont_write_bytecode = not isinstance(plugin, reach.Notes)  # of no fault is any kept
        with open(self.folder / "said.txt", "w") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests], [plugin]))


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
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".aside")
    aside.write_text(json.dumps({"seed": seed, "verdicts": verdicts}, indent=1) + "\n")
    aside.replace(path)


def survivors(seed: int) -> dict[str, Any]:
    """Verdicts on the faults of a seed that are kept: those that no test caught."""
    kept = json.loads(KEPT.read_text())["seeds"].get(str(seed), {"survivors": {}})
    return {name: {**each, "caught": False} for name, each in kept["survivors"].items()}


def keep(seed: int, verdicts: dict[str, dict[str, Any]], path: Path = KEPT) -> None:
    """Put the counts by room and the survivors of a seed into the file of results.

    Where `verdicts` has only survivors that were kept, the counts change by those caught since.
    """
    content = json.loads(path.read_text())
    earlier = content["seeds"].get(str(seed), {"rooms": {}, "survivors": {}})
    rooms = earlier["rooms"] if verdicts.keys() == earlier["survivors"].keys() else {}
    is_new = not rooms
    for each in verdicts.values():
        counts = rooms.setdefault(each["path"].split("/")[2], dict.fromkeys(COUNTS, 0))
        counts["faults"] += is_new
        counts["first"] += is_new and each["caught"] and len(each["tried"]) == 1
        counts["now"] += each["caught"]
    fields, kinds = (
        (*Change._fields, "tried"),
        {name: kind for name, (kind, _) in explained().items()},
    )
    left = {
        name: {field: each[field] for field in fields}
        | {"kind": kinds.get(name, earlier["survivors"].get(name, {}).get("kind", GAP))}
        for name, each in verdicts.items()
        if not each["caught"]
    }
    content["seeds"][str(seed)] = {"rooms": dict(sorted(rooms.items())), "survivors": left}
    path.write_text(json.dumps(content, indent=1) + "\n")


def said(verdict: dict[str, Any]) -> str:
    """A verdict on a line."""
    word = "caught" if verdict["caught"] else "SURVIVED"
    return (
        f"{word} after {verdict['seconds']:.0f} s: {verdict['path']}:{verdict['line']} "
        f"{verdict['before']} -> {verdict['after']}"
    )


def explained(path: Path = EXPLAINED) -> dict[str, tuple[str, str]]:
    """Why a fault survives, by its name: one of `KINDS`, and the reason."""
    found = tomllib.loads(path.read_text())["survivor"]
    return {each["fault"]: (each["kind"], each["why"]) for each in found}


def told(verdicts: dict[str, dict[str, Any]], drawn: int) -> None:
    """Print the survivors with their reasons, then the shares by room and of all."""
    reasons = explained()
    kinds, caught, every = Counter[str](), Counter[str](), Counter[str]()
    for name, each in verdicts.items():
        room = each["path"].split("/")[2]
        every[room] += 1
        caught[room] += each["caught"]
        if not each["caught"]:
            kind, why = reasons.get(name, (each.get("kind", GAP), "not explained"))
            kinds[kind] += 1
            print(f"{kind}: {each['path']}:{each['line']} {each['before']} -> {each['after']}")
            print(f"  {why}")
    for room in every:
        print(f"{room}: {caught[room]} of {every[room]} caught")
    n, judged = caught.total(), verdicts.values()
    late = sum(each["caught"] and each["tried"][-1] == AGAIN for each in judged)
    real = every.total() - sum(kinds[kind] for kind in KINDS if kind != GAP)
    print(f"{drawn} drawn, {every.total()} judged")
    print(f"{n} caught ({_share(n, every.total())}), {late} of them by {AGAIN} only")
    print(", ".join(f"{kinds[kind]} {kind}" for kind in KINDS))
    print(f"{n} of the other {real} caught ({_share(n, real)})")


def _share(part: int, whole: int) -> str:
    return f"{part / max(whole, 1):.1%}"


if __name__ == "__main__":
    raise SystemExit(main())
