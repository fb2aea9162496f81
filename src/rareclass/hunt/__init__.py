"""From a few labelled rows of a table to the rows that belong with them."""
