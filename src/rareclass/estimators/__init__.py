"""What every estimator does at its door, and the search over parameters."""
