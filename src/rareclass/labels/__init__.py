"""Labels of rows: two classes, ordered levels, partly unknown, or arriving."""
