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
    rows = [(name.capitalize(), _shown(value, digits)) for name, value, digits in found.named()]
    lead = (
        f"{whole(found.n_checked)} of {whole(found.n_rows)} rows have a known class. "
        + " ".join(found.sentences())
    )
    note = (
        "All figures and curves of this page count each checked row as the number of rows that it "
        "stands for. The intervals of this table are about all rows here."
    )
    table = PageTable(
        "Estimates for all rows", ("Measure", "Estimate, 95\u00a0% interval"), tuple(rows), (1,)
    )
    return Section("checked", "Estimates from the checked rows", lead, (table, Note(note)))


def _shown(value: Interval | None, digits: int) -> str:
    """Return a share as percent, a number as it is; a dash where it cannot be known."""
    if value is None:
        return NONE
    return percent_with_bounds(value) if digits else amount_with_bounds(value)
