"""The tables and figures of Tayal, Coleman and Li (2015), run again beside the printed ones.

`python -m benchmarks.paper_tables table2|table4|table5|fig5|fig6`. Each prints our figures next to
the paper's and writes one JSON file into benchmarks/results.

- ``protocol``: standardising, splits, choice of the parameter (section 6)
- ``methods``: the registry of methods; ``svm``, ``neighbours`` and ``ranking`` hold them
- ``real_sets``: the sets of Table 3; ``intrusion``: KDD Cup 99 (section 6.3)
- ``paper``: the printed figures (``paper_values.json``)
- ``table2``, ``table4``, ``table5``, ``fig5``, ``fig6``: one study each
"""
