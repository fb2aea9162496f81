"""Run a table or figure again, print its page: `python -m benchmarks.paper_tables table2`."""

import json
import sys
from importlib import import_module

from benchmarks.pages.registry import PAGES
from benchmarks.paper_tables import cbr_tables, mibc_tables, rach_tables

# Study: the module that runs it, and its page.
ALONE = ("table2", "table4", "fig3", "fig5", "fig6", "mibc_roc")
STUDIES = {name: (f"benchmarks.paper_tables.{name}", name) for name in ALONE}
STUDIES |= {
    name: (tables.__name__, page)
    for tables, names in (
        (cbr_tables, {"cbr_benchmark": cbr_tables.NAMES[:2], "cbr_text": cbr_tables.NAMES[2:]}),
        (mibc_tables, {f"mibc_{study}": (name,) for name, study in mibc_tables.STUDIES.items()}),
        (rach_tables, {"rach": rach_tables.NAMES}),
    )
    for page, own in names.items()
    for name in own
}


def main(argv: list[str]) -> int:
    """Hand the rest of the command line to the named study, and print the page of its results."""
    if not argv or argv[0] not in STUDIES:
        print(f"usage: python -m benchmarks.paper_tables {{{'|'.join(STUDIES)}}} [--help]")
        return 0 if argv and argv[0] in ("-h", "--help") else 2
    module, page = STUDIES[argv[0]]
    try:
        file = import_module(module).main(argv[1:], argv[0])
    except KeyboardInterrupt:
        print("\nStopped; nothing was written.", file=sys.stderr)
        return 130
    if file is not None:
        print(PAGES[page].body(json.loads(file.read_text())))
        print("written:", file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
