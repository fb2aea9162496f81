"""Tables that are the answer of a database to a query, and tables written to one."""
