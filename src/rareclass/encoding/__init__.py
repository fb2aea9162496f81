"""From columns of cells to numbers: tables, sparse rows, streams, hunts."""
