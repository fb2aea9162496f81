"""``python -m fuzz``: hostile input for so many minutes, and what came of it.

Each target runs in a process of its own, one after the other, with 2 GiB of memory to grow by; a
crash of that process is a finding, and the rest goes on in a new one. Findings are kept under
``build/fuzz/found`` with the command that repeats them.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from fuzz import bases
from fuzz.outcome import Outcome, memory_limit, outcome_of
from fuzz.targets import all_targets, run_case, written


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    parser.add_argument("--seed", type=int, help="where the numbers of cases begin")
    parser.add_argument("--only", default="", help="targets whose names begin so")
    parser.add_argument("--case", type=int, help="one case, by its number, with its traceback")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--part", type=float, help=argparse.SUPPRESS)
    return parser.parse_args()


def _try_cases(folder, name, first, seconds):
    """In a process of its own: a line of JSON before each case, and one after it."""
    target = all_targets()[name]
    begun, number = time.monotonic(), first
    while time.monotonic() - begun < seconds:
        print(json.dumps({"begins": number}), flush=True)
        outcome = _one(target.case(folder, number))
        print(json.dumps({"ends": number, **outcome._asdict()}), flush=True)
        number += 1


def _one(case):
    with memory_limit():
        return outcome_of(lambda: run_case(case))


def _keep(folder, name, number, outcome):
    case = all_targets()[name].case(folder, number)
    kept = folder / "found" / f"{name.replace(' ', '-')}-{number}"
    kept.mkdir(parents=True, exist_ok=True)
    with written(case) as made:
        for path in made.rglob("*"):
            if path.is_file():
                (kept / path.name).write_bytes(path.read_bytes())
    again = f"make fuzz ONLY='{name}' CASE={number}"
    (kept / "finding.txt").write_text(f"{case.what}\n{again}\n{outcome.kind}\n{outcome.detail}")
    last = outcome.detail.strip().splitlines()[-1:] or [""]
    print(f"  {outcome.kind}: {name} {number} ({case.what}): {last[0][:150]}", flush=True)


def _part(folder, name, first, seconds):
    counts = Counter()
    end, number = time.monotonic() + seconds, first
    while (left := end - time.monotonic()) > 0:
        words = ["-X", "faulthandler", "-m", "fuzz"]
        words += ["--only", name, "--seed", str(number), "--part", str(left), "--folder", folder]
        child = subprocess.Popen(
            [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for line in child.stdout:
            told = json.loads(line)
            if "begins" in told:
                number = told["begins"]
            else:
                outcome = Outcome(told["kind"], told["detail"], told["seconds"])
                counts[outcome.kind] += 1
                if outcome.is_fault:
                    _keep(folder, name, told["ends"], outcome)
                number += 1
        _, said = child.communicate()
        if child.returncode:
            counts["crash"] += 1
            crash = Outcome("crash", f"{said[-3000:]}\ncode {child.returncode}")
            _keep(folder, name, number, crash)
            number += 1
            if counts["crash"] > 20:
                break
    return counts


def main():
    asked = _arguments()
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    bases.make_tables(asked.folder)
    for kind in bases.MODELS:
        bases.make_model(asked.folder, kind)
    names = [name for name in all_targets() if name.startswith(asked.only)]
    if asked.case is not None:
        case = all_targets()[names[0]].case(asked.folder, asked.case)
        outcome = _one(case)
        print(f"{names[0]} {asked.case}: {case.what}\n{outcome.kind}\n{outcome.detail}")
        return int(outcome.is_fault)
    seed = random.randrange(10**9) if asked.seed is None else asked.seed
    if asked.part is not None:
        _try_cases(asked.folder, asked.only, seed, asked.part)
        return 0
    print(f"Seed {seed}; {len(names)} targets, {asked.minutes:g} minutes", flush=True)
    total = Counter()
    for name in names:
        counts = _part(asked.folder, name, seed, 60 * asked.minutes / len(names))
        print(f"{name}: {dict(counts)}", flush=True)
        total.update(counts)
    print(f"All: {dict(total)}")
    return int(any(kind not in ("done", "refused") for kind in total))


if __name__ == "__main__":
    sys.exit(main())
