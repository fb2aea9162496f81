"""Several rare classes at once: `RareClassifier` beside multiclass boosters and forests.

- tables: nine tables with one frequent and two to five rare classes.
- methods: what is fitted, and what it returns for new rows.
- measures: average precision of each class, recall within a budget of alerts, log loss.
- figures: means, ranks, and the page.
"""
