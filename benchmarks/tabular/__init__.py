"""The whole estimator beside the methods that people use on tables with a rare class.

`python -m benchmarks.run tabular`: `plan` says what is run and `processes` runs it; `sets` has the
tables and their splits, `learners` and `spaces` the methods, `preparation` what each is given of a
table, `search` their tuning, `measure` one split, `figures` and `page` what comes out of it.
"""
