"""Choose a table or figure: `python -m benchmarks.paper_tables table2 --trials 2`."""

import sys
from importlib import import_module

from benchmarks.paper_tables import cbr_tables, mibc_tables, rach_tables

SEVERAL = (cbr_tables, mibc_tables, rach_tables)
STUDIES = (
    *("table2", "table4", "table5", "fig3", "fig5", "fig6", "mibc_roc"),
    *(name for tables in SEVERAL for name in tables.NAMES),
)


def main(argv: list[str]) -> int:
    """Hand the rest of the command line to the named study."""
    if not argv or argv[0] not in STUDIES:
        print(f"usage: python -m benchmarks.paper_tables {{{'|'.join(STUDIES)}}} [--help]")
        return 0 if argv and argv[0] in ("-h", "--help") else 2
    try:
        for tables in SEVERAL:
            if argv[0] in tables.NAMES:
                return tables.main(argv[1:], argv[0])
        return import_module(f"benchmarks.paper_tables.{argv[0]}").main(argv[1:])
    except KeyboardInterrupt:
        print("\nStopped; nothing was written.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
