"""One HTML file from plain data: sections, tables, plots and the threshold that is dragged."""
