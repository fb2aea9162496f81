"""The section on estimates from rows that were checked, where most rows were not."""

from rareclass.metrics import CheckedMeasures, Interval
from rareclass.report.page import (
    NONE,
    Note,
    PageTable,
    Section,
    amount_with_bounds,
    percent_with_bounds,
    whole,
)


def checked_section(found: CheckedMeasures) -> Section:
    """Section with the measures of all rows, as the checked rows estimate them."""
    shares = {
        "Alerts that are rare (precision)": found.precision,
        "Rare rows found (recall)": found.recall,
        "Average precision": found.average_precision,
        "Share of rare rows": found.prevalence,
    }
    rows = [(name, _shown(each)) for name, each in shares.items()]
    rows.append(("Rare rows", NONE if found.n_rare is None else amount_with_bounds(found.n_rare)))
    lead = (
        f"{whole(found.n_checked)} of {whole(found.n_rows)} rows have a known class. "
        f"{whole(found.n_random_below)} of them stand for the rows below the threshold."
    )
    note = (
        "All figures and curves of this page count each checked row as the number of rows that it "
        "stands for. The intervals of this table are about all rows here."
    )
    table = PageTable(
        "Estimates for all rows", ("Measure", "Estimate, 95\u00a0% interval"), tuple(rows), (1,)
    )
    return Section("checked", "Estimates from the checked rows", lead, (table, Note(note)))


def _shown(share: Interval | None) -> str:
    return NONE if share is None else percent_with_bounds(share)
