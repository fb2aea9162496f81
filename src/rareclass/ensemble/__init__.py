"""`RareClassifier`: members, their training within a time budget, and their combination."""
