"""Files of rows: every format once, read in Arrow batches or record by record."""
