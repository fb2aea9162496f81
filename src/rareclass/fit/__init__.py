"""From a file of labelled rows to a model file."""
