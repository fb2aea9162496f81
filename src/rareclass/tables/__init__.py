"""Files of rows: every format once, read in Arrow batches or record by record."""


class TableWarning(UserWarning):
    """Something in a table was read otherwise than one may expect."""
