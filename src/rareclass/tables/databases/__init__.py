"""Tables that are the answer of a database to a query."""
