"""OrdinalRankRC beside other methods on ordered targets: `python -m benchmarks.ordinal`.

Sets: wine, wine_distinct, abalone, living, children, credit and the generated days in hospital
(`benchmarks/ordinal/sets.py` says what they are, `protocol.py` how they are split). Measured: MAUC
and VUS of the test rows, CPU seconds to choose parameters and to fit, rows that carry the model.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.markdown import table
from benchmarks.ordinal import methods, page, protocol, sets
from benchmarks.ordinal.sets import Rows
from benchmarks.paper_tables.protocol import data_folder
from rareclass.machine import track

GROWING = ("days",)
# Splits of the methods that cost much more than the others.
FEW = dict.fromkeys((methods.WIDTH, methods.ALL, "LightGBM lambdarank, all pairs"), 3)


def main(argv: list[str] | None = None) -> int:
    """Measure, print, write results/ordinal.json."""
    args = _options(argv)
    file = Path(args.json) if args.json else record.RESULTS / "ordinal.json"
    # What is not measured this time stays in the file, with its own date.
    measured = json.loads(file.read_text())["sets"] if file.is_file() else {}
    _warm_up()
    for name in args.sets:
        if not sets.is_there(name, data_folder()):
            print(f"left out: {name}, which is not in the folder that RARECLASS_DATA names")
            continue
        for found in measure(name, args, measured.get(name)):
            measured[name] = found
            record.write("ordinal", {"sets": _in_order(measured)}, file)
    result = {"sets": _in_order(measured)}
    for found in result["sets"].values():
        for percent in page.percents_of(found):
            print(f"\n{found['title']}" + (f", {percent:g} %" if percent else ""))
            print(table(page.SET_HEADER, page.set_lines(found, percent)))
    print(f"\n{page.verdict(result)}\nwritten: {file}")
    return 0


def measure(
    name: str, args: argparse.Namespace, before: dict[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """All fits of one set after each fit; of those before, what is not measured again stays."""
    rows = sets.load(name, data_folder())
    fits = {_key(fit): fit for fit in (before["fits"] if before else [])}
    tasks = list(_tasks(name, args))
    with track(name, total=len(tasks)) as advance:
        for about, wanted in tasks:
            done = fits.keys() if args.resume else ()
            wanted = [m for m in wanted if _key(about | {"method": m}) not in done]
            if not wanted:
                advance()
                continue
            part = _part(rows, about)
            for method in wanted:
                found = protocol.measure(part, method)
                if found is None:
                    continue
                fit = about | {"test_rows": len(part.y_test)} | found
                fits[_key(fit)] = fit
                yield {
                    "title": sets.SETS[name].title,
                    "features": rows.X.shape[1],
                    "levels": np.bincount(rows.y),
                    "date": record.environment()["date"],
                    "fits": list(fits.values()),
                }
            advance()


def _key(fit: dict[str, Any]) -> tuple[Any, ...]:
    """What a fit is known by."""
    return fit.get("percent"), fit["split"], fit["method"]


def _warm_up() -> None:
    """Compiled loops are loaded before anything is timed."""
    rows = np.random.default_rng(0).normal(size=(90, 2))
    tiny = protocol.one_split(Rows(rows, np.arange(90) % 3), 0)
    protocol.measure(tiny, methods.OURS)


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ordinal", description=__doc__)
    known = methods.available()
    parser.add_argument("--sets", nargs="+", choices=list(sets.SETS), default=list(sets.SETS))
    parser.add_argument("--methods", nargs="+", choices=known, default=known)
    parser.add_argument("--splits", type=int, default=5, help="of a set (default: 5)")
    parser.add_argument(
        "--percents", type=float, nargs="+", default=list(protocol.PERCENTS),
        help="of the generated rows to learn from (default: the paper's)",
    )  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="only what the file does not have")
    parser.add_argument("--json", metavar="FILE", help="default: results/ordinal.json")
    return parser.parse_args(argv)


def _tasks(name: str, args: argparse.Namespace) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """What a split is called in the file, and the methods that are run on it."""
    if name in GROWING:
        for split, percent in product(range(args.splits), args.percents):
            yield {"split": split, "percent": percent}, args.methods
        return
    for split in range(args.splits):
        yield {"split": split}, [m for m in args.methods if split < FEW.get(m, args.splits)]


def _part(rows: Rows, about: dict[str, Any]) -> protocol.Part:
    if "percent" in about:
        return protocol.growing(rows, about["percent"], about["split"])
    return protocol.one_split(rows, about["split"])


def _in_order(measured: dict[str, Any]) -> dict[str, Any]:
    return {name: measured[name] for name in sets.SETS if name in measured}


if __name__ == "__main__":
    sys.exit(main())
