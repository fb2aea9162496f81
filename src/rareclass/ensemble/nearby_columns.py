"""A warning of columns whose values tell little of rows that are far away in the table."""

from rareclass.encoding.table_statistics import TableStatistics
from rareclass.findings import Finding, warn


def warn_of_nearby_columns(statistics: TableStatistics) -> None:
    """Say which columns they are: held-out rows drawn at random make too much of them."""
    columns = statistics.nearby_only_
    if columns:
        warn(
            f"rare rows of one {', '.join(columns)} stand close together in the table, and what "
            "these columns tell of rows far away is much less: that was learned. If the rows are "
            "in the order of time, pass time to fit for an estimate that allows for it, too.",
            finding=Finding("holds nearby only", {"columns": columns}, {"time": "fit"}),
        )
