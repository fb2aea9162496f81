"""Base classes of the estimators of tables, and the search over parameters."""
