"""Write the pages, or print one: `python -m benchmarks.pages [NAME] [--out FOLDER]`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import record
from benchmarks.pages.page import Results
from benchmarks.pages.registry import PAGES, page_text, there, write_pages

FOLDER = Path(__file__).parents[2] / "docs" / "generated" / "benchmarks"


def main(argv: Sequence[str] | None = None) -> int:
    """Write all pages to docs/generated/benchmarks, or print one of them."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("name", nargs="?", metavar="NAME", choices=list(PAGES), help="print it")
    parser.add_argument("--results", type=Path, default=record.RESULTS, help="folder of JSON files")
    parser.add_argument("--out", type=Path, default=FOLDER, help="default: %(default)s")
    args = parser.parse_args(argv)
    results = Results(args.results)
    if args.name:
        if args.name not in there(results):
            print(f"{args.name} has no results in {args.results}.", file=sys.stderr)
            return 1
        print(page_text(args.name, results, with_chart=False))
        return 0
    print(f"{len(write_pages(args.out, results))} pages in {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
