"""What a report shows, as small frozen tables of numbers: no rows, no plots."""
