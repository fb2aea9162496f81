"""The benchmark harness: `python -m benchmarks.run NAME [--json FILE]`.

- ``scale``: time and memory of RankRC against rows.
- ``peers``: RankRC beside LIBSVM, LightGBM, XGBoost and others on the same rows.
- ``serving``: single rows and batches asked of a service, LightGBM behind the same one.
- ``tabular``: RareClassifier beside other libraries on real tables; a process for each method on
  a set, whose splits it makes one after the other.

Every fit has a process of its own; the methods of a group take turns (A B C A B C ...), so that a
machine whose speed drifts does not favour one. Each finished run is written to the file at once: an
interrupted benchmark goes on where it stopped when started again. ``--list`` says what would run.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from benchmarks import peer_table, scale, serving
from benchmarks.cells import ROOT, Cell, Group, run_cell
from benchmarks.ledger import Ledger, Run
from benchmarks.tabular import plan as tabular

# Cores that other programs may keep busy before a run is called disturbed.
DISTURBED = 0.2
BENCHMARKS: dict[str, ModuleType] = {
    "scale": scale,
    "peers": peer_table,
    "serving": serving,
    "tabular": tabular,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a benchmark, or list its cells."""
    args = _parser().parse_args(argv)
    args.scratch = args.scratch.resolve()
    benchmark = BENCHMARKS[args.name]
    groups = [_chosen(group, args) for group in benchmark.groups(args)]
    groups = [group for group in groups if group.cells]
    parameters = {
        name: value
        for name, value in vars(args).items()
        if name not in ("name", "json", "scratch", "list", "again")
    }
    ledger = Ledger(args.name, args.json, parameters)
    if args.again:
        ledger.forget({cell.key for group in groups for cell in group.cells})
    if args.list:
        list_cells(groups, ledger)
        return 0
    if hasattr(benchmark, "run_groups"):
        benchmark.run_groups(groups, ledger, args)
    else:
        for group in groups:
            run_group(group, ledger, args.threads)
    if ledger.runs:
        print(benchmark.render(ledger.runs))
        print(f"in {ledger.path}; its page: python -m benchmarks.pages")
    return 0 if all(run["status"] != "failed" for run in ledger.runs) else 1


def run_group(group: Group, ledger: Ledger, threads: int) -> None:
    """All runs of a group that the ledger does not have, in turns."""
    wanted = [
        (repeat, cell)
        for repeat in range(group.repeats)
        for cell in group.cells
        if not ledger.has(cell.key, repeat)
    ]
    prepared = False
    for repeat, cell in wanted:
        reason = cell.skip or _blocked(cell, ledger)
        if reason:
            if not ledger.of(cell.key):
                ledger.add(cell.key, 0, dict(cell.about), {"status": "skipped", "message": reason})
                print(f"{cell.key}: skipped, {reason}", flush=True)
            continue
        if repeat and not _is_repeated(cell, ledger, group.repeat_below):
            continue
        if not prepared:
            _prepare(group, threads)
            prepared = True
        outcome = run_cell(cell, threads)
        run = ledger.add(cell.key, repeat, dict(cell.about), {"threads": threads, **outcome})
        print(f"{cell.key}, run {repeat + 1}: {_in_words(run)}", flush=True)


def list_cells(groups: Sequence[Group], ledger: Ledger) -> None:
    """Print every cell with its state."""
    for group in groups:
        print(f"{group.title} (up to {group.repeats} runs each)")
        for cell in group.cells:
            reason = cell.skip or _blocked(cell, ledger)
            n_runs = len(ledger.of(cell.key))
            print(f"  {cell.key}: {f'skipped, {reason}' if reason else f'{n_runs} runs done'}")


def _prepare(group: Group, threads: int) -> None:
    for cell in group.preparations:
        start = time.perf_counter()
        outcome = run_cell(cell, threads)
        if outcome["status"] != "ok":
            raise SystemExit(f"{cell.key}: {outcome.get('message', outcome['status'])}")
        if (seconds := time.perf_counter() - start) > 3.0:
            print(f"{cell.key}: {seconds:.0f} s", flush=True)


def _blocked(cell: Cell, ledger: Ledger) -> str:
    """Why a cell is not tried: one before it did not finish."""
    before = ledger.of(cell.after) if cell.after else []
    if before and not any(run["status"] == "ok" for run in before):
        return f"{cell.after} did not finish"
    return ""


def _is_repeated(cell: Cell, ledger: Ledger, below: float) -> bool:
    """Only what finishes, and quickly, is run again."""
    runs = ledger.of(cell.key)
    is_done = all(run["status"] == "ok" for run in runs)
    return is_done and sum(run["process_seconds"] for run in runs) < below


def _in_words(run: Run) -> str:
    if run["status"] == "stopped":
        return f"stopped after {run['limit']:.0f} s"
    if run["status"] != "ok":
        return f"{run['status']}: {run.get('message', '')}"
    words = [f"{run['seconds']:.2f} s"] if "seconds" in run else ["done"]
    if "peak_beyond_input" in run:
        words.append(f"{run['peak_beyond_input'] / 2**20:,.0f} MiB beyond the input")
    if "auc" in run:
        words.append(f"AUC {run['auc']:.4f}")
    if (others := run.get("cores_of_others") or 0.0) > DISTURBED:
        words.append(f"DISTURBED: other programs kept {others:.1f} cores busy")
    return ", ".join(words)


def _chosen(group: Group, args: argparse.Namespace) -> Group:
    """The group with the cells that --only names, and the run counts of the command."""
    cells = [cell for cell in group.cells if not args.only or any(o in cell.key for o in args.only)]
    return Group(
        title=group.title,
        cells=cells,
        repeats=args.repeats or group.repeats,
        repeat_below=args.repeat_below or group.repeat_below,
        preparations=group.preparations,
    )


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", metavar="FILE", help="default: benchmarks/results/NAME.json")
    shared.add_argument("--list", action="store_true", help="say what would run")
    shared.add_argument("--only", nargs="+", metavar="TEXT", help="cells whose key has the text")
    shared.add_argument("--again", action="store_true", help="measure anew what the file has")
    shared.add_argument("--repeats", type=int, help="most runs of each cell (default: 3)")
    shared.add_argument(
        "--repeat-below", type=float, metavar="SECONDS", help="run again within this time"
    )
    shared.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="of every method (default: all cores)"
    )
    shared.add_argument(
        "--scratch",
        type=Path,
        default=ROOT / "scratch" / "benchmarks",
        help="folder for generated data (default: scratch/benchmarks)",
    )
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, benchmark in BENCHMARKS.items():
        own = names.add_parser(name, parents=[shared], help=benchmark.__doc__.splitlines()[0])
        benchmark.add_options(own)
    return parser


if __name__ == "__main__":
    # Ended from outside, it ends its cell as well.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    sys.exit(main())
