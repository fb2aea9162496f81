"""The results as pages of the site: `python -m benchmarks.pages` writes them.

Each benchmark with a file in benchmarks/results has one page, which says what is compared, what was
found and how to run it again. The pages measure nothing.
"""
